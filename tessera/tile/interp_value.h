#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "tessera/support/check.h"
#include "tessera/support/half.h"
#include "tessera/tile/type.h"

namespace tessera::tile::interp {

/// Run-time pointer of the interpreter: an argument and a byte offset into it. Only arguments
/// create pointers, so every access can be checked against the memory of its argument.
struct Address {
  std::int64_t argument = 0;
  std::int64_t offset = 0;
};

/// Position advanced by a number of strides; it wraps.
inline std::int64_t moved(std::int64_t from, std::int64_t steps, std::int64_t stride) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(from) +
                                   static_cast<std::uint64_t>(steps) *
                                       static_cast<std::uint64_t>(stride));
}

/// Run-time view of the interpreter: all extents and strides are known.
struct Window {
  Address base = {};
  Extents shape = {}, strides = {};
};

/// Run-time value of the interpreter: the elements of a scalar or a tile in row-major order
/// (numbers as in memory, pointers as Address), or a view. Copies share the content; only its
/// creator writes to it.
class Datum {
 public:
  Datum() = default;
  /// Uninitialized elements.
  explicit Datum(std::int64_t bytes) : bytes_(bytes) {
    if (bytes > static_cast<std::int64_t>(sizeof(few_)))
      many_.reset(new std::byte[static_cast<std::size_t>(bytes)]);
  }
  explicit Datum(Window window) : window_(std::make_shared<const Window>(std::move(window))) {}
  template <class T>
  static Datum scalar(T x) {
    Datum datum(sizeof(T));
    std::memcpy(datum.bytes(), &x, sizeof(T));
    return datum;
  }

  std::int64_t size() const { return bytes_; }
  std::byte* bytes() { return many_ ? many_.get() : few_.data(); }
  const std::byte* bytes() const { return many_ ? many_.get() : few_.data(); }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes());
  }
  const Window& window() const { return *window_; }

 private:
  // Scalars, which are most values of a loop, need no allocation.
  alignas(16) std::array<std::byte, 16> few_ = {};
  std::shared_ptr<std::byte[]> many_;
  std::int64_t bytes_ = 0;
  std::shared_ptr<const Window> window_;
};

inline std::int64_t element_bytes(const Type& type) {
  return type.is_pointer() ? static_cast<std::int64_t>(sizeof(Address)) : byte_width(type.dtype);
}

/// A stored truth value: 0 or 1.
struct Truth {
  std::uint8_t bits = 0;
};

template <class T>
constexpr bool is_real =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
/// C++ type in which a stored number is computed.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
                                    std::conditional_t<std::is_same_v<T, Truth>, bool, T>>;

template <class T>
Computed<T> loaded(T x) {
  if constexpr (std::is_same_v<T, Truth>)
    return x.bits != 0;
  else if constexpr (std::is_arithmetic_v<T>)
    return x;
  else
    return to_float(x);
}

/// Converts to the stored type: rounds once, to nearest even; integers and bools are unchanged.
template <class T, class C>
T stored(C x) {
  if constexpr (std::is_same_v<T, Half>)
    return to_half(x);
  else if constexpr (std::is_same_v<T, BFloat16>)
    return to_bfloat16(x);
  else if constexpr (std::is_same_v<T, Truth>)
    return {static_cast<std::uint8_t>(x ? 1 : 0)};
  else
    return static_cast<T>(x);
}

/// Calls visit with a number of the C++ type that stores the dtype.
template <class Visit>
decltype(auto) with_type(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::F16: return visit(Half{});
    case DType::BF16: return visit(BFloat16{});
    case DType::F32: return visit(float{});
    case DType::F64: return visit(double{});
    case DType::I8: return visit(std::int8_t{});
    case DType::I16: return visit(std::int16_t{});
    case DType::I32: return visit(std::int32_t{});
    case DType::I64: return visit(std::int64_t{});
    case DType::U8: return visit(std::uint8_t{});
    case DType::U16: return visit(std::uint16_t{});
    case DType::U32: return visit(std::uint32_t{});
    case DType::U64: return visit(std::uint64_t{});
    case DType::Bool: return visit(Truth{});
    default: break;
  }
  TESSERA_CHECK(false, "a tile of {}", to_string(dtype));
  std::abort();
}

/// Calls visit with an integer as wide as an element, for copies.
template <class Visit>
decltype(auto) with_width(std::int64_t bytes, const Visit& visit) {
  switch (bytes) {
    case 1: return visit(std::uint8_t{});
    case 2: return visit(std::uint16_t{});
    case 4: return visit(std::uint32_t{});
    case 8: return visit(std::uint64_t{});
    default: return visit(Address{});
  }
}

}  // namespace tessera::tile::interp
