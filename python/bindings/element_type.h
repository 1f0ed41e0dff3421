#pragma once

#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "tessera/support/dtype.h"

namespace tessera::python {

/// Names of an element type: in DLPack (code and bits), what numpy and ml_dtypes call it, and its
/// number in numpy's C API.
struct ElementType {
  DType dtype;
  std::uint8_t code, bits;
  const char* name;
  int numpy_number = -1;  // none: numpy has no such type
};
using Code = nanobind::dlpack::dtype_code;
constexpr std::uint8_t code(Code value) {
  return static_cast<std::uint8_t>(value);
}
inline constexpr std::array kElementTypes = {
    ElementType{DType::F16, code(Code::Float), 16, "float16", 23},
    ElementType{DType::BF16, code(Code::Bfloat), 16, "bfloat16"},
    ElementType{DType::F32, code(Code::Float), 32, "float32", 11},
    ElementType{DType::F64, code(Code::Float), 64, "float64", 12},
    ElementType{DType::I8, code(Code::Int), 8, "int8", 1},
    ElementType{DType::I16, code(Code::Int), 16, "int16", 3},
    ElementType{DType::I32, code(Code::Int), 32, "int32", 5},
    ElementType{DType::I64, code(Code::Int), 64, "int64", 7},
    ElementType{DType::U8, code(Code::UInt), 8, "uint8", 2},
    ElementType{DType::U16, code(Code::UInt), 16, "uint16", 4},
    ElementType{DType::U32, code(Code::UInt), 32, "uint32", 6},
    ElementType{DType::U64, code(Code::UInt), 64, "uint64", 8},
    ElementType{DType::Bool, code(Code::Bool), 8, "bool", 0},
    ElementType{DType::F8E4M3FN, 10, 8, "float8_e4m3fn"},
    ElementType{DType::F8E4M3FNUZ, 11, 8, "float8_e4m3fnuz"},
    ElementType{DType::F8E5M2, 12, 8, "float8_e5m2"},
    ElementType{DType::F8E5M2FNUZ, 13, 8, "float8_e5m2fnuz"},
    ElementType{DType::F8E8M0, 14, 8, "float8_e8m0fnu"},
    ElementType{DType::F4E2M1, 17, 4, "float4_e2m1fn"},
    ElementType{DType::I4, code(Code::Int), 4, "int4"},
    ElementType{DType::U4, code(Code::UInt), 4, "uint4"},
    ElementType{DType::I2, code(Code::Int), 2, "int2"},
    ElementType{DType::U2, code(Code::UInt), 2, "uint2"},
};

inline const ElementType* element_type(DType dtype) {
  return std::ranges::find(kElementTypes, dtype, &ElementType::dtype);
}

/// The type of a DLPack array, or null.
inline const ElementType* element_type(const nanobind::dlpack::dtype& type) {
  const auto* const found = std::ranges::find_if(kElementTypes, [&](const ElementType& known) {
    return known.code == type.code && known.bits == type.bits && type.lanes == 1;
  });
  return found == kElementTypes.end() ? nullptr : found;
}

}  // namespace tessera::python
