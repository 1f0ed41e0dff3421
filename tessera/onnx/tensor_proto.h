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

/// Converts a TensorProto, in any of its encodings, to a Tensor. Raw and external data is not
/// copied, except to align it where it is small and to unpack sub-byte elements; large data may be
/// misaligned for its dtype.
Expected<Tensor> tensor_of(const ::onnx::TensorProto& proto, const TensorStore& store);

/// Writes shape, dtype and elements to a TensorProto; the caller sets the name. Elements are not
/// copied, except to pack sub-byte ones.
void set_tensor(::onnx::TensorProto& proto, const Tensor& tensor, Payloads& payloads);

/// Reads a file with one value of the given type, as in ONNX's test data: a TensorProto,
/// SequenceProto or OptionalProto.
Expected<Datum> read_datum(const std::filesystem::path& path, const ::onnx::TypeProto& type);

/// Parses such a file in memory.
Expected<Datum> parse_datum(const Bytes& file, const std::filesystem::path& path,
                            const ::onnx::TypeProto& type);

/// Serializes a value as such a file.
std::string encode(const Datum& datum);

}  // namespace tessera::onnx
