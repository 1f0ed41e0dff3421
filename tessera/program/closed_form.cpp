#include "tessera/program/closed_form.h"

#include <algorithm>
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

/// Diagonal of a matrix: elements [i, j] with j <= i + diagonal are those of the last row's begin,
/// the others those of the first row's end.
template <class Bits>
std::optional<std::int64_t> diagonal_of(std::span<const std::byte> bytes, std::int64_t rows,
                                        std::int64_t columns) {
  const auto element = [&](std::int64_t at) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at * static_cast<std::int64_t>(sizeof(Bits)), sizeof(Bits));
    return bits;
  };
  const Bits below = element((rows - 1) * columns), above = element(columns - 1);
  if (below == above) return std::nullopt;
  std::optional<std::int64_t> diagonal;
  for (std::int64_t i = 0; i < rows; ++i) {
    std::int64_t count = 0;
    while (count < columns && element(i * columns + count) == below) ++count;
    for (std::int64_t j = count; j < columns; ++j)
      if (element(i * columns + j) != above) return std::nullopt;
    if (count > 0 && count < columns && !diagonal) {
      if (i > 0 && count > 1) return std::nullopt;  // rows before this one had none
      diagonal = count - 1 - i;
    }
    // Before the diagonal enters the matrix there is none, after it has left there are all.
    if (diagonal ? count != std::clamp<std::int64_t>(i + *diagonal + 1, 0, columns) : count != 0)
      return std::nullopt;
  }
  return diagonal;
}

std::optional<Scalar> triangular_form(const Tensor& constant, const std::vector<Scalar>& at) {
  const std::vector<std::int64_t>& shape = constant.shape;
  if (shape.size() < 2 || (constant.dtype != DType::Bool && constant.dtype != DType::F32))
    return std::nullopt;
  const std::int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows * columns != constant.count() || rows < 2 || columns < 2) return std::nullopt;
  const auto diagonal = constant.dtype == DType::Bool
                            ? diagonal_of<std::uint8_t>(constant.bytes.view(), rows, columns)
                            : diagonal_of<std::uint32_t>(constant.bytes.view(), rows, columns);
  if (!diagonal) return std::nullopt;
  const Scalar is_below = at.back() <= at[at.size() - 2] + Scalar(*diagonal);
  const double below = number_at(constant, (rows - 1) * columns),
               above = number_at(constant, columns - 1);
  if (constant.dtype == DType::Bool) return below != 0 ? is_below : !is_below;
  return apply(Fn::Select, {is_below, below, above});
}

}  // namespace

std::optional<Scalar> closed_form(const Tensor& constant, const std::vector<Scalar>& at) {
  if (constant.count() < kFewestElements || constant.count() > kMostElements) return std::nullopt;
  if (auto form = affine_form(constant, at)) return form;
  return triangular_form(constant, at);
}

}  // namespace tessera::program
