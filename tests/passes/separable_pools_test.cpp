#include "tessera/passes/separable_pools.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/interp/interp.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera::passes {
namespace {

/// Windows of the pools after the pass of `max_pool(x)`, which computes the same bits.
std::vector<Ints> windows(const std::vector<std::int64_t>& sizes, const char* attributes) {
  SCOPED_TRACE(fmt::format("{} {}", fmt::join(sizes, "x"), attributes));
  const Graph graph = testing::parsed(fmt::format("graph(x: f32[{}]) {{ return max_pool(x) {} }}",
                                                  fmt::join(sizes, ", "), attributes));
  const Graph changed = separable_pools(graph);
  testing::expect_valid(changed);
  const std::vector<Datum> inputs{testing::random_f32(sizes, 1)};
  const auto expected = interp::run(graph, inputs, {}), found = interp::run(changed, inputs, {});
  EXPECT_TRUE(expected && found);
  if (expected && found) testing::expect_near((*found)[0].tensor(), (*expected)[0].tensor(), 0);
  std::vector<Ints> result;
  for (const GraphNode& node : changed.nodes()) result.push_back(node.attrs->ints("kernel_shape"));
  return result;
}

TEST(SeparablePools, OfLargeWindowsGoAlongOneAxisAfterTheOther) {
  EXPECT_EQ(windows({2, 3, 9, 8}, "{kernel_shape=[5, 7], pads=[2, 3, 2, 3]}"),
            (std::vector<Ints>{{1, 7}, {5, 1}}));
  EXPECT_EQ(windows({1, 2, 21, 22},
                    "{kernel_shape=[5, 5], strides=[2, 3], pads=[1, 0, 0, 2], dilations=[1, 2], "
                    "ceil_mode=1}"),
            (std::vector<Ints>{{1, 5}, {5, 1}}));
  EXPECT_EQ(windows({1, 2, 5, 6, 7}, "{kernel_shape=[3, 3, 3], strides=[2, 1, 2]}"),
            (std::vector<Ints>{{1, 1, 3}, {1, 3, 1}, {3, 1, 1}}));
}

TEST(SeparablePools, OfSmallWindowsStay) {
  EXPECT_EQ(windows({1, 2, 9, 9}, "{kernel_shape=[3, 3]}"), (std::vector<Ints>{{3, 3}}));
  EXPECT_EQ(windows({1, 2, 40}, "{kernel_shape=[30]}"), (std::vector<Ints>{{30}}));
}

TEST(SeparablePools, WithIndicesStay) {
  const Graph graph = testing::parsed(
      "graph(x: f32[1, 2, 9, 9]) { y, i = max_pool(x) {kernel_shape=[5, 5]}  return y, i }");
  EXPECT_EQ(separable_pools(graph).nodes().size(), 1U);
}

}  // namespace
}  // namespace tessera::passes
