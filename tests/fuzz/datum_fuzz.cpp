#include "onnx.pb.h"
#include "tessera/onnx/tensor_proto.h"
#include "tests/fuzz/fuzz.h"

using namespace tessera;

namespace {

::onnx::TypeProto tensor_type() {
  ::onnx::TypeProto type;
  type.mutable_tensor_type();
  return type;
}

::onnx::TypeProto sequence_of(const ::onnx::TypeProto& element) {
  ::onnx::TypeProto type;
  *type.mutable_sequence_type()->mutable_elem_type() = element;
  return type;
}

::onnx::TypeProto optional_of(const ::onnx::TypeProto& content) {
  ::onnx::TypeProto type;
  *type.mutable_optional_type()->mutable_elem_type() = content;
  return type;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ::onnx::TypeProto types[] = {tensor_type(), sequence_of(tensor_type()),
                                            optional_of(sequence_of(tensor_type()))};
  const Bytes file = fuzz::bytes_of(data, size);
  for (const ::onnx::TypeProto& type : types) {
    const auto datum = tessera::onnx::parse_datum(file, "fuzz.pb", type);
    if (!datum || !datum->is_tensor()) continue;
    const Tensor& tensor = datum->tensor();
    if (tensor.dtype != DType::String && tensor.count() > 0)
      (void)number_at(tensor, tensor.count() - 1);
  }
  return 0;
}
