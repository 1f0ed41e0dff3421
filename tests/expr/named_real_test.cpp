#include "tessera/expr/named_real.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/support/rng.h"
#include "tests/support/sum_value.h"

namespace tessera::algebra {
namespace {

std::string name_of(double constant) {
  Names names;
  const auto named = named_real(names, constant);
  return named ? named->name : "";
}

TEST(NamedReal, HasAName) {
  const std::vector<std::pair<float, std::string>> cases = {{0.70710677f, "1/sqrt(2)"},
                                                            {-0.70710677f, "-1/sqrt(2)"},
                                                            {1.4142135f, "sqrt(2)"},
                                                            {0.7978846f, "sqrt(2/pi)"},
                                                            {3.1415927f, "pi"},
                                                            {6.2831855f, "2*pi"},
                                                            {1.5707964f, "pi/2"},
                                                            {0.31830987f, "1/pi"},
                                                            {1.1283792f, "2/sqrt(pi)"},
                                                            {0.33333334f, "1/3"},
                                                            {0.044715f, "8943/200000"},
                                                            {1e-5f, "1/100000"},
                                                            {0.1f, "1/10"},
                                                            {0.14285715f, "1/7"},
                                                            {0.35355338f * 0.35355338f, "1/8"}};
  for (const auto& [constant, name] : cases)
    EXPECT_EQ(name_of(static_cast<double>(constant)), name) << constant;
  EXPECT_EQ(name_of(0.1), "1/10");
  EXPECT_EQ(name_of(std::sqrt(0.5)), "1/sqrt(2)");
}

TEST(NamedReal, APlainBinaryFractionStandsForItself) {
  for (const double constant : {0.0, 1.0, -3.0, 0.5, 0.125, 100.25, 65536.0, 0x1p-12})
    EXPECT_EQ(name_of(constant), "") << constant;
  for (const double constant : {HUGE_VAL, -HUGE_VAL, std::nan("")})
    EXPECT_EQ(name_of(constant), "") << constant;
}

TEST(NamedReal, OtherNumbersHaveNone) {
  for (const double constant : {0.70710, 0.7071077, 0.79788, 3.14160001, 0.123456789, 1.41422356})
    EXPECT_TRUE(name_of(constant).find("sqrt") == std::string::npos &&
                name_of(constant).find("pi") == std::string::npos)
        << constant << " is " << name_of(constant);
  EXPECT_EQ(name_of(0.123456789), "");
}

// Masks hold it. It has no next number, so that no distance counts as rounding.
TEST(NamedReal, TheLargestNumberOfATypeStandsForItself) {
  for (const double constant : {0x1.fffffep127, 0x1.fffffffffffffp1023}) {
    EXPECT_EQ(name_of(constant), "");
    EXPECT_EQ(name_of(-constant), "");
  }
}

// Files hold decimals and quotients that were rounded once.
TEST(NamedReal, ANeighbourOfADecimalIsAnotherNumber) {
  for (const float constant : {0.1f, 1e-5f, 1.0f, 1.0f / 3, 0.044715f})
    for (const float toward : {0.0f, 2.0f})
      EXPECT_EQ(name_of(static_cast<double>(std::nextafter(constant, toward))), "") << constant;
  EXPECT_EQ(name_of(std::nextafter(0.1, 1)), "");
  EXPECT_EQ(name_of(0.7071067700001), "");  // no number of f32, and far from 1/sqrt(2) in f64
}

TEST(NamedReal, ANeighbourOfAPowerOfTwoIsAnotherNumberUnlessItIsASquareOfARoot) {
  EXPECT_EQ(name_of(static_cast<double>(std::nextafter(0.125f, 1.0f))), "");
  EXPECT_EQ(name_of(static_cast<double>(std::nextafter(0.25f, 0.0f))), "");
  EXPECT_EQ(name_of(static_cast<double>(std::nextafter(std::nextafter(0.125f, 0.0f), 0.0f))), "");
}

TEST(NamedReal, IsWithinTwoUnitsInTheLastPlace) {
  Rng rng(1);
  Names names;
  int found = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    // Near to something that may have a name, or far from all.
    const double base = trial % 2 == 0 ? 1 / std::sqrt(static_cast<double>(2 + rng.below(300)))
                                       : static_cast<double>(rng.below(1'000'000)) * 1e-5;
    const auto constant =
        static_cast<double>(static_cast<float>(base * (1 + 1e-7 * (rng.uniform() - 0.5))));
    const auto named = named_real(names, constant);
    if (!named) continue;
    ++found;
    const double value = testing::SumValue({}, {}, 1)(named->value);
    const auto single = static_cast<float>(constant);
    const double unit = static_cast<double>(std::nextafter(single, HUGE_VALF)) - constant;
    EXPECT_LE(std::fabs(value - constant), 2.001 * unit) << constant << " as " << named->name;
  }
  EXPECT_GE(found, 1000);
}

}  // namespace
}  // namespace tessera::algebra
