#include "tessera/support/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace tessera {
namespace {

/// What binary16 bits mean, by the standard's formula: an oracle apart from the bit tricks.
double half_meaning(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double mantissa = bits & 1023;
  const double magnitude = exponent == 0 ? mantissa * std::pow(2.0, -24)
                                         : (1 + mantissa / 1024) * std::pow(2.0, exponent - 15);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_finite_half(std::uint16_t bits) {
  return ((bits >> 10) & 31) != 31;
}

TEST(Half, MeansWhatTheStandardSaysForAllBits) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (!is_finite_half(half)) continue;
    ASSERT_EQ(to_float(Half{half}), half_meaning(half)) << bits;
  }
}

TEST(Half, ComesBackFromFloatForAllBits) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(half);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(to_float(to_half(wide)))) << bits;
    } else {
      ASSERT_EQ(to_half(wide).bits, half.bits) << bits;
    }
  }
}

TEST(Half, RoundsEveryTieToEven) {
  for (std::uint16_t low = 0; low < 0x7bff; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const double tie = (half_meaning(low) + half_meaning(high)) / 2;
    ASSERT_EQ(to_half(tie).bits, low % 2 == 0 ? low : high) << low;
    ASSERT_EQ(to_half(std::nextafter(tie, 0.0)).bits, low) << low;
    ASSERT_EQ(to_half(std::nextafter(tie, 1e6)).bits, high) << low;
    ASSERT_EQ(to_half(-tie).bits, to_half(tie).bits | 0x8000) << low;
  }
}

TEST(Half, OverflowsToInfinityFromTheLastTie) {
  EXPECT_EQ(to_half(65519.999).bits, 0x7bff);
  EXPECT_EQ(to_half(65520.0).bits, 0x7c00);
  EXPECT_EQ(to_half(-1e300).bits, 0xfc00);
}

TEST(Half, KeepsZeroSignInfinityAndNan) {
  EXPECT_EQ(to_half(-0.0).bits, 0x8000);
  EXPECT_EQ(to_half(std::numeric_limits<double>::infinity()).bits, 0x7c00);
  EXPECT_TRUE(std::isnan(to_float(to_half(std::numeric_limits<double>::quiet_NaN()))));
}

TEST(BFloat16, ComesBackFromFloatForAllBits) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 narrow{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(narrow);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(to_float(to_bfloat16(wide)))) << bits;
    } else {
      ASSERT_EQ(to_bfloat16(wide).bits, narrow.bits) << bits;
    }
  }
}

TEST(BFloat16, RoundsEveryTieToEven) {
  for (std::uint16_t low = 0; low < 0x7f7f; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const double tie =
        (static_cast<double>(to_float(BFloat16{low})) + to_float(BFloat16{high})) / 2;
    ASSERT_EQ(to_bfloat16(tie).bits, low % 2 == 0 ? low : high) << low;
    ASSERT_EQ(to_bfloat16(-tie).bits, to_bfloat16(tie).bits | 0x8000) << low;
  }
}

TEST(BFloat16, DoesNotRoundTwice) {
  // One bit beyond a float's precision above a tie: a detour over float would lose it and round
  // down.
  const double just_above_tie = 1.0 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(to_bfloat16(just_above_tie).bits, 0x3f81);
  EXPECT_EQ(to_bfloat16(1.0 + 0x1p-8 - 0x1p-40).bits, 0x3f80);
  EXPECT_EQ(to_bfloat16(-just_above_tie).bits, 0xbf81);
}

TEST(BFloat16, OverflowsToInfinity) {
  EXPECT_EQ(to_bfloat16(1e300).bits, 0x7f80);
  EXPECT_EQ(to_bfloat16(-1e300).bits, 0xff80);
  EXPECT_EQ(to_bfloat16(0x1.fep127).bits, 0x7f7f);
}

}  // namespace
}  // namespace tessera
