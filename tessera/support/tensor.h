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

/// Dense row-major array whose copies share memory. Numbers are in `bytes`, text is in `strings`.
struct Tensor {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape = {};
  Bytes bytes = {};
  std::shared_ptr<const std::vector<std::string>> strings = {};

  std::int64_t count() const;

  /// Elements in storage form; T has the width of the dtype.
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

/// Product of the extents, or nothing if one is negative or the product exceeds 2^62.
std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape);

/// Element of any numeric dtype as a number.
double number_at(const Tensor& tensor, std::int64_t position);
std::int64_t integer_at(const Tensor& tensor, std::int64_t position);

/// Elements of an integer or bool tensor.
std::vector<std::int64_t> integers_of(const Tensor& tensor);

/// Stores `value` as `dtype` at element `position` of raw memory: floats round to nearest even,
/// integers wrap. A number outside of an integer type's range saturates; NaN becomes 0.
void store_number(DType dtype, std::byte* memory, std::int64_t position, double value);
void store_integer(DType dtype, std::byte* memory, std::int64_t position, std::int64_t value);

}  // namespace tessera
