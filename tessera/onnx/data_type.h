#pragma once

#include <cstdint>
#include <string>

#include "tessera/support/dtype.h"
#include "tessera/support/expected.h"

namespace tessera::onnx {

/// Dtype of an ONNX data type number (TensorProto.DataType); the diagnostic names types that are
/// not supported.
Expected<DType> dtype_of(std::int64_t data_type);

/// ONNX data type number of a dtype.
std::int32_t data_type_of(DType dtype);

/// First opset that can express a dtype.
std::int64_t first_opset(DType dtype);

/// ONNX name of a data type, also of those newer than the installed schema.
std::string data_type_name(std::int64_t data_type);

}  // namespace tessera::onnx
