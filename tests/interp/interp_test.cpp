#include "tessera/interp/interp.h"

#include <gtest/gtest.h>

#include "tessera/expr/field.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/expand.h"
#include "tessera/ir/text.h"
#include "tests/support/evaluate.h"
#include "tests/support/random_graph.h"

namespace tessera {
namespace {

using testing::expect_near;
using testing::f32;
using testing::i64;

Graph graph_of(std::string_view text) {
  auto graph = parse_graph(text, {});
  EXPECT_TRUE(graph) << to_string(graph.error());
  return graph ? *graph : Graph{};
}

std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs,
                        const interp::Options& options = {}) {
  const auto results =
      interp::run(graph, std::vector<Datum>(inputs.begin(), inputs.end()), options);
  EXPECT_TRUE(results) << to_string(results.error());
  std::vector<Tensor> tensors;
  if (results)
    for (const Datum& result : *results) tensors.push_back(result.tensor());
  return tensors;
}

TEST(Interp, RunsNodesInOrder) {
  const Graph graph = graph_of("graph(x: f32[n, 2]) { a = mul(x, x)  return add(a, x) }");
  expect_near(run(graph, {f32({2, 2}, {1, 2, 3, 4})})[0], f32({2, 2}, {2, 6, 12, 20}));
}

TEST(Interp, TakesTheBranchThatTheConditionNames) {
  const Graph graph = graph_of(
      "graph(c: bool[], x: f32[2]) { return if_else(c, x) { then(p: f32[2]) { return neg(p) } "
      "else(p: f32[2]) { return p } } }");
  const auto truth = [](double value) { return testing::tensor(DType::Bool, {}, {value}); };
  expect_near(run(graph, {truth(1), f32({2}, {1, 2})})[0], f32({2}, {-1, -2}));
  expect_near(run(graph, {truth(0), f32({2}, {1, 2})})[0], f32({2}, {1, 2}));
}

Graph doubling_loop() {
  GraphBuilder body;
  body.input("step", DType::I64, {});
  const Val go = body.input("go", DType::Bool, {});
  const Val state = body.input("state", DType::F32, {2});
  const Val next = state + state;
  const Graph inner = *body.finish({go, next, next});
  GraphBuilder g;
  const Val trips = g.input("trips", DType::I64, {});
  const Val x = g.input("x", DType::F32, {2});
  const Type type = Type::tensor(DType::F32, {2});
  const Vals results = g.call_control(*find_op("loop"), {trips, Val{}, x}, {{"states", 1}},
                                      {std::make_shared<const Graph>(inner)},
                                      {type, Type::tensor(DType::F32, {Dim::symbol("steps"), 2})});
  return *g.finish(results);
}

TEST(Interp, RepeatsALoopAndStacksItsResults) {
  const auto results = run(doubling_loop(), {i64({}, {3}), f32({2}, {1, 10})});
  expect_near(results[0], f32({2}, {8, 80}));
  expect_near(results[1], f32({3, 2}, {2, 20, 4, 40, 8, 80}));
}

TEST(Interp, StacksNothingWhereALoopDoesNotRun) {
  const auto results = run(doubling_loop(), {i64({}, {0}), f32({2}, {1, 10})});
  expect_near(results[0], f32({2}, {1, 10}));
  EXPECT_EQ(results[1].shape, (std::vector<std::int64_t>{0, 2}));
}

TEST(Interp, ScansAlongTheLeadingAxis) {
  GraphBuilder g;
  const Val x = g.input("x", DType::F32, {3, 2});
  const Val zero = g.constant(f32({2}, {0, 0}));
  const Vals results = g.scan({zero}, {x}, [](Body&, const Vals& states, const Vals& slices) {
    const Val sum = states[0] + slices[0];
    return Vals{sum, sum};
  });
  const auto out = run(*g.finish(results), {f32({3, 2}, {1, 2, 3, 4, 5, 6})});
  expect_near(out[0], f32({2}, {9, 12}));
  expect_near(out[1], f32({3, 2}, {1, 2, 4, 6, 9, 12}));
}

TEST(Interp, EndsALoopBombByItsStopFlag) {
  std::atomic<bool> stop = true;
  const std::vector<Datum> inputs = {i64({}, {std::int64_t{1} << 62}), f32({2}, {1, 1})};
  const auto results = interp::run(doubling_loop(), inputs, {.stop = &stop});
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().id, "stopped");
}

TEST(Interp, RefusesResultsBeyondTheMemoryLimit) {
  const Graph graph = graph_of("graph(x: f32[1]) { return expand(x, [1000000, 1000000]) }");
  const auto results = interp::run(graph, std::vector<Datum>{f32({1}, {1})}, {});
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().id, "memory-limit");
}

TEST(Interp, FreesResultsAfterTheirLastUse) {
  std::string text = "graph(x: f32[1000]) { a0 = neg(x)";
  for (int i = 1; i < 100; ++i) text += fmt::format("  a{} = neg(a{})", i, i - 1);
  const Graph graph = graph_of(text + "  return a99 }");
  const Tensor x = testing::random_f32({1000}, 1);
  expect_near(run(graph, {x}, {.memory_limit = 3 * 4000})[0], x);
}

TEST(Interp, GivesTheSameBitsForAnyNumberOfThreads) {
  const Graph graph =
      graph_of("graph(x: f32[64, 300], y: f32[300, 70]) { return softmax(matmul(x, y)) }");
  const std::vector<Tensor> inputs = {testing::random_f32({64, 300}, 1),
                                      testing::random_f32({300, 70}, 2)};
  const Tensor one = run(graph, inputs, {.threads = 1})[0],
               four = run(graph, inputs, {.threads = 4})[0];
  ASSERT_EQ(one.bytes.size(), four.bytes.size());
  EXPECT_EQ(std::memcmp(one.bytes.data(), four.bytes.data(), one.bytes.size()), 0);
}

TEST(Interp, ComputesInAPrimeField) {
  const Graph graph =
      graph_of("graph(x: f32[2, 2], y: f32[2, 2]) { return sub(matmul(x, y), mul(x, y)) }");
  const Tensor x = f32({2, 2}, {0.5, 2, 3, 4}), y = f32({2, 2}, {8, 6, 7, 5});
  const auto results = interp::run_as<FieldA>(
      graph,
      std::vector<interp::Value>{{interp::lift<FieldA>(x), true}, {interp::lift<FieldA>(y), true}},
      {});
  ASSERT_TRUE(results) << to_string(results.error());
  ASSERT_TRUE(results->at(0).lifted);
  const auto words = results->at(0).datum.tensor().as<FieldA>();
  const std::vector<double> expected = {4 + 14 - 4, 3 + 10 - 12, 24 + 28 - 21, 18 + 20 - 20};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(words[i], FieldA::of_double(expected[i]));
}

TEST(Interp, RunsACompositeAsItsBody) {
  testing::for_each_random_graph({.seed = 3, .count = 60, .max_nodes = 8}, [](const Graph& graph) {
    const auto body = expand(graph, [](const OpDef&) { return true; });
    ASSERT_TRUE(body) << to_string(body.error());
    const std::vector<Tensor> inputs = testing::random_inputs(graph, 5);
    const auto whole = run(graph, inputs), apart = run(*body, inputs);
    ASSERT_EQ(whole.size(), apart.size());
    for (std::size_t i = 0; i < whole.size(); ++i) expect_near(whole[i], apart[i]);
  });
}

TEST(Interp, NamesTheNodeThatFails) {
  const Graph graph = graph_of("graph(x: f32[3], i: i64[2]) { g = gather(x, i)  return g }");
  const auto results =
      interp::run(graph, std::vector<Datum>{f32({3}, {1, 2, 3}), i64({2}, {0, 7})}, {});
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().id, "eval-index");
  EXPECT_EQ(results.error().where.item, "gather #0");
}

}  // namespace
}  // namespace tessera
