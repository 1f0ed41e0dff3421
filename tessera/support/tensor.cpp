#include "tessera/support/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/support/check.h"
#include "tessera/support/half.h"
#include "tessera/support/small_float.h"

namespace tessera {
namespace {

template <class T>
T load(const std::byte* memory, std::int64_t position) {
  T value;  // memory from files need not be aligned
  std::memcpy(&value, memory + position * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* memory, std::int64_t position, T value) {
  std::memcpy(memory + position * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

template <class T>
T saturated(double value) {
  if (std::isnan(value)) return 0;
  const double truncated = std::trunc(value);
  if (truncated <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (truncated >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(truncated);
}

}  // namespace

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 62;
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    empty = empty || extent == 0;
  }
  if (empty) return 0;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count) || count > kLimit) return std::nullopt;
  return count;
}

std::int64_t Tensor::count() const {
  const auto elements = element_count(shape);
  TESSERA_CHECK(elements.has_value(), "a tensor exists but its shape has no element count");
  return *elements;
}

Tensor Tensor::of_strings(std::vector<std::int64_t> shape, std::vector<std::string> elements) {
  return {DType::String,
          std::move(shape),
          {},
          std::make_shared<const std::vector<std::string>>(std::move(elements))};
}

double number_at(const Tensor& tensor, std::int64_t position) {
  const std::byte* memory = tensor.bytes.data();
  if (tensor.dtype == DType::F32) return load<float>(memory, position);  // as most are
  if (is_small(tensor.dtype) && is_float(tensor.dtype))
    return decoded(tensor.dtype, load<std::uint8_t>(memory, position));
  switch (tensor.dtype) {
    case DType::F16: return to_float(load<Half>(memory, position));
    case DType::BF16: return to_float(load<BFloat16>(memory, position));
    case DType::F64: return load<double>(memory, position);
    case DType::U64: return static_cast<double>(load<std::uint64_t>(memory, position));
    default: return static_cast<double>(integer_at(tensor, position));
  }
}

std::int64_t integer_at(const Tensor& tensor, std::int64_t position) {
  const std::byte* memory = tensor.bytes.data();
  if (is_float(tensor.dtype)) return saturated<std::int64_t>(number_at(tensor, position));
  switch (storage_of(tensor.dtype)) {
    case DType::I8: return load<std::int8_t>(memory, position);
    case DType::I16: return load<std::int16_t>(memory, position);
    case DType::I32: return load<std::int32_t>(memory, position);
    case DType::I64: return load<std::int64_t>(memory, position);
    case DType::U8: return load<std::uint8_t>(memory, position);
    case DType::U16: return load<std::uint16_t>(memory, position);
    case DType::U32: return load<std::uint32_t>(memory, position);
    case DType::U64: return static_cast<std::int64_t>(load<std::uint64_t>(memory, position));
    case DType::Bool: return load<std::uint8_t>(memory, position) != 0 ? 1 : 0;
    default: break;
  }
  TESSERA_CHECK(false, "text has no number");
  return 0;
}

std::vector<std::int64_t> integers_of(const Tensor& tensor) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(tensor.count()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = integer_at(tensor, static_cast<std::int64_t>(i));
  return values;
}

void store_number(DType dtype, std::byte* memory, std::int64_t position, double value) {
  if (is_small(dtype) && is_float(dtype)) return store(memory, position, encoded(dtype, value));
  if (is_small(dtype)) {
    const auto [least, most] = integer_range(dtype);
    const std::int64_t integer = std::clamp(saturated<std::int64_t>(value), least, most);
    return store_integer(dtype, memory, position, integer);
  }
  switch (dtype) {
    case DType::F16: return store(memory, position, to_half(value));
    case DType::BF16: return store(memory, position, to_bfloat16(value));
    case DType::F32: return store(memory, position, static_cast<float>(value));
    case DType::F64: return store(memory, position, value);
    case DType::I8: return store(memory, position, saturated<std::int8_t>(value));
    case DType::I16: return store(memory, position, saturated<std::int16_t>(value));
    case DType::I32: return store(memory, position, saturated<std::int32_t>(value));
    case DType::I64: return store(memory, position, saturated<std::int64_t>(value));
    case DType::U8: return store(memory, position, saturated<std::uint8_t>(value));
    case DType::U16: return store(memory, position, saturated<std::uint16_t>(value));
    case DType::U32: return store(memory, position, saturated<std::uint32_t>(value));
    case DType::U64: return store(memory, position, saturated<std::uint64_t>(value));
    case DType::Bool: return store(memory, position, static_cast<std::uint8_t>(value != 0));
    default: break;
  }
  TESSERA_CHECK(false, "text has no number");
}

void store_integer(DType dtype, std::byte* memory, std::int64_t position, std::int64_t value) {
  if (is_float(dtype)) return store_number(dtype, memory, position, static_cast<double>(value));
  if (is_small(dtype)) value = wrapped_to(dtype, value);
  switch (storage_of(dtype)) {
    case DType::I8:
    case DType::U8: return store(memory, position, static_cast<std::uint8_t>(value));
    case DType::I16:
    case DType::U16: return store(memory, position, static_cast<std::uint16_t>(value));
    case DType::I32:
    case DType::U32: return store(memory, position, static_cast<std::uint32_t>(value));
    case DType::I64:
    case DType::U64: return store(memory, position, value);
    case DType::Bool: return store(memory, position, static_cast<std::uint8_t>(value != 0));
    default: break;
  }
  TESSERA_CHECK(false, "text has no number");
}

}  // namespace tessera
