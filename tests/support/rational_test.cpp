#include "tessera/support/rational.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/support/rng.h"

namespace tessera {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

TEST(Rational, IsInLowestTerms) {
  EXPECT_EQ(Rational::of(6, -4), Rational::of(-3, 2));
  EXPECT_EQ(Rational::of(6, -4).to_string(), "-3/2");
  EXPECT_EQ(Rational::of(0, -7), Rational(0));
  EXPECT_TRUE(Rational::of(8, 4).is(2));
  EXPECT_EQ(Rational::of(8, 4).integer(), 2);
  EXPECT_EQ(Rational::of(1, 2).integer(), std::nullopt);
}

TEST(Rational, ComputesAsFractionsDo) {
  Rng rng(1);
  const auto draw = [&] { return static_cast<std::int64_t>(rng.below(41)) - 20; };
  for (int trial = 0; trial < 1000; ++trial) {
    const std::int64_t a = draw(), c = draw(), b = 1 + std::abs(draw()), d = 1 + std::abs(draw());
    const Rational x = Rational::of(a, b), y = Rational::of(c, d);
    EXPECT_EQ(x + y, Rational::of(a * d + c * b, b * d));
    EXPECT_EQ(x - y, Rational::of(a * d - c * b, b * d));
    EXPECT_EQ(x * y, Rational::of(a * c, b * d));
    EXPECT_EQ((x / y).is_undefined(), c == 0);
    if (c != 0) {
      EXPECT_EQ(x / y, Rational::of(a * d, b * c));
    }
    EXPECT_EQ(x.less_than(y), a * d < c * b);
    EXPECT_EQ(x.sign(), a < 0 ? -1 : a > 0 ? 1 : 0);
    EXPECT_EQ(x == y, a * d == c * b);
    EXPECT_DOUBLE_EQ(x.to_double(), static_cast<double>(a) / static_cast<double>(b));
  }
}

TEST(Rational, TakesWholePowers) {
  EXPECT_EQ(Rational::of(-2, 3).power(3), Rational::of(-8, 27));
  EXPECT_EQ(Rational::of(-2, 3).power(-2), Rational::of(9, 4));
  EXPECT_EQ(Rational::of(-2, 3).power(0), Rational(1));
  EXPECT_TRUE(Rational(0).power(-1).is_undefined());
  EXPECT_TRUE(Rational(3).power(1'000'000'000'000).is_undefined());
  EXPECT_TRUE(Rational(3).power(kMin).is_undefined());
}

TEST(Rational, RoundsToIntegers) {
  EXPECT_EQ(Rational::of(7, 2).floor(), Rational(3));
  EXPECT_EQ(Rational::of(-7, 2).floor(), Rational(-4));
  EXPECT_EQ(Rational(-3).floor(), Rational(-3));
  EXPECT_EQ(Rational::of(5, 2).round(), Rational(2));
  EXPECT_EQ(Rational::of(7, 2).round(), Rational(4));
  EXPECT_EQ(Rational::of(-5, 2).round(), Rational(-2));
  EXPECT_EQ(Rational::of(-8, 3).round(), Rational(-3));
  EXPECT_TRUE(Rational::undefined().round().is_undefined());
}

TEST(Rational, IsUndefinedBeyond127Bits) {
  const Rational large = Rational(kMax) * Rational(kMax);
  EXPECT_FALSE(large.is_undefined());
  EXPECT_TRUE((large * large).is_undefined());
  EXPECT_TRUE((large * 2 + large * 2).is_undefined());
  EXPECT_TRUE((large.inverse() + (large - 1).inverse()).is_undefined());
  EXPECT_EQ(large * large.inverse(), Rational(1));
  EXPECT_EQ(large.integer(), std::nullopt);
  EXPECT_EQ(Rational(kMin).integer(), kMin);
  EXPECT_EQ(Rational::of(kMin, -1).to_string(), "9223372036854775808");
}

TEST(Rational, PoisonsWhatIsComputedFromTheUndefined) {
  const Rational none = Rational::undefined();
  EXPECT_TRUE(Rational::of(1, 0).is_undefined());
  EXPECT_TRUE(Rational(0).inverse().is_undefined());
  for (const Rational& x : {none + 1, none * 0, none - none, none / none, -none, none.inverse(),
                            none.power(2), common_measure(none, 1), common_measure(1, none)})
    EXPECT_TRUE(x.is_undefined());
  EXPECT_FALSE(none.is(0));
  EXPECT_FALSE(none.is_integer());
  EXPECT_FALSE(none.less_than(1));
  EXPECT_FALSE(Rational(-1).less_than(none));
  EXPECT_EQ(none.squares(), std::nullopt);
}

TEST(Rational, ADoubleIsADyadicFraction) {
  EXPECT_EQ(Rational::of(0.375), Rational::of(3, 8));
  EXPECT_EQ(Rational::of(-1e3), Rational(-1000));
  EXPECT_EQ(Rational::of(0.0), Rational(0));
  EXPECT_EQ(Rational::of(0x1p60), Rational(2).power(60));
  EXPECT_EQ(Rational::of(0x1p-100), Rational(2).power(-100));
  EXPECT_NE(Rational::of(0.1), Rational::of(1, 10));
  for (const double value : {0.1, 1e-5, -123.456, 1.0 / 3, 3.5e20})
    EXPECT_EQ(Rational::of(value).to_double(), value);
  for (const double value : {HUGE_VAL, -HUGE_VAL, std::nan(""), 1e300, 1e-300})
    EXPECT_TRUE(Rational::of(value).is_undefined()) << value;
}

TEST(Rational, HasItsSquaresTakenOut) {
  Rng rng(2);
  for (int trial = 0; trial < 500; ++trial) {
    const auto a = static_cast<std::int64_t>(1 + rng.below(2000));
    const auto b = static_cast<std::int64_t>(1 + rng.below(2000));
    const Rational x = Rational::of(a, b);
    const auto squares = x.squares();
    ASSERT_TRUE(squares);
    EXPECT_EQ(squares->root * squares->root * squares->rest, x);
    EXPECT_GT(squares->root.sign(), 0);
    for (std::int64_t p = 2; p * p <= squares->rest; ++p) EXPECT_NE(squares->rest % (p * p), 0);
  }
  EXPECT_EQ(Rational::of(8, 9).squares()->root, Rational::of(2, 3));
  EXPECT_EQ(Rational::of(8, 9).squares()->rest, 2);
  EXPECT_EQ(Rational(1009 * 1009).squares()->root, Rational(1009));
  EXPECT_EQ(Rational(0).squares(), std::nullopt);
  EXPECT_EQ(Rational(-4).squares(), std::nullopt);
}

TEST(Rational, HasAMeasureInCommonWithAnother) {
  EXPECT_EQ(common_measure(Rational::of(1, 2), Rational::of(1, 3)), Rational::of(1, 6));
  EXPECT_EQ(common_measure(Rational(-6), Rational(4)), Rational(2));
  EXPECT_EQ(common_measure(Rational::of(-3, 4), Rational::of(-3, 4)), Rational::of(3, 4));
  EXPECT_EQ(common_measure(Rational(0), Rational::of(-2, 3)), Rational::of(2, 3));
  Rng rng(3);
  for (int trial = 0; trial < 200; ++trial) {
    const Rational x = Rational::of(static_cast<std::int64_t>(rng.below(99)) - 49, 7);
    const Rational y = Rational::of(1 + static_cast<std::int64_t>(rng.below(50)), 30);
    const Rational measure = common_measure(x, y);
    EXPECT_GT(measure.sign(), 0);
    EXPECT_TRUE((x / measure).is_integer());
    EXPECT_TRUE((y / measure).is_integer());
  }
}

}  // namespace
}  // namespace tessera
