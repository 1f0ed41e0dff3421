#include "tessera/ir/verify.h"

#include <gtest/gtest.h>

#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera {
namespace {

using testing::expect_valid;
using testing::parsed;

void expect_invalid(const Graph& graph, std::string_view message) {
  const auto valid = verify(graph);
  ASSERT_FALSE(valid);
  EXPECT_EQ(to_string(valid.error()), message);
}

Type f32(Shape shape) {
  return Type::tensor(DType::F32, std::move(shape));
}

/// x: f32[2], and a node over it that nobody has checked.
Graph with_node(const Graph::NewNode& node) {
  Graph graph;
  graph.add_input(f32({2}), "x");
  std::vector<ValueId> results = graph.add_node(node);
  graph.set_outputs(results);
  return graph;
}

constexpr ValueId kX{0};

TEST(Verify, AcceptsRandomGraphs) {
  testing::for_each_random_graph({.seed = 2, .count = 300, .max_nodes = 12}, expect_valid);
}

TEST(Verify, AcceptsMoreThanInferenceKnows) {
  expect_valid(
      parsed("graph(x: f32[n], y) { a: i64[1, 5] = non_zero(x)  b: f32[7] = relu(y)"
             "  c = add(b, 1.0)  return a, c }"));
}

TEST(Verify, RejectsAWrongType) {
  expect_invalid(with_node({.op = find_op("relu"), .inputs = {kX}, .outputs = {f32({3})}}),
                 "%1 = relu: error[graph-invalid]: %1 has type f32[3]\n"
                 "  note: inference says f32[2]");
  expect_invalid(with_node({.op = find_op("relu"), .inputs = {kX}, .outputs = {Type::unknown()}}),
                 "%1 = relu: error[graph-invalid]: %1 has type ?\n  note: inference says f32[2]");
}

TEST(Verify, RejectsAWrongNumberOfInputsAndResults) {
  expect_invalid(with_node({.op = find_op("relu"), .inputs = {kX, kX}, .outputs = {f32({2})}}),
                 "%1 = relu: error[op-arity]: relu has 2 inputs\n  note: it takes 1");
  expect_invalid(with_node({.op = find_op("relu"), .inputs = {ValueId{}}, .outputs = {f32({2})}}),
                 "%1 = relu: error[op-arity]: relu has 1 inputs\n  note: it takes 1");
  expect_invalid(
      with_node({.op = find_op("relu"), .inputs = {kX}, .outputs = {f32({2}), f32({2})}}),
      "%1, %2 = relu: error[op-arity]: relu has 2 results\n  note: it has 1");
}

TEST(Verify, RejectsAttributesThatAreMissingOrUnknown) {
  expect_invalid(with_node({.op = find_op("softmax"), .inputs = {kX}, .outputs = {f32({2})}}),
                 "%1 = softmax: error[graph-invalid]: attributes that have defaults are missing");
  expect_invalid(with_node({.op = find_op("softmax"),
                            .attrs = {{"axis", -1}, {"speed", 3}},
                            .inputs = {kX},
                            .outputs = {f32({2})}}),
                 "%1 = softmax: error[op-attribute]: softmax has no attribute speed\n"
                 "  note: its attributes are axis");
}

TEST(Verify, RejectsAnOperatorThatIsNotInTheCatalog) {
  const OpDef copy = *find_op("relu");
  expect_invalid(with_node({.op = &copy, .inputs = {kX}, .outputs = {f32({2})}}),
                 "%1 = relu: error[graph-invalid]: the operator is not in the catalog");
}

TEST(Verify, RejectsANameThatIsUsedTwice) {
  Graph graph = parsed("graph(x: f32[2]) { a = relu(x)  return a }");
  graph.set_name(graph.outputs()[0], "x");
  expect_invalid(graph, "error[graph-invalid]: two values are called x");
}

TEST(Verify, RejectsAnOutputThatIsNoValue) {
  Graph graph = parsed("graph(x: f32[2]) { return x }");
  graph.set_outputs({ValueId{7}});
  expect_invalid(graph, "error[graph-invalid]: an output is not a value of the graph");
}

TEST(Verify, RejectsAConstantOfAnotherType) {
  Graph graph = parsed("graph() { w = const f32[2] [1, 2]  return w }");
  graph.set_type(graph.outputs()[0], f32({3}));
  expect_invalid(graph,
                 "error[graph-invalid]: the constant w has type f32[3]\n  note: its content is "
                 "f32[2]");
}

TEST(Verify, RejectsSubgraphsThatDoNotFit) {
  const auto body = std::make_shared<const Graph>(parsed("graph(p: f32[2]) { return relu(p) }"));
  const auto closed = std::make_shared<const Graph>(parsed("graph() { return 1.0 }"));
  const auto branch = [&](std::vector<std::shared_ptr<const Graph>> subgraphs) {
    Graph graph;
    const ValueId c = graph.add_input(Type::tensor(DType::Bool, {}), "c");
    const ValueId x = graph.add_input(f32({2}), "x");
    graph.set_outputs(graph.add_node({.op = find_op("if_else"),
                                      .inputs = {c, x},
                                      .outputs = {f32({2})},
                                      .subgraphs = std::move(subgraphs)}));
    graph.set_name(graph.outputs()[0], "a");
    return graph;
  };
  expect_valid(branch({body, body}));
  expect_invalid(branch({body}),
                 "a = if_else: error[control-flow]: if_else has 1 subgraphs\n  note: it takes 2");
  expect_invalid(branch({body, closed}),
                 "a = if_else: error[control-flow]: else of if_else has 0 inputs\n"
                 "  note: it is given 1");

  Graph wrong = *body;
  wrong.set_type(wrong.outputs()[0], f32({5}));
  expect_invalid(branch({body, std::make_shared<const Graph>(wrong)}),
                 "a = if_else: else: %1 = relu: error[graph-invalid]: %1 has type f32[5]\n"
                 "  note: inference says f32[2]");
}

TEST(Verify, AcceptsAnOptionalThatBecomesItsContent) {
  expect_valid(parsed(R"(graph(n: i64[], s: opt(seq(f32[...])), t: seq(f32[...])) {
    a = loop(n, _, s, t) {states=1} {
      body(i: i64[], c: bool[], p: ?, q: seq(f32[...])) { return c, q }
    }
    return a
  })"));
}

TEST(Verify, RejectsSubgraphsOfOtherOperators) {
  const auto body = std::make_shared<const Graph>(parsed("graph(p: f32[2]) { return p }"));
  expect_invalid(
      with_node(
          {.op = find_op("relu"), .inputs = {kX}, .outputs = {f32({2})}, .subgraphs = {body}}),
      "%1 = relu: error[graph-invalid]: only control flow has subgraphs");
}

}  // namespace
}  // namespace tessera
