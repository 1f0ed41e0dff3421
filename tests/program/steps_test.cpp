#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/program/decisions.h"
#include "tessera/program/draft.h"
#include "tessera/program/host_call.h"
#include "tessera/program/kernel_group.h"
#include "tessera/program/plan.h"
#include "tests/support/graph_check.h"

namespace tessera::program {
namespace {

using testing::parsed;

/// The dtypes in memory of the values that nodes compute, in order.
std::vector<DType> storage_of(const Graph& graph, const CompileOptions& options) {
  const Decisions decisions = decide(graph, options);
  std::vector<DType> storage;
  for (const GraphNode& node : graph.nodes())
    for (const ValueId output : graph.outputs(node))
      storage.push_back(decisions.storage[output.index]);
  return storage;
}

const char* const kTwoProducts =
    "graph(x: f32[256, 256], w: f32[256, 256], v: f32[256, 256]) { a = relu(matmul(x, w))  "
    "b = matmul(a, v)  return reduce_sum(b, [1]) {keepdims=0} }";

TEST(StorageTypes, ACpuKeepsTheTypesOfTheGraph) {
  EXPECT_THAT(storage_of(parsed(kTwoProducts), {.machine = *machine::named("neoverse-v1"),
                                                .contraction_dtype = DType::BF16}),
              ::testing::Each(DType::F32));
}

TEST(StorageTypes, AGpuStoresTensorsInTheTypeOfProducts) {
  const auto storage = storage_of(parsed(kTwoProducts),
                                  {.machine = machine::cuda(), .contraction_dtype = DType::F16});
  // Sums of rows are few, and may exceed the range of f16.
  EXPECT_EQ(storage, (std::vector{DType::F16, DType::F16, DType::F16, DType::F32}));
}

TEST(StorageTypes, Bf16IsForOperandsOfLargeProducts) {
  const auto storage = storage_of(parsed(kTwoProducts),
                                  {.machine = machine::cuda(), .contraction_dtype = DType::BF16});
  // The first product, the relu that the second one reads, the second one and its sums.
  EXPECT_EQ(storage, (std::vector{DType::F32, DType::BF16, DType::F32, DType::F32}));
}

TEST(StorageTypes, IntegersStayAsTheyAre) {
  EXPECT_EQ(storage_of(parsed("graph(x: i64[4]) { return add(x, x) }"),
                       {.machine = machine::cuda(), .contraction_dtype = DType::F16}),
            std::vector{DType::I64});
}

TEST(Casts, TheReportListsTensorsStoredInAnotherType) {
  const CompileOptions options{.machine = machine::cuda(), .contraction_dtype = DType::F16};
  Lowerings lowerings = lowerings_for(options);
  const auto draft = plan(parsed(kTwoProducts), {.options = options, .lowerings = lowerings});
  ASSERT_TRUE(draft) << to_string(draft.error());
  ASSERT_FALSE(draft->report.casts.empty());
  for (const CompileReport::Cast& cast : draft->report.casts) {
    EXPECT_EQ(cast.from, DType::F32);
    EXPECT_EQ(cast.to, DType::F16);
  }
}

/// Preferred layout of the first result of a graph's first node.
std::optional<AxisOrder> first_order(const char* text) {
  const Graph graph = parsed(text);
  const Decisions decisions = decide(graph, {});
  return decisions.orders[graph.outputs(graph.nodes()[0])[0].index];
}

TEST(Decisions, ActivationsOfWeightsAreRowMajor) {
  EXPECT_EQ(first_order("graph(x: f32[1, 2, 6]) { t = transpose(x) {perm=[0, 2, 1]}  "
                        "return reduce_sum(matmul(t, f32[2, 2] [1, 2, 3, 4])) }"),
            row_major(3));
  // Seen through elementwise operators.
  EXPECT_EQ(first_order("graph(x: f32[1, 2, 6]) { t = transpose(x) {perm=[0, 2, 1]}  "
                        "return reduce_sum(matmul(relu(t), f32[2, 2] [1, 2, 3, 4])) }"),
            row_major(3));
}

TEST(Decisions, MatmulsOfTwoActivationsReadThemAsTheyAre) {
  EXPECT_EQ(first_order("graph(x: f32[1, 2, 6]) { t = transpose(x) {perm=[0, 2, 1]}  "
                        "return reduce_sum(matmul(t, x)) }"),
            std::nullopt);
}

TEST(Decisions, MatmulsWithWeightsAreRowMajorWhereConsumersPreferAShortInnermostAxis) {
  const machine::Machine machine = *machine::named("haswell");  // 8 lanes
  std::string weights = "f32[2, 9] [0";
  for (int i = 1; i < 18; ++i) weights += fmt::format(", {}", i);
  const auto order_of_sum = [&](int extent) {
    const Graph graph = parsed(
        fmt::format("graph(x: f32[{0}, 5, 2], r: f32[{0}, 5, 9]) {{ y = add(matmul(x, {1}]), r)  "
                    "t = transpose(y) {{perm=[2, 1, 0]}}  return reshape(t, [{2}]) }}",
                    extent, weights, 45 * extent));
    const Decisions decisions = decide(graph, {.machine = machine});
    return decisions.orders[graph.outputs(graph.nodes()[1])[0].index];
  };
  EXPECT_EQ(order_of_sum(7), row_major(3));
  EXPECT_EQ(order_of_sum(8), (AxisOrder{2, 1, 0}));
}

/// Layout classes of a convolution of 8 channels of 32 x 32 pixels: planar, spatial.
std::pair<bool, bool> layout_of_conv(const char* weights, const machine::Machine& machine) {
  const Graph graph = parsed(
      fmt::format("graph(x: f32[1, 8, 32, 32], w: f32[{}]) {{ return conv(x, w) {{group={}}} }}",
                  weights, std::string_view(weights).starts_with("8, 1") ? 8 : 1));
  const NodeGroup group = decide(graph, {.machine = machine}).grouping.groups[0];
  return {group.planar, group.spatial};
}

TEST(Decisions, ImagesOfFewChannelsStayRowMajorOnACpu) {
  const machine::Machine cpu = *machine::named("sapphirerapids");  // 16 lanes
  const std::pair planar(true, false), spatial(false, true);
  EXPECT_EQ(layout_of_conv("1, 8, 3, 3", cpu), planar);
  EXPECT_EQ(layout_of_conv("4, 8, 3, 3", cpu), planar);
  EXPECT_EQ(layout_of_conv("5, 8, 3, 3", cpu), spatial);
  EXPECT_EQ(layout_of_conv("4, 8, 1, 1", cpu), spatial);  // no window
  EXPECT_EQ(layout_of_conv("8, 1, 3, 3", cpu), spatial);  // depthwise
  EXPECT_EQ(layout_of_conv("4, 8, 3, 3", machine::cuda()), spatial);
}

TEST(Decisions, ViewsAreSeenThrough) {
  const Graph graph = parsed(
      "graph(x: f32[4, 6]) { a = relu(x)  b = reshape(a, [24])  c = reshape(b, [2, 12])  "
      "return neg(c) }");
  const Decisions decisions = decide(graph, {});
  const ValueId a = graph.outputs(graph.nodes()[0])[0], c = graph.outputs(graph.nodes()[2])[0];
  EXPECT_EQ(decisions.behind_views(c), a);
  EXPECT_EQ(decisions.behind_views(a), a);
}

TEST(KernelGroup, ReadsWhatItDoesNotCompute) {
  const Graph graph = parsed(
      "graph(x: f32[4, 8], w: f32[8, 8], r: f32[4, 8]) { return relu(add(matmul(x, w), r)) }");
  const Decisions decisions = decide(graph, {});
  ASSERT_EQ(decisions.grouping.groups.size(), 1u);
  const NodeGroup& nodes = decisions.grouping.groups[0];
  const auto group = kernel_group(graph, decisions.grouping, nodes, nodes.nodes);
  ASSERT_TRUE(group) << to_string(group.error());
  EXPECT_EQ(group->what, "matmul+add+relu");
  EXPECT_EQ(group->reads.size(), 3u);
  for (const std::string& name : group->reads)
    EXPECT_NE(std::ranges::find(graph.inputs(), group->ids.at(name)), graph.inputs().end());
  EXPECT_EQ(group->group.results.size(), 1u);
}

TEST(HostCall, WritesSmallConstantsIntoTheText) {
  const Graph graph = parsed("graph(x: f32[4, 30]) { v, i = top_k(x, [3])  return v, i }");
  const HostCall call = host_call(graph, graph.nodes()[0]);
  EXPECT_EQ(call.inputs, std::vector{graph.inputs()[0]});
  EXPECT_THAT(call.graph, ::testing::HasSubstr("const i64[1] [3]"));
}

TEST(HostCall, GivesAValueThatIsReadTwiceOnce) {
  const Graph graph = parsed("graph(x: f32[4]) { return add(x, x) }");
  EXPECT_EQ(host_call(graph, graph.nodes()[0]).inputs, std::vector{graph.inputs()[0]});
}

TEST(DraftBuilder, EqualWeightsAndKernelsAreThereOnce) {
  DraftBuilder out;
  const runtime::Value value{.name = "w", .home = runtime::Value::Home::Weight, .shape = {2, 3}};
  const auto first = out.add_weight(7, value, {}, "packed");
  EXPECT_EQ(out.value(first).bytes, 24);
  EXPECT_EQ(out.add_weight(7, value, {}, "packed"), first);
  EXPECT_NE(out.add_weight(7, value, {}, ""), first);
  EXPECT_NE(out.add_weight(8, value, {}, "packed"), first);
  EXPECT_EQ(out.draft.weights.size(), 3u);
}

}  // namespace
}  // namespace tessera::program
