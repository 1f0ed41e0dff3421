#include "tessera/driver/native.h"

#include <gtest/gtest.h>

#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera {
namespace {

std::vector<Datum> data_of(const std::vector<Tensor>& tensors) {
  return {tensors.begin(), tensors.end()};
}

NativeReport expect_same(const Graph& graph, const std::vector<Tensor>& inputs) {
  const auto expected = interp::run(graph, data_of(inputs), {});
  const auto found = run_native(graph, data_of(inputs), {.run = {.threads = 2}});
  EXPECT_EQ(expected.has_value(), found.has_value());
  if (!expected || !found) return {};
  for (std::size_t i = 0; i < expected->size(); ++i)
    testing::expect_near(found->outputs[i].tensor(), (*expected)[i].tensor(), 1e-4);
  return found->report;
}

TEST(Native, AGraphComputesWhatTheInterpreterComputes) {
  const Graph graph = testing::parsed(
      "graph(x: f32[2, 3, 9, 9], w: f32[4, 3, 3, 3]) { a = conv(x, w)  b = relu(a)  return "
      "softmax(b) }");
  const NativeReport report = expect_same(
      graph, {testing::random_f32({2, 3, 9, 9}, 1), testing::random_f32({4, 3, 3, 3}, 2)});
  EXPECT_GE(report.native, 3);
  EXPECT_TRUE(report.interpreted.empty());
}

TEST(Native, WhatHasNoTileProgramIsInterpretedAndNamed) {
  const Graph graph = testing::parsed("graph(x: f32[4]) { y = neg(x)  return non_zero(y) }");
  const NativeReport report = expect_same(graph, {testing::f32({4}, {1, 0, 2, 4})});
  EXPECT_EQ(report.native, 1);
  ASSERT_TRUE(report.interpreted.contains("non_zero"));
  EXPECT_EQ(report.interpreted.at("non_zero").count, 1);
}

TEST(SlowNative, RandomGraphsComputeWhatTheInterpreterComputes) {
  testing::for_each_random_graph({.seed = 5, .count = 30, .max_nodes = 6}, [](const Graph& graph) {
    expect_same(graph, testing::random_inputs(graph, 3));
  });
}

}  // namespace
}  // namespace tessera
