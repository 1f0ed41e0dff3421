#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/support/bytes.h"
#include "tessera/support/dtype.h"

namespace tessera {

/// A dense row-major array, shared by its copies. Numbers lie in `bytes`, text in `strings`.
struct Tensor {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape = {};
  Bytes bytes = {};
  std::shared_ptr<const std::vector<std::string>> strings = {};

  std::int64_t count() const;

  /// Elements as stored; T has the width of the dtype.
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  template <class T>
  static Tensor of(DType dtype, std::vector<std::int64_t> shape, std::span<const T> elements) {
    return {dtype, std::move(shape), Bytes::copy(std::as_bytes(elements))};
  }
  static Tensor of_strings(std::vector<std::int64_t> shape, std::vector<std::string> elements);
};

/// The product of the extents, or nothing if one is negative or the product exceeds 2^62.
std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape);

/// One element as a number, whatever the dtype (not for strings).
double number_at(const Tensor& tensor, std::int64_t position);
std::int64_t integer_at(const Tensor& tensor, std::int64_t position);

/// All elements of an integer or bool tensor.
std::vector<std::int64_t> integers_of(const Tensor& tensor);

/// Writes `value` as `dtype` at element `position` of raw memory: rounds to nearest even, wraps
/// integers. A value outside of an integer type's range saturates; NaN becomes 0.
void store_number(DType dtype, std::byte* memory, std::int64_t position, double value);
void store_integer(DType dtype, std::byte* memory, std::int64_t position, std::int64_t value);

}  // namespace tessera
