#include "tessera/ir/expand.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera {
namespace {

using testing::expect_graph;
using testing::expect_valid;
using testing::parsed;

bool every(const OpDef&) {
  return true;
}

Graph expanded(const Graph& graph) {
  auto result = expand(graph, every);
  if (result) return *std::move(result);
  ADD_FAILURE() << to_string(result.error());
  return {};
}

bool has_composites(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](const GraphNode& node) {
    return node.op->kind() == OpDef::Kind::Composite ||
           std::ranges::any_of(graph.subgraphs(node),
                               [](const auto& subgraph) { return has_composites(*subgraph); });
  });
}

TEST(Expand, ReplacesAComposite) {
  const Graph graph = expanded(parsed("graph(x: f32[n, 4]) { a = softmax(x)  return a }"));
  expect_valid(graph);
  EXPECT_FALSE(has_composites(graph));
  EXPECT_EQ(graph.name(graph.outputs()[0]), "a");
  EXPECT_EQ(to_string(graph.type(graph.outputs()[0])), "f32[n, 4]");
}

TEST(Expand, LeavesWhatIsNotChosen) {
  const std::string text = "graph(x: f32[n, 4]) { return relu(softmax(x)) }";
  const auto graph = expand(parsed(text), [](const OpDef& op) { return op.name != "softmax"; });
  ASSERT_TRUE(graph);
  expect_graph(*graph, text);
}

TEST(Expand, GoesIntoSubgraphs) {
  const Graph graph = expanded(parsed(R"(graph(c: bool[], x: f32[4]) {
    return if_else(c, x) { then(p) { return softmax(p) } else(p) { return hard_swish(p) } }
  })"));
  expect_valid(graph);
  EXPECT_FALSE(has_composites(graph));
}

TEST(Expand, AsksForTheShapesThatABodyNeeds) {
  const auto graph = expand(parsed("graph(x) { return softmax(x) }"), every);
  ASSERT_FALSE(graph);
  EXPECT_TRUE(is_needs_value(graph.error()));
}

TEST(Expand, KeepsTypesOfRandomGraphs) {
  testing::for_each_random_graph({.seed = 4, .count = 100}, [](const Graph& graph) {
    const Graph core = expanded(graph);
    expect_valid(core);
    EXPECT_FALSE(has_composites(core));
    ASSERT_EQ(core.outputs().size(), graph.outputs().size());
    for (std::size_t i = 0; i < core.outputs().size(); ++i)
      EXPECT_EQ(core.type(core.outputs()[i]), graph.type(graph.outputs()[i]));
  });
}

TEST(BodyOf, HasTheInputsThatArePresent) {
  const ValueInfo x{.type = Type::tensor(DType::F32, {2, 4})};
  const ValueInfo scale{.type = Type::tensor(DType::F32, {4})};
  const OpDef& op = *find_op("layer_normalization");
  const Attrs attrs = *completed(op, {});
  const auto body = body_of(op, attrs, {x, scale, ValueInfo{.present = false}}, 1);
  ASSERT_TRUE(body) << to_string(body.error());
  expect_valid(*body);
  EXPECT_EQ(body->inputs().size(), 2u);
  EXPECT_EQ(body->outputs().size(), 1u);
  EXPECT_FALSE(body_of(op, attrs, {x, scale}, 9));
}

}  // namespace
}  // namespace tessera
