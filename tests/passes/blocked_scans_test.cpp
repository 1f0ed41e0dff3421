#include "tessera/passes/blocked_scans.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/interp/interp.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera::passes {
namespace {

/// Number of scans after the pass of `op(x, axis)`, which computes the same.
std::size_t scans(const char* op, const std::vector<std::int64_t>& sizes, int axis,
                  const char* attributes = "") {
  SCOPED_TRACE(fmt::format("{} of {} along {} {}", op, fmt::join(sizes, "x"), axis, attributes));
  const Graph graph = testing::parsed(fmt::format("graph(x: f32[{}]) {{ return {}(x, {}) {} }}",
                                                  fmt::join(sizes, ", "), op, axis, attributes));
  const Graph blocked = blocked_scans(graph);
  testing::expect_valid(blocked);
  const std::vector<Datum> inputs{testing::random_f32(sizes, 1)};
  const auto expected = interp::run(graph, inputs, {}), found = interp::run(blocked, inputs, {});
  EXPECT_TRUE(expected && found);
  if (expected && found) testing::expect_near((*found)[0].tensor(), (*expected)[0].tensor(), 1e-4);
  return static_cast<std::size_t>(std::ranges::count_if(
      blocked.nodes(), [](const GraphNode& node) { return node.op->name.starts_with("cum_"); }));
}

TEST(BlockedScans, AreScansOfBlocksAndOfTheirTotals) {
  for (const char* attributes : {"", "{exclusive=1}", "{reverse=1}", "{exclusive=1, reverse=1}"}) {
    EXPECT_EQ(scans("cum_sum", {512}, 0, attributes), 2U);
    EXPECT_EQ(scans("cum_sum", {2, 300, 3}, 1, attributes), 2U);
    EXPECT_EQ(scans("cum_sum", {3, 257}, -1, attributes), 2U);  // a prime number: padded
    EXPECT_EQ(scans("cum_prod", {2, 331}, 1, attributes), 2U);
  }
}

TEST(BlockedScans, OfManyBlocksAreBlockedAgain) {
  EXPECT_EQ(scans("cum_sum", {9001}, 0), 3U);
}

TEST(BlockedScans, OfFewElementsStay) {
  EXPECT_EQ(scans("cum_sum", {255, 300}, 0), 1U);
  EXPECT_EQ(scans("cum_sum", {0, 300}, 1), 1U);
}

}  // namespace
}  // namespace tessera::passes
