#include "tessera/onnx/data_type.h"

#include <optional>
#include <string_view>

namespace tessera::onnx {
namespace {

struct DataType {
  std::int32_t number;
  std::string_view name;
  std::optional<DType> dtype = std::nullopt;
};

constexpr DataType data_types[] = {
    {0, "UNDEFINED"},
    {1, "FLOAT", DType::F32},
    {2, "UINT8", DType::U8},
    {3, "INT8", DType::I8},
    {4, "UINT16", DType::U16},
    {5, "INT16", DType::I16},
    {6, "INT32", DType::I32},
    {7, "INT64", DType::I64},
    {8, "STRING", DType::String},
    {9, "BOOL", DType::Bool},
    {10, "FLOAT16", DType::F16},
    {11, "DOUBLE", DType::F64},
    {12, "UINT32", DType::U32},
    {13, "UINT64", DType::U64},
    {14, "COMPLEX64"},
    {15, "COMPLEX128"},
    {16, "BFLOAT16", DType::BF16},
    {17, "FLOAT8E4M3FN"},
    {18, "FLOAT8E4M3FNUZ"},
    {19, "FLOAT8E5M2"},
    {20, "FLOAT8E5M2FNUZ"},
    {21, "UINT4"},
    {22, "INT4"},
    {23, "FLOAT4E2M1"},
    {24, "FLOAT8E8M0"},
    {25, "UINT2"},
    {26, "INT2"},
};

}  // namespace

Expected<DType> dtype_of(std::int64_t data_type) {
  for (const DataType& known : data_types)
    if (known.number == data_type && known.dtype) return *known.dtype;
  return Diagnostic{
      .id = "onnx-unsupported-dtype",
      .message = fmt::format("the data type {} is not supported", data_type_name(data_type)),
      .note =
          "tessera reads floating-point types of 16 to 64 bits, integers of 8 to 64 bits, bool "
          "and string",
  };
}

std::int32_t data_type_of(DType dtype) {
  for (const DataType& known : data_types)
    if (known.dtype == dtype) return known.number;
  TESSERA_CHECK(false, "{} has no number in onnx", to_string(dtype));
  return 0;
}

std::string data_type_name(std::int64_t data_type) {
  for (const DataType& known : data_types)
    if (known.number == data_type) return std::string(known.name);
  return fmt::format("number {}", data_type);
}

}  // namespace tessera::onnx
