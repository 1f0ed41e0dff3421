#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

/// The element types of tensors.
enum class DType : std::uint8_t {
  F16,
  BF16,
  F32,
  F64,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  Bool,
  String,  // for opaque operators only
};

/// What an element is, whatever its width: a number that an evaluation interprets in its own number
/// type (Value), an integer modulo 2^64, signed or not, a truth value, or text.
enum class Sort : std::uint8_t { Value, Integer, Unsigned, Bool, Text };

std::string_view to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

/// Bytes per element; 0 for strings.
int byte_width(DType dtype);

/// Unsigned is U64 alone: the narrower unsigned types fit into a signed 64-bit integer.
Sort sort_of(DType dtype);

inline bool is_float(DType dtype) {
  return sort_of(dtype) == Sort::Value;
}
inline bool is_integer(DType dtype) {
  return sort_of(dtype) == Sort::Integer || sort_of(dtype) == Sort::Unsigned;
}

/// Integers of either kind, whatever their width.
inline bool is_signed(DType dtype) {
  return dtype >= DType::I8 && dtype <= DType::I64;
}
inline bool is_unsigned(DType dtype) {
  return dtype >= DType::U8 && dtype <= DType::U64;
}

std::string_view to_string(Sort sort);

}  // namespace tessera
