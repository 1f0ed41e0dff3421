#include "tessera/driver/golden.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/evaluate.h"

namespace tessera {
namespace {

// rms = 2: the mean of 2, -2, 2, -2 is 0 and its norm 4.
const Golden::Output kGolden{.shape = {4}, .mean = 0, .l2 = 4, .at = {0, 3}, .values = {2, -2}};

TEST(Golden, MeasuresSamplesInUnitsOfRms) {
  const Distance distance = tessera::distance(testing::f32({4}, {2.2, -2, 2, -2}), kGolden);
  EXPECT_NEAR(distance.error, 0.1, 1e-6);
  EXPECT_NEAR(distance.mean_error, 0.025, 1e-6);
  EXPECT_FALSE(distance.within(0.09));
  EXPECT_TRUE(distance.within(0.11));
}

TEST(Golden, SeesWhatTheSamplesMiss) {
  const Distance distance = tessera::distance(testing::f32({4}, {2, 5, 2, -2}), kGolden);
  EXPECT_EQ(distance.error, 0);
  EXPECT_FALSE(distance.within(0.1));
}

TEST(Golden, TakesNaNForInfinitelyFar) {
  EXPECT_FALSE(
      tessera::distance(testing::f32({4}, {std::nan(""), -2, 2, -2}), kGolden).within(1e9));
}

TEST(Golden, RefusesAnotherShape) {
  EXPECT_EQ(tessera::distance(testing::f32({2, 2}, {2, -2, 2, -2}), kGolden).problem,
            "the shape is another");
}

}  // namespace
}  // namespace tessera
