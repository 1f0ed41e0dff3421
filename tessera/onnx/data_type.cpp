#include "tessera/onnx/data_type.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace tessera::onnx {
namespace {

struct DataType {
  std::int32_t number;
  std::string_view name;
  std::optional<DType> dtype = std::nullopt;
  std::int64_t since = 1;  // the opset from which on operators that move elements take it
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
    {17, "FLOAT8E4M3FN", DType::F8E4M3FN, 21},
    {18, "FLOAT8E4M3FNUZ", DType::F8E4M3FNUZ, 21},
    {19, "FLOAT8E5M2", DType::F8E5M2, 21},
    {20, "FLOAT8E5M2FNUZ", DType::F8E5M2FNUZ, 21},
    {21, "UINT4", DType::U4, 21},
    {22, "INT4", DType::I4, 21},
    {23, "FLOAT4E2M1", DType::F4E2M1, 23},
    {24, "FLOAT8E8M0", DType::F8E8M0, 24},
    {25, "UINT2", DType::U2, 25},
    {26, "INT2", DType::I2, 25},
    {27, "FLOAT6E2M3"},
    {28, "FLOAT6E3M2"},
};

}  // namespace

Expected<DType> dtype_of(std::int64_t data_type) {
  for (const DataType& known : data_types)
    if (known.number == data_type && known.dtype) return *known.dtype;
  return Diagnostic{
      .id = "onnx-unsupported-dtype",
      .message = fmt::format("the data type {} is not supported", data_type_name(data_type)),
      .note =
          "tessera reads floating-point types of 4, 8 and 16 to 64 bits, integers of 2 to 64 "
          "bits, bool and string",
  };
}

namespace {

const DataType& row_of_dtype(DType dtype) {
  const auto found = std::ranges::find(data_types, dtype, &DataType::dtype);
  TESSERA_CHECK(found != std::end(data_types), "{} has no number in onnx", to_string(dtype));
  return *found;
}

}  // namespace

std::int32_t data_type_of(DType dtype) {
  return row_of_dtype(dtype).number;
}

std::int64_t first_opset(DType dtype) {
  return row_of_dtype(dtype).since;
}

std::string data_type_name(std::int64_t data_type) {
  for (const DataType& known : data_types)
    if (known.number == data_type) return std::string(known.name);
  return fmt::format("number {}", data_type);
}

}  // namespace tessera::onnx
