#pragma once

#include <cstdint>
#include <string>

#include "tessera/support/dtype.h"
#include "tessera/support/expected.h"

namespace tessera::onnx {

/// The dtype with this number in ONNX (TensorProto.DataType); a diagnostic names the types that
/// Tessera does not compute with.
Expected<DType> dtype_of(std::int64_t data_type);

/// The number of a dtype in ONNX.
std::int32_t data_type_of(DType dtype);

/// The opset from which on a dtype is written.
std::int64_t first_opset(DType dtype);

/// The name that ONNX gives to a data type, also to those newer than the installed schema.
std::string data_type_name(std::int64_t data_type);

}  // namespace tessera::onnx
