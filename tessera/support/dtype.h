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
  // The small types: for storage and conversions, no arithmetic. One element to a byte in memory.
  F8E4M3FN,
  F8E4M3FNUZ,
  F8E5M2,
  F8E5M2FNUZ,
  F8E8M0,
  F4E2M1,
  I4,
  U4,
  I2,
  U2,
};
inline constexpr int kDTypeCount = static_cast<int>(DType::U2) + 1;

/// What an element is, whatever its width: a number that an evaluation interprets in its own number
/// type (Value), an integer modulo 2^64, signed or not, a truth value, or text.
enum class Sort : std::uint8_t { Value, Integer, Unsigned, Bool, Text };

std::string_view to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

/// Bytes per element in memory; 0 for strings.
int byte_width(DType dtype);
/// Bits of an element that carry information: 1 for bool, 0 for strings.
int bit_width(DType dtype);

/// Unsigned is U64 alone: the narrower unsigned types fit into a signed 64-bit integer.
Sort sort_of(DType dtype);

inline bool is_float(DType dtype) {
  return sort_of(dtype) == Sort::Value;
}
inline bool is_integer(DType dtype) {
  return sort_of(dtype) == Sort::Integer || sort_of(dtype) == Sort::Unsigned;
}

/// Integers of either kind, whatever their width.
bool is_signed(DType dtype);
bool is_unsigned(DType dtype);

/// An integer of less than 8 bits, or a float of 8 bits or less.
inline bool is_small(DType dtype) {
  return dtype > DType::String;
}
/// The type of a byte that holds an element of a small type: i8 for signed integers, else u8. Any
/// other type is its own.
DType storage_of(DType dtype);

/// An integer modulo 2^bits of an integer type, as that type reads it.
std::int64_t wrapped_to(DType dtype, std::int64_t value);
/// The least and the largest number of an integer type or of bool, as far as i64 has them.
struct IntegerRange {
  std::int64_t least = 0, most = 0;
};
IntegerRange integer_range(DType dtype);

std::string_view to_string(Sort sort);

}  // namespace tessera
