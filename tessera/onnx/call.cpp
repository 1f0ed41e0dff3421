#include "tessera/onnx/call.h"

namespace tessera::onnx {

Expected<Shape> Call::shape(std::size_t i) const {
  const ValueInfo input = known(i);
  if (input.type.is_ranked_tensor()) return *input.type.shape;
  return unsupported(fmt::format("the shape of input {} is not known", i),
                     fmt::format("the form of opset {} depends on it", opset));
}

void Call::set_input(std::size_t i, Val value) {
  if (inputs.size() <= i) inputs.resize(i + 1);
  inputs[i] = value;
}

std::optional<Attr> Call::take(std::string_view attr) {
  const Attr* found = attrs.find(attr);
  if (found == nullptr) return std::nullopt;
  Attr value = *found;
  attrs.erase(attr);
  return value;
}

Diagnostic Call::unsupported(std::string message, std::string note) const {
  return {.id = "onnx-unsupported-form",
          .message = fmt::format("{} of opset {}: {}", name, opset, message),
          .note = std::move(note)};
}

Diagnostic Call::wrong_kind(std::string_view attr, const Attr& found) const {
  return {.id = "onnx-unsupported-attribute",
          .message = fmt::format("attribute {} of {} is of kind {}", attr, name, kind_of(found))};
}

}  // namespace tessera::onnx
