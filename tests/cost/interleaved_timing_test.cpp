#include "tessera/cost/interleaved_timing.h"

#include <gtest/gtest.h>

namespace tessera::cost {
namespace {

/// Takes so long, and a little more or less each time.
TimeRuns steady(double ms) {
  return [ms, i = 0](int runs) mutable -> Expected<std::vector<double>> {
    std::vector<double> times;
    for (int r = 0; r < runs; ++r) times.push_back(ms * (1 + 0.01 * (++i % 3 - 1)));
    return times;
  };
}

TEST(Measure, PercentilesLieBetweenSamples) {
  EXPECT_EQ(percentile({}, 0.5), 0);
  EXPECT_EQ(percentile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(percentile({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_EQ(percentile({5, 1}, 1), 5);
}

TEST(Measure, TheRatioLiesInItsInterval) {
  const auto result = time_interleaved(steady(10), steady(20), {.blocks = 15, .block_ms = 100});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->our_blocks.size(), 15U);
  EXPECT_NEAR(result->ratio, 0.5, 0.02);
  EXPECT_LE(result->low, result->ratio);
  EXPECT_GE(result->high, result->ratio);
  EXPECT_LT(result->high - result->low, 0.05);
}

TEST(Measure, ABlockIsAtLeastOneRun) {
  const auto result = measure(steady(5000), {.blocks = 3, .block_ms = 1});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->size(), 3U);
}

TEST(Measure, StopsWhenItIsAskedTo) {
  const std::atomic<bool> stop = true;
  const auto result = measure(steady(1), {.stop = &stop});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().id, "stopped");
}

}  // namespace
}  // namespace tessera::cost
