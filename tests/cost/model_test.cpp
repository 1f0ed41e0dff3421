#include "tessera/cost/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/cost/roofline.h"
#include "tessera/cost/store.h"
#include "tests/support/command.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera::cost {
namespace {

namespace fs = std::filesystem;
using testing::parsed;
using testing::random_f32;
using ::testing::SizeIs;

/// The graph with constants for its inputs but the first.
Graph with_weights(const Graph& graph) {
  Graph made;
  std::vector<ValueId> mapped(graph.value_count());
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId input = graph.inputs()[i];
    std::vector<std::int64_t> shape;
    for (const Dim& dim : *graph.type(input).shape) shape.push_back(*dim.constant());
    mapped[input.index] = i == 0 ? made.add_input(graph.type(input), graph.name(input))
                                 : made.add_constant(random_f32(shape, i), {});
  }
  for (const GraphNode& node : graph.nodes()) {
    Graph::NewNode copy{.op = node.op, .attrs = *node.attrs};
    for (const ValueId id : graph.inputs(node)) {
      if (id.present() && !mapped[id.index].present())
        mapped[id.index] = made.add_constant(*graph.constant(id), {});
      copy.inputs.push_back(id.present() ? mapped[id.index] : id);
    }
    for (const ValueId id : graph.outputs(node)) copy.outputs.push_back(graph.type(id));
    const auto results = made.add_node(std::move(copy));
    for (std::size_t i = 0; i < results.size(); ++i)
      mapped[graph.outputs(node)[i].index] = results[i];
  }
  std::vector<ValueId> outputs;
  for (const ValueId id : graph.outputs()) outputs.push_back(mapped[id.index]);
  made.set_outputs(std::move(outputs));
  return made;
}

/// A small network of images.
Graph network() {
  return with_weights(
      parsed("graph(x: f32[1, 16, 20, 20], v: f32[24, 16, 3, 3], w: f32[16, 24, 1, 1]) { "
             "a = relu(conv(x, v) {pads=[1, 1, 1, 1]})  return add(conv(a, w), x) }"));
}

std::unique_ptr<Model> opened(const fs::path& store = {}, const std::string& target = {}) {
  auto model = open_model({.store = store, .target = target, .seconds_per_kernel = 0.002});
  EXPECT_TRUE(model) << to_string(model.error());
  return *std::move(model);
}

Estimate estimated(const Graph& graph, Boundary boundary = Boundary::Caller) {
  const auto estimate = opened()->estimate(graph, boundary);
  EXPECT_TRUE(estimate) << to_string(estimate.error());
  return *estimate;
}

std::vector<double> seconds_of(const Estimate& estimate) {
  std::vector<double> seconds;
  for (const Kernel& kernel : estimate.kernels) seconds.push_back(kernel.seconds);
  return seconds;
}

class CostTest : public ::testing::Test {
 protected:
  fs::path store() const { return folder_.path() / "costs.sqlite"; }

  const testing::TemporaryFolder folder_;
};

TEST(CostModel, CountsTheGroupsOfTheCompiler) {
  const Graph graph = network();
  const Estimate estimate = estimated(graph);
  const auto compiled = program::compile(graph, {});
  ASSERT_TRUE(compiled);
  std::vector<std::string> planned, made;
  for (const Kernel& kernel : estimate.kernels) planned.push_back(kernel.what);
  for (const auto& step : compiled->report.steps)
    if (step.strategy != "…") made.push_back(step.what);
  EXPECT_EQ(planned, made);
  EXPECT_FALSE(estimate.measured);
  EXPECT_GT(estimate.seconds, 0);
}

TEST(CostModel, WorkOnWeightsAloneIsFree) {
  const std::string head =
      "graph(x: f32[1, 16, 20, 20], v: f32[8, 16, 3, 3], w: f32[8, 16, 3, 3]) { ";
  const Graph graph = with_weights(
      parsed(head + "u = concat(v, w) {axis=0}  return conv(x, add(u, u)) {pads=[1, 1, 1, 1]} }"));
  const Graph folded =
      with_weights(parsed("graph(x: f32[1, 16, 20, 20], u: f32[16, 16, 3, 3]) { "
                          "return conv(x, u) {pads=[1, 1, 1, 1]} }"));
  const Estimate estimate = estimated(graph);
  EXPECT_EQ(estimate.seconds, estimated(folded).seconds);
}

TEST(CostModel, CopiesOfActivationsCount) {
  const Estimate estimate =
      estimated(parsed("graph(x: f32[1, 16, 20, 20], y: f32[1, 16, 20, 20]) { "
                       "return concat(x, y) {axis=1} }"));
  ASSERT_FALSE(estimate.kernels.empty());
  EXPECT_GT(estimate.seconds, 2 * 2 * 16 * 400 * 4 / 1e12);
}

TEST(CostModel, InsideALargerGraphNothingIsReordered) {
  const Graph graph = network();
  const auto reorders = [](const Estimate& estimate) {
    return std::ranges::count(estimate.kernels, "reorder", &Kernel::what);
  };
  EXPECT_GT(reorders(estimated(graph)), 0);
  EXPECT_EQ(reorders(estimated(graph, Boundary::Inside)), 0);
}

TEST(CostModel, RoundsOfALoopCount) {
  const Estimate estimate = estimated(with_weights(
      parsed("graph(x: f32[7, 3, 5], w: f32[1, 24, 5], r: f32[1, 24, 6], b: f32[1, 48]) { "
             "y, h, c = lstm(x, w, r, b) {hidden_size=6}  return y }")));
  EXPECT_TRUE(std::ranges::any_of(estimate.kernels,
                                  [](const Kernel& kernel) { return kernel.trip_count == 7; }));
}

TEST_F(CostTest, WhatWasMeasuredIsKnownTheNextTime) {
  const Graph graph = network();
  const auto model = opened(store());
  ASSERT_TRUE(model->can_measure());
  const auto measured = model->measure(graph);
  ASSERT_TRUE(measured) << to_string(measured.error());
  EXPECT_TRUE(measured->measured);
  const auto again = opened(store())->estimate(graph);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->measured);
  EXPECT_EQ(seconds_of(*again), seconds_of(*measured));
  EXPECT_EQ(again->seconds, measured->seconds);
}

TEST_F(CostTest, TheSameStoreGivesTheSameEstimates) {
  ASSERT_TRUE(opened(store())->measure(network()));
  const Graph other = parsed("graph(x: f32[1, 64, 64]) { return softmax(relu(x)) }");
  const auto one = opened(store())->estimate(other), two = opened(store())->estimate(other);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(seconds_of(*one), seconds_of(*two));
}

TEST_F(CostTest, AnotherTargetHasItsOwnMeasurements) {
  const Graph graph = network();
  const Estimate here = estimated(graph);
  Target gpu = target_of(*machine::named("sapphirerapids"), 4);
  gpu.name = "some-gpu";
  gpu.flops_per_second = 1e15;
  gpu.bytes_per_second = 1e13;
  gpu.seconds_per_launch = 1e-3;
  {
    auto file = Store::open(store());
    ASSERT_TRUE(file && file->put(gpu));
    ASSERT_TRUE(file->put(gpu.name, std::vector{Measurement{.key = here.kernels[0].key,
                                                            .code = "other",
                                                            .what = "x",
                                                            .strategy = "cuda",
                                                            .launches = 1,
                                                            .seconds = 0.125,
                                                            .best = 0.125,
                                                            .samples = 1}}));
  }
  const auto model = opened(store(), "some-gpu");
  EXPECT_FALSE(model->can_measure());
  const auto there = model->measure(graph);
  ASSERT_TRUE(there);
  const auto known = std::ranges::find(there->kernels, here.kernels[0].key, &Kernel::key);
  ASSERT_NE(known, there->kernels.end());
  EXPECT_EQ(known->seconds, 0.125);
  for (const Kernel& kernel : there->kernels)
    EXPECT_TRUE(kernel.measured || kernel.seconds >= 1e-3) << "launches are what it takes";
  const auto none = open_model({.store = store(), .target = "another"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().id, "store-no-target");
  EXPECT_THAT(none.error().note, ::testing::HasSubstr("some-gpu"));
}

TEST_F(CostTest, AFileDoesNotSayWhatThisComputerIs) {
  Target liar = target_of(machine::host(), 1);
  liar.machine.vector_bytes = 256;
  liar.machine.features = {"sve2", "avx512f", "avx512bf16"};
  ASSERT_TRUE(Store::open(store())->put(liar));
  const auto measured = opened(store())->measure(network());
  ASSERT_TRUE(measured) << to_string(measured.error());
  EXPECT_TRUE(measured->measured);
}

TEST(CostModel, StepsOfTheHostAreMeasuredToo) {
  const Graph graph =
      parsed("graph(x: f32[4, 64]) { v, i = top_k(relu(x), [5])  return add(v, v), i }");
  const auto measured = opened()->measure(graph);
  ASSERT_TRUE(measured) << to_string(measured.error());
  EXPECT_TRUE(measured->measured);
  EXPECT_TRUE(std::ranges::any_of(measured->kernels,
                                  [](const Kernel& kernel) { return kernel.strategy == "host"; }));
}

TEST(CostModel, WhatHasNoSizesIsTheHosts) {
  const Estimate estimate = estimated(parsed("graph(x: f32[N, 4]) { return relu(x) }"));
  ASSERT_THAT(estimate.kernels, SizeIs(1));
  EXPECT_EQ(estimate.kernels[0].strategy, "host");
}

TEST(Roofline, FindsTheFactorsOfMeasurements) {
  Target target = target_of(*machine::named("neoverse-v1"), 1);
  std::vector<Measurement> measured;
  for (int i = 1; i <= 12; ++i) {
    Measurement& one = measured.emplace_back();
    one.strategy = "dot 8x8x8";
    one.operations = 1e6 * i * i;
    one.bytes = 1e5 * (13 - i);
    one.launches = 1 + i % 2;
    one.seconds = one.operations * 3e-11 + one.bytes * 2e-10 + one.launches * 1e-6;
  }
  const Roofline roofline(target, measured);
  for (const Measurement& one : measured)
    EXPECT_NEAR(roofline.seconds({.kind = "dot",
                                  .operations = one.operations,
                                  .bytes = one.bytes,
                                  .launches = one.launches}) /
                    one.seconds,
                1, 1e-6);
}

TEST(Roofline, RanksAgreeOrNot) {
  const std::vector<double> up{1, 2, 3, 4}, down{4, 3, 2, 1}, even{1, 1, 2, 2};
  EXPECT_DOUBLE_EQ(rank_correlation(up, up), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(up, down), -1);
  EXPECT_GT(rank_correlation(up, even), 0.8);
}

TEST(CompareGraphs, FindsWhichIsFaster) {
  // A thousand times the work, so that no load of the machine turns the order round.
  const Graph small = parsed("graph(x: f32[8, 8]) { return relu(x) }");
  const Graph large = parsed("graph(x: f32[256, 256]) { return matmul(x, x) }");
  const auto comparison = compare(small, large, {.blocks = 10, .block_seconds = 0.01});
  ASSERT_TRUE(comparison) << to_string(comparison.error());
  EXPECT_GT(comparison->ratio, 1);
  EXPECT_DOUBLE_EQ(comparison->ratio, comparison->b_seconds / comparison->a_seconds);
  EXPECT_LE(comparison->low, comparison->ratio);
  EXPECT_GE(comparison->high, comparison->ratio);
  const auto alone = time_program(small, {.blocks = 3});
  ASSERT_TRUE(alone);
  EXPECT_GT(*alone, 0);
}

}  // namespace
}  // namespace tessera::cost
