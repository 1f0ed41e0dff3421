#include "tessera/onnx/attribute.h"

#include <algorithm>
#include <cstring>

#include "onnx.pb.h"
#include "tessera/onnx/tensor_proto.h"
#include "tessera/onnx/type_proto.h"

namespace tessera::onnx {
namespace {

using ::onnx::AttributeProto;

/// Limit on the bytes of a densified sparse tensor, lower where few elements are stored: a small
/// file may declare a huge tensor.
constexpr std::uint64_t kDenseLimit = std::uint64_t{1} << 26;
std::uint64_t dense_limit(std::uint64_t stored) {
  return std::min(kDenseLimit, (stored + 64) << 16);
}

/// Attribute kind; files of the first IR version do not state it, and the field that is set
/// decides.
AttributeProto::AttributeType kind_of(const AttributeProto& proto) {
  if (proto.type() != AttributeProto::UNDEFINED) return proto.type();
  if (proto.has_f()) return AttributeProto::FLOAT;
  if (proto.has_i()) return AttributeProto::INT;
  if (proto.has_s()) return AttributeProto::STRING;
  if (proto.has_t()) return AttributeProto::TENSOR;
  if (proto.has_g()) return AttributeProto::GRAPH;
  if (proto.floats_size() > 0) return AttributeProto::FLOATS;
  if (proto.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::INTS;
}

Diagnostic invalid_sparse(std::string message) {
  return {.id = "onnx-invalid-tensor", .message = std::move(message)};
}

}  // namespace

const AttributeProto* resolved(const AttributeProto& proto, const Environment& env) {
  if (proto.ref_attr_name().empty()) return &proto;
  const auto found = env.find(proto.ref_attr_name());
  return found == env.end() ? nullptr : found->second;
}

Expected<Attr> attr_of(const AttributeProto& proto, const TensorStore& store) {
  switch (kind_of(proto)) {
    case AttributeProto::FLOAT: return Attr(static_cast<double>(proto.f()));
    case AttributeProto::INT: return Attr(std::int64_t{proto.i()});
    case AttributeProto::STRING: return Attr(proto.s());
    case AttributeProto::FLOATS: return Attr(Floats(proto.floats().begin(), proto.floats().end()));
    case AttributeProto::INTS: return Attr(Ints(proto.ints().begin(), proto.ints().end()));
    case AttributeProto::STRINGS:
      return Attr(Strings(proto.strings().begin(), proto.strings().end()));
    case AttributeProto::TENSOR: {
      TESSERA_TRY(Tensor tensor, tensor_of(proto.t(), store));
      return Attr(std::move(tensor));
    }
    case AttributeProto::SPARSE_TENSOR: {
      TESSERA_TRY(Tensor tensor, dense(proto.sparse_tensor(), store));
      return Attr(std::move(tensor));
    }
    case AttributeProto::TYPE_PROTO: {
      TESSERA_TRY(const Type type, type_of(proto.tp(), proto.name()));
      return Attr(to_string(type));
    }
    case AttributeProto::GRAPH:
    case AttributeProto::GRAPHS:
    case AttributeProto::TENSORS:
    case AttributeProto::SPARSE_TENSORS:
    case AttributeProto::TYPE_PROTOS:
    case AttributeProto::UNDEFINED: break;
  }
  return Diagnostic{
      .id = "onnx-unsupported-attribute",
      .message = fmt::format("attribute {} is a list of tensors, graphs or types", proto.name())};
}

Expected<Attrs> attrs_of(const ::onnx::NodeProto& node, const Environment& env,
                         const TensorStore& store) {
  constexpr int most = 1024;  // far more than any operator has
  if (node.attribute_size() > most)
    return Diagnostic{.id = "onnx-unsupported-attribute",
                      .message = fmt::format("the node has {} attributes", node.attribute_size()),
                      .note = fmt::format("up to {} are read", most)};
  Attrs attrs;
  for (const AttributeProto& stated : node.attribute()) {
    const AttributeProto* proto = resolved(stated, env);
    if (proto == nullptr || kind_of(*proto) == AttributeProto::GRAPH) continue;
    if (attrs.has(stated.name()))
      return Diagnostic{.id = "onnx-duplicate-name",
                        .message = fmt::format("attribute {} is given twice", stated.name())};
    TESSERA_TRY(Attr attr, attr_of(*proto, store));
    attrs.set(stated.name(), std::move(attr));
  }
  return attrs;
}

Expected<Tensor> dense(const ::onnx::SparseTensorProto& proto, const TensorStore& store) {
  TESSERA_TRY(const Tensor values, tensor_of(proto.values(), store));
  TESSERA_TRY(const Tensor indices, tensor_of(proto.indices(), store));
  Tensor tensor{values.dtype, {proto.dims().begin(), proto.dims().end()}};
  const std::optional<std::int64_t> count = element_count(tensor.shape);
  const auto width = static_cast<std::uint64_t>(byte_width(values.dtype));
  const std::uint64_t limit = dense_limit(values.bytes.size() + indices.bytes.size());
  if (!count || width == 0 || tensor.shape.size() > kMaxRank ||
      static_cast<std::uint64_t>(*count) > limit / width)
    return Diagnostic{.id = "onnx-unsupported-sparse",
                      .message = "a sparse tensor is text, invalid or too large to spread out",
                      .note = fmt::format("up to {} bytes are", limit)};
  const auto rank = static_cast<std::int64_t>(tensor.shape.size());
  const std::int64_t stored = values.count();
  const bool linear = indices.shape.size() == 1;
  if (indices.dtype != DType::I64 || indices.count() != stored * (linear ? 1 : rank))
    return invalid_sparse("the positions of a sparse tensor do not fit its values");
  Buffer buffer(static_cast<std::size_t>(*count) * width);
  for (std::int64_t i = 0; i < stored; ++i) {
    std::int64_t at = linear ? integer_at(indices, i) : 0;
    for (std::int64_t axis = 0; !linear && axis < rank; ++axis) {
      const std::int64_t index = integer_at(indices, i * rank + axis);
      const std::int64_t extent = tensor.shape[static_cast<std::size_t>(axis)];
      if (index < 0 || index >= extent) return invalid_sparse("a position is out of range");
      at = at * extent + index;
    }
    if (at < 0 || at >= *count) return invalid_sparse("a position is out of range");
    std::memcpy(buffer.data() + static_cast<std::uint64_t>(at) * width,
                values.bytes.data() + static_cast<std::uint64_t>(i) * width, width);
  }
  tensor.bytes = std::move(buffer).freeze();
  return tensor;
}

void set_attr(AttributeProto& proto, const Attr& attr, Payloads& payloads) {
  if (const auto* i = std::get_if<std::int64_t>(&attr)) {
    proto.set_type(AttributeProto::INT);
    proto.set_i(*i);
  } else if (const auto* f = std::get_if<double>(&attr)) {
    proto.set_type(AttributeProto::FLOAT);
    proto.set_f(static_cast<float>(*f));
  } else if (const auto* s = std::get_if<std::string>(&attr)) {
    proto.set_type(AttributeProto::STRING);
    proto.set_s(*s);
  } else if (const auto* ints = std::get_if<Ints>(&attr)) {
    proto.set_type(AttributeProto::INTS);
    proto.mutable_ints()->Assign(ints->begin(), ints->end());
  } else if (const auto* floats = std::get_if<Floats>(&attr)) {
    proto.set_type(AttributeProto::FLOATS);
    for (const double number : *floats) proto.add_floats(static_cast<float>(number));
  } else if (const auto* strings = std::get_if<Strings>(&attr)) {
    proto.set_type(AttributeProto::STRINGS);
    for (const std::string& text : *strings) proto.add_strings(text);
  } else if (const auto* tensor = std::get_if<Tensor>(&attr)) {
    proto.set_type(AttributeProto::TENSOR);
    set_tensor(*proto.mutable_t(), *tensor, payloads);
  }
}

}  // namespace tessera::onnx
