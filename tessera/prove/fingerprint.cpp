#include "tessera/prove/fingerprint.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/prove/elements.h"

namespace tessera::prove {
namespace {

constexpr double kClose = 2e-3;
constexpr double kSignedOffset = 128;

/// A pseudo-random weight in [-1, 1) of an index.
double weight(std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9ull;
  z ^= z >> 32;
  return static_cast<double>(static_cast<std::int64_t>(z)) * 0x1p-63;
}

bool close(double a, double b) {
  return std::fabs(a - b) <= kClose * std::max(1.0, std::max(std::fabs(a), std::fabs(b)));
}

bool same_multiset(const Fingerprint& a, const Fingerprint& b) {
  if (a.dtype != b.dtype || a.telling != b.telling) return false;
  return std::fabs(a.norm - b.norm) <= kClose * std::max(a.norm, b.norm) && close(a.sum, b.sum);
}

}  // namespace

Fingerprint fingerprint(const Tensor& tensor) {
  Fingerprint print{.dtype = tensor.dtype, .shape = tensor.shape};
  const std::size_t rank = tensor.shape.size();
  print.by_axis.resize(rank);
  if (tensor.dtype == DType::String) return print;
  std::vector<std::vector<double>> weights(rank);
  for (std::size_t axis = 0; axis < rank; ++axis)
    for (std::int64_t i = 0; i < tensor.shape[axis]; ++i)
      weights[axis].push_back(weight(static_cast<std::uint64_t>(i)));
  // Rows along the last axis, so that the other weights are looked up once in a row.
  const std::int64_t count = tensor.count();
  const std::int64_t row = rank == 0 ? 1 : tensor.shape.back();
  std::vector<std::int64_t> at(rank);
  const Elements elements(tensor);
  double squares = 0;
  for (std::int64_t start = 0; start < count; start += std::max<std::int64_t>(row, 1)) {
    double in_row = 0;
    for (std::int64_t i = 0; i < row; ++i) {
      const double x = elements[start + i];
      in_row += x;
      squares += x * x;
      print.in_order += x * weight(static_cast<std::uint64_t>(start + i));
      if (rank > 0) print.by_axis[rank - 1] += x * weights[rank - 1][static_cast<std::size_t>(i)];
    }
    print.sum += in_row;
    for (std::size_t axis = 0; axis + 1 < rank; ++axis)
      print.by_axis[axis] += in_row * weights[axis][static_cast<std::size_t>(at[axis])];
    for (std::size_t axis = rank; axis-- > 1;) {
      if (++at[axis - 1] < tensor.shape[axis - 1]) break;
      at[axis - 1] = 0;
    }
  }
  print.norm = std::sqrt(squares);
  print.telling = std::isfinite(print.norm) && print.norm > 0;
  if (!print.telling) {
    print.norm = print.sum = print.in_order = 0;
    std::ranges::fill(print.by_axis, 0.0);
    return print;
  }
  print.sum /= print.norm;
  print.in_order /= print.norm;
  for (double& moment : print.by_axis) moment /= print.norm;
  return print;
}

bool may_reshape(const Fingerprint& a, const Fingerprint& b) {
  return same_multiset(a, b) && close(a.in_order, b.in_order) &&
         element_count(a.shape) == element_count(b.shape);
}

bool may_equal(const Fingerprint& a, const Fingerprint& b) {
  return a.shape == b.shape && may_reshape(a, b);
}

bool may_be_signed(const Fingerprint& i8, const Fingerprint& u8) {
  if (i8.dtype != DType::I8 || u8.dtype != DType::U8 || i8.shape != u8.shape) return false;
  const std::int64_t count = element_count(i8.shape).value_or(0);
  const double sum = i8.sum * i8.norm, offset = kSignedOffset * static_cast<double>(count);
  Fingerprint moved = i8;
  moved.dtype = DType::U8;
  moved.norm = std::sqrt(i8.norm * i8.norm + kSignedOffset * (2 * sum + offset));
  moved.telling = moved.norm > 0;
  if (!moved.telling) return !u8.telling;
  moved.sum = (sum + offset) / moved.norm;
  if (!same_multiset(moved, u8)) return false;
  double weights = 0;
  for (std::int64_t i = 0; i < count; ++i) weights += weight(static_cast<std::uint64_t>(i));
  return close((i8.in_order * i8.norm + kSignedOffset * weights) / moved.norm, u8.in_order);
}

std::optional<std::vector<std::int64_t>> may_transpose(const Fingerprint& a, const Fingerprint& b) {
  if (!a.telling || !same_multiset(a, b) || a.shape.size() != b.shape.size()) return std::nullopt;
  std::vector<std::int64_t> order;
  std::vector<bool> used(a.shape.size());
  for (std::size_t axis = 0; axis < b.shape.size(); ++axis) {
    std::size_t from = 0;
    while (from < used.size() && (used[from] || a.shape[from] != b.shape[axis] ||
                                  !close(a.by_axis[from], b.by_axis[axis])))
      ++from;
    if (from == used.size()) return std::nullopt;
    used[from] = true;
    order.push_back(static_cast<std::int64_t>(from));
  }
  return order;
}

}  // namespace tessera::prove
