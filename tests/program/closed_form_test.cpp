#include "tessera/program/closed_form.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "tessera/support/rng.h"

namespace tessera::program {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

using Indices = std::map<std::string, double>;

/// Value of an expression of positions.
double value_of(const Scalar& scalar, const Indices& at) {
  if (const auto* constant = std::get_if<node::Constant>(&scalar.node()))
    return constant->sort == Sort::Value ? constant->number
                                         : static_cast<double>(constant->integer);
  if (const auto* index = std::get_if<node::Index>(&scalar.node())) return at.at(index->axis);
  const auto& apply = std::get<node::Apply>(scalar.node());
  const auto arg = [&](std::size_t i) { return value_of(apply.args[i], at); };
  switch (apply.fn) {
    case Fn::Add: return arg(0) + arg(1);
    case Fn::Mul: return arg(0) * arg(1);
    case Fn::LessEqual: return arg(0) <= arg(1) ? 1 : 0;
    case Fn::And: return arg(0) != 0 && arg(1) != 0 ? 1 : 0;
    case Fn::Not: return arg(0) == 0 ? 1 : 0;
    case Fn::Select: return arg(0) != 0 ? arg(1) : arg(2);
    default: ADD_FAILURE() << "no function of positions: " << to_string(apply.fn); return 0;
  }
}

template <class Element>
Tensor matrix(DType dtype, std::int64_t rows, std::int64_t columns, const Element& element) {
  Buffer buffer(static_cast<std::size_t>(rows * columns * byte_width(dtype)));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      if (is_float(dtype))
        store_number(dtype, buffer.data(), i * columns + j, element(i, j));
      else
        store_integer(dtype, buffer.data(), i * columns + j,
                      static_cast<std::int64_t>(element(i, j)));
    }
  return {dtype, {1, rows, columns}, std::move(buffer).freeze()};
}

/// The closed form, if there is one, is the constant at every position.
bool has_form(const Tensor& constant) {
  const auto form = closed_form(constant, {Scalar(0), index_of("i"), index_of("j")});
  if (!form) return false;
  const std::int64_t rows = constant.shape[1], columns = constant.shape[2];
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      EXPECT_EQ(value_of(*form, {{"i", i}, {"j", j}}), number_at(constant, i * columns + j))
          << i << ", " << j << " of " << rows << " x " << columns;
  return true;
}

TEST(ClosedForm, MasksOnEveryDiagonal) {
  for (const auto& [rows, columns] : {std::pair{9, 9}, {7, 12}, {12, 7}, {33, 2}, {2, 40}})
    for (std::int64_t diagonal = -rows; diagonal <= columns; ++diagonal) {
      const auto below = [&](std::int64_t i, std::int64_t j) { return j <= i + diagonal; };
      // All on one side is no mask.
      const bool cuts = diagonal > -rows && diagonal < columns - 1;
      EXPECT_EQ(has_form(matrix(DType::Bool, rows, columns, below)), cuts) << diagonal;
      for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64})
        EXPECT_EQ(has_form(matrix(dtype, rows, columns,
                                  [&](auto i, auto j) { return below(i, j) ? 0.0 : -kInf; })),
                  cuts);
      EXPECT_EQ(has_form(matrix(DType::Bool, rows, columns,
                                [&](auto i, auto j) { return !below(i, j); })),
                cuts);
    }
}

TEST(ClosedForm, SlidingWindowsOnEveryDiagonal) {
  for (const auto& [rows, columns] : {std::pair{9, 9}, {7, 12}, {12, 7}, {33, 2}, {2, 40}})
    for (std::int64_t first = 2 - rows; first < columns - 1; ++first)
      for (std::int64_t last = first; last < columns - 1; ++last) {
        const auto inside = [&](std::int64_t i, std::int64_t j) {
          return first <= j - i && j - i <= last;
        };
        EXPECT_TRUE(has_form(matrix(DType::Bool, rows, columns, inside)));
        EXPECT_TRUE(has_form(matrix(DType::F16, rows, columns,
                                    [&](auto i, auto j) { return inside(i, j) ? 0.0 : -kInf; })));
        EXPECT_FALSE(has_form(matrix(DType::F32, rows, columns,
                                     [&](auto i, auto j) { return inside(i, j) ? 1.0 : 0.0; })));
      }
}

TEST(ClosedForm, ThreeValuesAreNone) {
  EXPECT_FALSE(has_form(matrix(DType::F32, 10, 10, [](auto i, auto j) {
    return j < i - 2 ? -kInf : j > i ? 1.0 : 0.0;
  })));
  EXPECT_FALSE(has_form(matrix(DType::F32, 10, 10, [](auto i, auto j) {
    return j > i ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  })));
}

TEST(ClosedForm, OneOtherElementIsNone) {
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    const auto at = static_cast<std::int64_t>(rng.below(10 * 11));
    const auto diagonal = static_cast<std::int64_t>(rng.below(8)) - 3;
    const auto flipped = [&](std::int64_t i, std::int64_t j) {
      return (j <= i + diagonal) != (i * 11 + j == at);
    };
    // Where the form is of another kind, has_form compares it with every element.
    has_form(matrix(DType::Bool, 10, 11, flipped));
    has_form(
        matrix(DType::F32, 10, 11, [&](auto i, auto j) { return flipped(i, j) ? 0.0 : -1e9; }));
    EXPECT_FALSE(has_form(matrix(DType::I64, 10, 11, [&](auto i, auto j) {
      return 3 * i - 2 * j + (i * 11 + j == at && at > 12 ? 1 : 0) + (at <= 12 ? i * j : 0);
    })));
  }
}

TEST(ClosedForm, IntegersThatAreAffine) {
  for (const DType dtype : {DType::I64, DType::I32}) {
    EXPECT_TRUE(has_form(matrix(dtype, 1, 100, [](auto, auto j) { return j; })));
    EXPECT_TRUE(has_form(matrix(dtype, 100, 1, [](auto i, auto) { return 7 - 3 * i; })));
    EXPECT_TRUE(has_form(matrix(dtype, 12, 13, [](auto i, auto j) { return 100 * i - j; })));
    EXPECT_FALSE(has_form(matrix(dtype, 12, 13, [](auto i, auto j) { return i * j; })));
  }
  EXPECT_FALSE(has_form(matrix(DType::I64, 1, 100, [](auto, auto j) {
    return j == 0   ? std::numeric_limits<std::int64_t>::min()
           : j == 1 ? std::numeric_limits<std::int64_t>::max()
                    : j;
  })));
}

TEST(ClosedForm, ZerosOfBothSignsDiffer) {
  EXPECT_FALSE(has_form(matrix(DType::F32, 10, 10, [](auto i, auto j) {
    return j > i ? -kInf : i == 5 ? -0.0 : 0.0;
  })));
}

}  // namespace
}  // namespace tessera::program
