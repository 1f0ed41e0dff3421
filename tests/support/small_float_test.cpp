#include "tessera/support/small_float.h"

#include <gtest/gtest.h>

#include <array>

#include "tessera/support/tensor.h"
#include "tests/support/small_float_cases.h"

namespace tessera {
namespace {

using testing::boundaries;
using testing::not_negative;
using testing::small_floats;

/// The bits of the nearest of all numbers, found by looking at each; of two that are as near, those
/// of the even one.
int nearest(const std::vector<double>& finite, double size) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < finite.size(); ++i) {
    const double before = std::fabs(finite[best] - size), here = std::fabs(finite[i] - size);
    if (here < before || (here == before && i % 2 == 0)) best = i;
  }
  return static_cast<int>(best);
}

/// The number that a small float other than f8e8m0 is to become, as the table of ONNX's Cast
/// without saturation says it.
double rounded(DType dtype, const std::vector<double>& numbers, double x) {
  const std::vector<double> finite = not_negative(dtype, numbers);
  const double most = finite.back(), next = 2 * most - finite[finite.size() - 2];
  const bool is_odd = finite.size() % 2 == 0;  // the largest: a tie goes to what is beyond
  const double limit = (most + next) / 2;
  if (dtype == DType::F4E2M1) {
    if (std::isnan(x)) return 0;
  } else {
    if (std::isnan(x)) return x;
    if (std::fabs(x) > limit || (std::fabs(x) == limit && is_odd))
      return dtype == DType::F8E5M2 ? std::copysign(INFINITY, x) : NAN;
  }
  return std::copysign(
      finite[static_cast<std::size_t>(nearest(finite, std::min(std::fabs(x), next)))], x);
}

TEST(SmallFloat, MeansWhatOthersReadForAllBits) {
  const auto all = small_floats();
  ASSERT_EQ(all.size(), 6);
  for (const auto& [dtype, numbers] : all) {
    ASSERT_EQ(numbers.size(), std::size_t{1} << bit_width(dtype));
    for (std::size_t bits = 0; bits < numbers.size(); ++bits) {
      const float number = decoded(dtype, static_cast<std::uint8_t>(bits));
      if (std::isnan(numbers[bits])) {
        ASSERT_TRUE(std::isnan(number)) << to_string(dtype) << " " << bits;
        continue;
      }
      ASSERT_EQ(number, numbers[bits]) << to_string(dtype) << " " << bits;
      ASSERT_EQ(std::signbit(number), std::signbit(numbers[bits])) << to_string(dtype) << bits;
      ASSERT_EQ(encoded(dtype, number), bits) << to_string(dtype);
    }
  }
}

TEST(SmallFloat, RoundsToTheNearestNumber) {
  for (const auto& [dtype, numbers] : small_floats()) {
    if (dtype == DType::F8E8M0) continue;
    std::vector<double> points = boundaries<float>(dtype, numbers);
    const std::vector<double> finer = boundaries<double>(dtype, numbers);
    points.insert(points.end(), finer.begin(), finer.end());
    for (const double x : points) {
      const double expected = rounded(dtype, numbers, x);
      const float found = decoded(dtype, encoded(dtype, x));
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(found)) << to_string(dtype) << " of " << x;
      } else {
        ASSERT_EQ(found, expected) << to_string(dtype) << " of " << x;
      }
    }
  }
}

TEST(SmallFloat, TakesThePowerOfTwoBelow) {
  const DType dtype = DType::F8E8M0;
  const std::vector<double> numbers = small_floats().at(dtype);
  for (const double x : boundaries<double>(dtype, numbers)) {
    const float found = decoded(dtype, encoded(dtype, x));
    if (!(x >= 0x1p-127 && x < 0x1p128)) {
      ASSERT_TRUE(std::isnan(found)) << x;
      continue;
    }
    ASSERT_LE(found, x);
    ASSERT_GT(2.0 * found, x);
  }
}

TEST(SmallFloat, KeepsTheSignOfZeroWhereThereIsOne) {
  for (const DType dtype : {DType::F8E4M3FN, DType::F8E5M2, DType::F4E2M1})
    EXPECT_TRUE(std::signbit(decoded(dtype, encoded(dtype, -1e-30)))) << to_string(dtype);
  for (const DType dtype : {DType::F8E4M3FNUZ, DType::F8E5M2FNUZ})
    EXPECT_EQ(encoded(dtype, -1e-30), 0) << to_string(dtype);
}

TEST(SmallFloat, HasLimits) {
  EXPECT_EQ(largest_number(DType::F8E4M3FN), 448);
  EXPECT_EQ(largest_number(DType::F8E4M3FNUZ), 240);
  EXPECT_EQ(largest_number(DType::F8E5M2), 57344);
  EXPECT_EQ(largest_number(DType::F8E5M2FNUZ), 57344);
  EXPECT_EQ(largest_number(DType::F4E2M1), 6);
  EXPECT_EQ(largest_number(DType::F8E8M0), 0x1p127);
  EXPECT_EQ(smallest_number(DType::F8E8M0), 0x1p-127);
  EXPECT_EQ(smallest_number(DType::F8E4M3FN), 0x1p-9);
}

TEST(SmallInteger, WrapsAndSaturates) {
  struct Case {
    DType dtype;
    std::int64_t given, wrapped, saturated;
  };
  for (const Case& c : std::to_array<Case>({{DType::I4, 9, -7, 7},
                                            {DType::I4, -9, 7, -8},
                                            {DType::I4, 100, 4, 7},
                                            {DType::U4, 17, 1, 15},
                                            {DType::U4, -1, 15, 0},
                                            {DType::I2, 2, -2, 1},
                                            {DType::I2, -3, 1, -2},
                                            {DType::U2, 5, 1, 3},
                                            {DType::U2, -4, 0, 0}})) {
    std::byte memory{};
    const auto read = [&] {
      return integer_at({c.dtype, {}, Bytes::copy(std::span(&memory, 1))}, 0);
    };
    store_integer(c.dtype, &memory, 0, c.given);
    EXPECT_EQ(read(), c.wrapped) << to_string(c.dtype) << " of " << c.given;
    store_number(c.dtype, &memory, 0, static_cast<double>(c.given));
    EXPECT_EQ(read(), c.saturated) << to_string(c.dtype) << " of " << c.given;
  }
}

}  // namespace
}  // namespace tessera
