#pragma once

#include <cstdint>
#include <cstring>

#include "tessera/support/check.h"
#include "tessera/support/dtype.h"
#include "tessera/support/half.h"

namespace tessera {

/// Mapped weights need not be aligned.
template <class S>
S load(const std::byte* data, std::int64_t position) {
  S element;
  std::memcpy(&element, data + position * static_cast<std::int64_t>(sizeof(S)), sizeof(S));
  return element;
}

/// Calls f with a tag of the stored type of an integer or bool dtype.
template <class F>
void with_integer_storage(DType dtype, F&& f) {
  switch (dtype) {
    case DType::I8: return f(std::int8_t{});
    case DType::I16: return f(std::int16_t{});
    case DType::I32: return f(std::int32_t{});
    case DType::I64:
    case DType::U64: return f(std::int64_t{});
    case DType::U8:
    case DType::Bool: return f(std::uint8_t{});
    case DType::U16: return f(std::uint16_t{});
    case DType::U32: return f(std::uint32_t{});
    case DType::F16:
    case DType::BF16:
    case DType::F32:
    case DType::F64:
    case DType::String: break;
  }
  TESSERA_CHECK(false, "{} is not stored as integers", to_string(dtype));
}

inline float as_float(Half x) {
  return to_float(x);
}
inline float as_float(BFloat16 x) {
  return to_float(x);
}
inline float as_float(float x) {
  return x;
}
inline double as_float(double x) {
  return x;
}

/// The same for a float dtype.
template <class F>
void with_float_storage(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F16: return f(Half{});
    case DType::BF16: return f(BFloat16{});
    case DType::F32: return f(float{});
    case DType::F64: return f(double{});
    default: break;
  }
  TESSERA_CHECK(false, "{} is not stored as floats", to_string(dtype));
}

}  // namespace tessera
