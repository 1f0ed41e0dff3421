#include "tessera/passes/split_windows.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/interp/interp.h"
#include "tessera/ir/bind.h"
#include "tessera/ops/operators.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera::passes {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Number of convolutions after the pass of one with constant weights and bias, which computes the
/// same.
std::size_t parts(const Sizes& image, const Sizes& weights, const char* attributes) {
  SCOPED_TRACE(fmt::format("weights {}, {}", fmt::join(weights, "x"), attributes));
  GraphBuilder builder;
  const Val pixels = builder.input("x", DType::F32, {image.begin(), image.end()});
  const Graph open = testing::parsed(
      fmt::format("graph(x: f32[{}], w: f32[{}], b: f32[{}]) {{ return conv(x, w, b) {} }}",
                  fmt::join(image, ", "), fmt::join(weights, ", "), weights[0], attributes));
  const auto results = placed(builder, open,
                              {pixels, builder.constant(testing::random_f32(weights, 2)),
                               builder.constant(testing::random_f32({weights[0]}, 3))},
                              {});
  EXPECT_TRUE(results.has_value());
  const auto graph = builder.finish(*results);
  EXPECT_TRUE(graph.has_value());
  const Graph split = split_windows(*graph);
  testing::expect_valid(split);
  const std::vector<Datum> inputs{testing::random_f32(image, 1)};
  const auto expected = interp::run(*graph, inputs, {}), found = interp::run(split, inputs, {});
  EXPECT_TRUE(expected && found);
  if (expected && found) testing::expect_near((*found)[0].tensor(), (*expected)[0].tensor(), 1e-4);
  return static_cast<std::size_t>(std::ranges::count_if(
      split.nodes(), [](const GraphNode& node) { return node.op == op::conv; }));
}

TEST(SplitWindows, AreOneConvolutionForEachTapThatReadsTheImage) {
  EXPECT_EQ(parts({1, 600, 8, 8}, {3, 600, 3, 3}, "{pads=[6, 6, 6, 6], dilations=[6, 6]}"), 9U);
  // Taps that read nothing but padding are no part.
  EXPECT_EQ(parts({2, 600, 8, 9}, {3, 600, 3, 3}, "{pads=[9, 6, 9, 6], dilations=[9, 6]}"), 3U);
  EXPECT_EQ(parts({1, 900, 10}, {2, 900, 5}, "{pads=[8, 8], dilations=[4]}"), 5U);
}

TEST(SplitWindows, MoveByStridesOfTheImage) {
  EXPECT_EQ(parts({1, 600, 9, 8}, {3, 600, 3, 3},
                  "{pads=[6, 5, 6, 5], dilations=[6, 5], strides=[2, 3]}"),
            9U);
}

TEST(SplitWindows, StayWholeWhereTheSumCostsMore) {
  EXPECT_EQ(parts({1, 600, 8, 8}, {3, 600, 3, 3}, "{pads=[1, 1, 1, 1]}"), 1U);
  EXPECT_EQ(parts({1, 16, 8, 8}, {3, 16, 3, 3}, "{pads=[6, 6, 6, 6], dilations=[6, 6]}"), 1U);
  EXPECT_EQ(parts({1, 600, 8, 8}, {2, 300, 3, 3}, "{pads=[6, 6, 6, 6], dilations=[6, 6], group=2}"),
            1U);
}

TEST(SplitWindows, StayWholeWithoutATapThatReadsTheImageEverywhere) {
  EXPECT_EQ(parts({1, 600, 8}, {3, 600, 2}, "{pads=[3, 3], dilations=[6]}"), 1U);
}

}  // namespace
}  // namespace tessera::passes
