#include "tessera/program/closed_form.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

namespace tessera::program {
namespace {

/// Larger ones are not looked at.
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;
/// Smaller matrices are as fast to read.
constexpr std::int64_t kFewestElements = 64;

std::optional<Scalar> affine_form(const Tensor& constant, const std::vector<Scalar>& at) {
  if (constant.dtype != DType::I64 && constant.dtype != DType::I32) return std::nullopt;
  const std::vector<std::int64_t>& shape = constant.shape;
  const std::int64_t base = integer_at(constant, 0);
  std::vector<std::int64_t> steps(shape.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] > 1 && __builtin_sub_overflow(integer_at(constant, stride), base, &steps[i]))
      return std::nullopt;
    stride *= shape[i];
  }
  for (std::int64_t element = 0; element < constant.count(); ++element) {
    std::int64_t rest = element, value = base;
    for (std::size_t i = shape.size(); i-- > 0;) {
      std::int64_t product = 0;
      if (__builtin_mul_overflow(steps[i], rest % shape[i], &product) ||
          __builtin_add_overflow(value, product, &value))
        return std::nullopt;
      rest /= shape[i];
    }
    if (value != integer_at(constant, element)) return std::nullopt;
  }
  Scalar sum = base;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (steps[i] != 0) sum = sum + at[i] * Scalar(steps[i]);
  return sum;
}

/// Diagonals j - i at which a matrix changes its value, in ascending order; nothing unless every
/// diagonal has one value, or with more than two changes.
template <class Bits>
std::optional<std::vector<std::int64_t>> changes_of(std::span<const std::byte> bytes,
                                                    std::int64_t rows, std::int64_t columns) {
  const auto element = [&](std::int64_t i, std::int64_t j) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + (i * columns + j) * static_cast<std::int64_t>(sizeof(Bits)),
                sizeof(Bits));
    return bits;
  };
  const auto of_diagonal = [&](std::int64_t d) {
    return element(std::max<std::int64_t>(-d, 0), std::max<std::int64_t>(d, 0));
  };
  std::vector<std::int64_t> changes;
  for (std::int64_t d = 2 - rows; d < columns; ++d)
    if (of_diagonal(d) != of_diagonal(d - 1)) {
      if (changes.size() == 2) return std::nullopt;
      changes.push_back(d);
    }
  for (std::int64_t i = 1; i < rows; ++i)
    for (std::int64_t j = 1; j < columns; ++j)
      if (element(i, j) != element(i - 1, j - 1)) return std::nullopt;
  // Beside a band there is the same value on both sides.
  if (changes.size() == 2 && of_diagonal(1 - rows) != of_diagonal(columns - 1)) return std::nullopt;
  return changes;
}

std::optional<std::vector<std::int64_t>> changes_of(const Tensor& matrix, std::int64_t rows,
                                                    std::int64_t columns) {
  switch (byte_width(matrix.dtype)) {
    case 1: return changes_of<std::uint8_t>(matrix.bytes.view(), rows, columns);
    case 2: return changes_of<std::uint16_t>(matrix.bytes.view(), rows, columns);
    case 4: return changes_of<std::uint32_t>(matrix.bytes.view(), rows, columns);
    default: return changes_of<std::uint64_t>(matrix.bytes.view(), rows, columns);
  }
}

std::optional<Scalar> banded_form(const Tensor& constant, const std::vector<Scalar>& at) {
  const std::vector<std::int64_t>& shape = constant.shape;
  const bool is_bool = constant.dtype == DType::Bool;
  if (shape.size() < 2 || !(is_bool || is_float(constant.dtype)) || is_small(constant.dtype))
    return std::nullopt;
  const std::int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows * columns != constant.count() || rows < 2 || columns < 2) return std::nullopt;
  const auto changes = changes_of(constant, rows, columns);
  if (!changes || changes->empty()) return std::nullopt;
  const Scalar &i = at[at.size() - 2], &j = at.back();
  // j - i < changes.back(), and not below the first of two.
  Scalar is_inside = j <= i + Scalar(changes->back() - 1);
  if (changes->size() == 2) is_inside = is_inside && i + Scalar(changes->front()) <= j;
  const std::int64_t last = changes->back() - 1;
  const double inside = number_at(constant, last < 0 ? -last * columns : last),
               outside = number_at(constant, columns - 1);
  if (std::isnan(inside) || std::isnan(outside)) return std::nullopt;
  // A band of weights stays one: an identity matrix is an operand like others.
  if (changes->size() == 2 && !is_bool && std::isfinite(inside) && std::isfinite(outside))
    return std::nullopt;
  if (is_bool) return inside != 0 ? is_inside : !is_inside;
  return apply(Fn::Select, {is_inside, inside, outside});
}

}  // namespace

std::optional<Scalar> closed_form(const Tensor& constant, const std::vector<Scalar>& at) {
  if (constant.count() < kFewestElements || constant.count() > kMostElements) return std::nullopt;
  if (auto form = affine_form(constant, at)) return form;
  return banded_form(constant, at);
}

}  // namespace tessera::program
