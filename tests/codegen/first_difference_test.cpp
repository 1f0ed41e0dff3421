#include "tests/codegen/first_difference.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tessera::codegen {
namespace {

std::string difference(const std::vector<float>& expected, const std::vector<float>& found,
                       double tolerance) {
  return first_difference({.dtype = DType::F32,
                           .expected = std::as_bytes(std::span(expected)),
                           .found = std::as_bytes(std::span(found))},
                          tolerance);
}

TEST(FirstDifference, ProbabilitiesAreNotZeros) {
  const std::vector<float> probabilities(4096, 1.0F / 4096), zeros(4096);
  EXPECT_EQ(difference(probabilities, zeros, 2e-2), "at 0: 0.000244140625 expected, 0 found");
}

TEST(FirstDifference, LargeNumbersElsewhereDoNotHideSmallOnes) {
  std::vector<float> expected(4096, 1e-3F);
  std::fill_n(expected.begin(), 1024, 2.0F);
  std::vector<float> found = expected;
  std::fill(found.begin() + 1024, found.end(), 0.0F);
  EXPECT_NE(difference(expected, found, 2e-2), "");
}

TEST(FirstDifference, RoundingIsNone) {
  EXPECT_EQ(difference({100, 1e-3F, -1}, {100.1F, 2e-3F, -1.001F}, 2e-3), "");
  EXPECT_EQ(difference({1e-3F, 1e-4F}, {1.001e-3F, 1.01e-4F}, 2e-3), "");
}

TEST(FirstDifference, InfinitiesAndNaNAreThemselvesAlone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = NAN;
  EXPECT_EQ(difference({kInfinity, kNaN, 1}, {kInfinity, kNaN, 1}, 0.1), "");
  EXPECT_NE(difference({kInfinity}, {5}, 0.1), "");
  EXPECT_NE(difference({5}, {kInfinity}, 0.1), "");
  EXPECT_NE(difference({5}, {kNaN}, 0.1), "");
  EXPECT_NE(difference({kNaN}, {5}, 0.1), "");
  EXPECT_NE(difference({-kInfinity, 1}, {kInfinity, 1}, 0.1), "");
}

TEST(FirstDifference, IntegersAreEqual) {
  const std::vector<std::int32_t> expected(2000, 1000000);
  std::vector<std::int32_t> found = expected;
  found[1500] += 1;
  EXPECT_EQ(first_difference({.dtype = DType::I32,
                              .expected = std::as_bytes(std::span(expected)),
                              .found = std::as_bytes(std::span(found))},
                             0.1),
            "at 1500: 1000000 expected, 1000001 found");
}

}  // namespace
}  // namespace tessera::codegen
