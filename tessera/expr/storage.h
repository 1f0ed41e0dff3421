#pragma once

#include <cstdint>
#include <cstring>

#include "tessera/support/check.h"
#include "tessera/support/dtype.h"
#include "tessera/support/half.h"
#include "tessera/support/small_float.h"

namespace tessera {

/// Loads an element; mapped weights may be misaligned.
template <class S>
S load(const std::byte* data, std::int64_t position) {
  S element;
  std::memcpy(&element, data + position * static_cast<std::int64_t>(sizeof(S)), sizeof(S));
  return element;
}

/// Calls f with a value of the C++ type that stores an integer or bool dtype.
template <class F>
void with_integer_storage(DType dtype, F&& f) {
  switch (is_float(dtype) ? dtype : storage_of(dtype)) {
    case DType::I8: return f(std::int8_t{});
    case DType::I16: return f(std::int16_t{});
    case DType::I32: return f(std::int32_t{});
    case DType::I64:
    case DType::U64: return f(std::int64_t{});
    case DType::U8:
    case DType::Bool: return f(std::uint8_t{});
    case DType::U16: return f(std::uint16_t{});
    case DType::U32: return f(std::uint32_t{});
    default: break;
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
template <DType dtype>
float as_float(SmallFloat<dtype> x) {
  return to_float(x);
}

/// Calls f with a value of the C++ type that stores a float dtype.
template <class F>
void with_float_storage(DType dtype, F&& f) {
  switch (dtype) {
    case DType::F16: return f(Half{});
    case DType::BF16: return f(BFloat16{});
    case DType::F32: return f(float{});
    case DType::F64: return f(double{});
    case DType::F8E4M3FN: return f(SmallFloat<DType::F8E4M3FN>{});
    case DType::F8E4M3FNUZ: return f(SmallFloat<DType::F8E4M3FNUZ>{});
    case DType::F8E5M2: return f(SmallFloat<DType::F8E5M2>{});
    case DType::F8E5M2FNUZ: return f(SmallFloat<DType::F8E5M2FNUZ>{});
    case DType::F8E8M0: return f(SmallFloat<DType::F8E8M0>{});
    case DType::F4E2M1: return f(SmallFloat<DType::F4E2M1>{});
    default: break;
  }
  TESSERA_CHECK(false, "{} is not stored as floats", to_string(dtype));
}

}  // namespace tessera
