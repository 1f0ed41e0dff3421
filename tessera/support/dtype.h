#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

/// Element types of tensors.
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

/// Kind of an element independent of its width: a real number that each evaluation represents in
/// its own number type (Value), a signed or unsigned integer modulo 2^64, a boolean, or text.
enum class Sort : std::uint8_t { Value, Integer, Unsigned, Bool, Text };

std::string_view to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

/// Size of an element in memory, in bytes; 0 for strings.
int byte_width(DType dtype);
/// Number of significant bits of an element: 1 for bool, 0 for strings.
int bit_width(DType dtype);

/// Sort of an element type. Only U64 is Unsigned: the narrower unsigned types fit into a signed
/// 64-bit integer.
Sort sort_of(DType dtype);

inline bool is_float(DType dtype) {
  return sort_of(dtype) == Sort::Value;
}
/// Whether a dtype is f16 or bf16.
inline bool is_half(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16;
}
inline bool is_integer(DType dtype) {
  return sort_of(dtype) == Sort::Integer || sort_of(dtype) == Sort::Unsigned;
}

/// Signedness of an integer type of any width.
bool is_signed(DType dtype);
bool is_unsigned(DType dtype);

/// Whether this is a sub-byte integer or a float of at most 8 bits.
inline bool is_small(DType dtype) {
  return dtype > DType::String;
}
/// Type of the byte that stores an element of a small type: i8 for signed integers, otherwise u8.
/// Other types are stored as themselves.
DType storage_of(DType dtype);

/// Wraps an integer to the width of an integer type, with that type's signedness.
std::int64_t wrapped_to(DType dtype, std::int64_t value);
/// Smallest and largest number of an integer type or of bool, clamped to the range of i64.
struct IntegerRange {
  std::int64_t least = 0, most = 0;
};
IntegerRange integer_range(DType dtype);

std::string_view to_string(Sort sort);

}  // namespace tessera
