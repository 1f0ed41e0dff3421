#include "tessera/support/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "tessera/support/check.h"

namespace tessera {
namespace {

/// One value written as `dtype` and read again.
double stored_number(DType dtype, double value) {
  Buffer buffer(8);
  store_number(dtype, buffer.data(), 0, value);
  return number_at(Tensor{dtype, {}, std::move(buffer).freeze()}, 0);
}

std::int64_t stored_integer(DType dtype, std::int64_t value) {
  Buffer buffer(8);
  store_integer(dtype, buffer.data(), 0, value);
  return integer_at(Tensor{dtype, {}, std::move(buffer).freeze()}, 0);
}

TEST(ElementCount, OfAScalarIsOne) {
  EXPECT_EQ(element_count({}), 1);
}

TEST(ElementCount, MultipliesTheExtents) {
  EXPECT_EQ(element_count(std::array<std::int64_t, 3>{2, 3, 4}), 24);
}

TEST(ElementCount, IsZeroWithAnEmptyAxisHoweverLargeTheOthers) {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(element_count(std::array<std::int64_t, 3>{huge, huge, 0}), 0);
}

TEST(ElementCount, RefusesNegativeAndOverflowingExtents) {
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(element_count(std::array<std::int64_t, 2>{4, -1}), std::nullopt);
  EXPECT_EQ(element_count(std::array<std::int64_t, 2>{0, -1}), std::nullopt);
  EXPECT_EQ(element_count(std::array<std::int64_t, 2>{huge, huge}), std::nullopt);
}

TEST(Tensor, ReadsItsElementsAsNumbers) {
  const std::vector<float> elements = {1.5F, -2.0F, 3.0F};
  const auto tensor = Tensor::of<float>(DType::F32, {3}, elements);
  EXPECT_EQ(tensor.count(), 3);
  EXPECT_EQ(number_at(tensor, 0), 1.5);
  EXPECT_EQ(integer_at(tensor, 1), -2);
}

TEST(Tensor, SharesItsBytesWithItsCopies) {
  const std::vector<float> elements = {1.0F};
  const auto tensor = Tensor::of<float>(DType::F32, {1}, elements);
  const Tensor copy = tensor;
  EXPECT_EQ(copy.bytes.data(), tensor.bytes.data());
}

TEST(Tensor, ReadsElementsThatAreNotAligned) {
  Buffer buffer(9);
  const float value = 2.5F;
  std::memcpy(buffer.data() + 1, &value, sizeof value);
  const Tensor tensor{DType::F32, {2}, std::move(buffer).freeze().slice(1, 8)};
  EXPECT_EQ(number_at(tensor, 0), 2.5);
}

TEST(Tensor, ListsItsIntegers) {
  const std::vector<std::int32_t> elements = {3, -1, 7};
  EXPECT_EQ(integers_of(Tensor::of<std::int32_t>(DType::I32, {3}, elements)),
            (std::vector<std::int64_t>{3, -1, 7}));
}

TEST(Tensor, OfTextHasNoNumbers) {
  const Tensor tensor = Tensor::of_strings({1}, {"a"});
  EXPECT_EQ(tensor.count(), 1);
  EXPECT_THROW(number_at(tensor, 0), InternalError);
}

TEST(StoreNumber, KeepsSmallIntegersInEveryNumericType) {
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64, DType::I8, DType::I16,
                            DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64})
    EXPECT_EQ(stored_number(dtype, 100.0), 100.0) << to_string(dtype);
}

TEST(StoreNumber, SaturatesAndTruncatesTowardsZero) {
  EXPECT_EQ(stored_number(DType::I8, 1e9), 127);
  EXPECT_EQ(stored_number(DType::I8, -1e9), -128);
  EXPECT_EQ(stored_number(DType::U8, -3.0), 0);
  EXPECT_EQ(stored_number(DType::I32, -2.9), -2);
  EXPECT_EQ(stored_integer(DType::I64, std::numeric_limits<std::int64_t>::max()),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(stored_number(DType::U64, 1e30), std::ldexp(1.0, 64));
}

TEST(StoreNumber, MakesZeroOfNanInAnInteger) {
  EXPECT_EQ(stored_number(DType::I32, std::numeric_limits<double>::quiet_NaN()), 0);
}

TEST(StoreNumber, MakesTrueOfWhatIsNotZero) {
  EXPECT_EQ(stored_number(DType::Bool, 0.25), 1);
  EXPECT_EQ(stored_number(DType::Bool, 0.0), 0);
}

TEST(StoreInteger, Wraps) {
  EXPECT_EQ(stored_integer(DType::I8, 200), -56);
  EXPECT_EQ(stored_integer(DType::U8, -1), 255);
  EXPECT_EQ(stored_integer(DType::I32, std::int64_t{1} << 31), -(std::int64_t{1} << 31));
}

TEST(StoreInteger, RoundsIntoAFloat) {
  EXPECT_EQ(stored_integer(DType::F16, 2049), 2048);
  EXPECT_EQ(stored_integer(DType::F16, 2051), 2052);
}

}  // namespace
}  // namespace tessera
