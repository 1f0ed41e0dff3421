#pragma once

#include <filesystem>
#include <string>

#include "tessera/onnx/model_file.h"
#include "tessera/support/datum.h"
#include "tessera/support/tensor.h"

namespace onnx {
class TensorProto;
class TypeProto;
}  // namespace onnx

namespace tessera::onnx {

/// The tensor of a message, whatever way its elements are stored. Raw and external data is not
/// copied, except to align it where it is small and to unpack elements of less than a byte; large
/// data may lie misaligned for its dtype.
Expected<Tensor> tensor_of(const ::onnx::TensorProto& proto, const TensorStore& store);

/// The inverse: shape, dtype and elements; the name is the caller's. Elements are not copied,
/// except to pack those of less than a byte.
void set_tensor(::onnx::TensorProto& proto, const Tensor& tensor, Payloads& payloads);

/// A file with one value of the given type, as the tests of ONNX hold inputs and outputs: a
/// TensorProto, SequenceProto or OptionalProto.
Expected<Datum> read_datum(const std::filesystem::path& path, const ::onnx::TypeProto& type);

/// The same for a file already in memory.
Expected<Datum> parse_datum(const Bytes& file, const std::filesystem::path& path,
                            const ::onnx::TypeProto& type);

/// The content of such a file.
std::string encode(const Datum& datum);

}  // namespace tessera::onnx
