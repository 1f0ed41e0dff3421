#include "tessera/onnx/type_proto.h"

#include "onnx.pb.h"
#include "tessera/onnx/data_type.h"

namespace tessera::onnx {
namespace {

constexpr char kEscape = '$';

/// The symbol of a size that a file names. `_` begins names that are made up, `#` is how
/// definitions name what they solve for.
std::string escaped(const std::string& name) {
  const bool is_plain = std::string_view("_#$").find(name.front()) == std::string_view::npos;
  return is_plain ? name : kEscape + name;
}

Expected<Type> tensor_type_of(const ::onnx::TypeProto::Tensor& proto, const std::string& name) {
  TESSERA_TRY(const DType dtype, dtype_of(proto.elem_type()));
  Type type{.kind = Type::Kind::Tensor, .dtype = dtype};
  if (!proto.has_shape()) return type;
  const auto invalid = [&](std::string message) {
    return Diagnostic{
        .id = "onnx-invalid-shape", .where = {.item = name}, .message = std::move(message)};
  };
  if (proto.shape().dim_size() > kMaxRank)
    return invalid(fmt::format("{} axes are more than {}", proto.shape().dim_size(), kMaxRank));
  type.shape.emplace();
  for (const auto& dim : proto.shape().dim()) {
    const std::size_t axis = type.shape->size();
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 0)
        return invalid(fmt::format("axis {} has the size {}", axis, dim.dim_value()));
      type.shape->push_back(dim.dim_value());
    } else if (!dim.dim_param().empty()) {
      type.shape->push_back(Dim::symbol(escaped(dim.dim_param())));
    } else {
      type.shape->push_back(Dim::symbol(fmt::format("_{}_d{}", name, axis)));
    }
  }
  return type;
}

void set_tensor_type(::onnx::TypeProto::Tensor& proto, const Type& type) {
  proto.set_elem_type(data_type_of(type.dtype));
  if (!type.shape) return;
  proto.mutable_shape();
  for (const Dim& size : *type.shape) {
    auto* dim = proto.mutable_shape()->add_dim();
    const std::optional<std::string_view> symbol = size.as_symbol();
    if (const auto constant = size.constant()) {
      dim->set_dim_value(*constant);
    } else if (symbol && !symbol->starts_with('_')) {
      dim->set_dim_param(std::string(symbol->substr(symbol->starts_with(kEscape) ? 1 : 0)));
    } else if (!symbol && !size.is_undefined()) {
      dim->set_dim_param(size.to_string());
    }
  }
}

}  // namespace

Expected<Type> type_of(const ::onnx::TypeProto& proto, const std::string& name) {
  if (proto.value_case() == ::onnx::TypeProto::VALUE_NOT_SET) return Type::unknown();
  if (proto.has_tensor_type()) {
    // Old exporters write a type of which nothing is stated.
    if (proto.tensor_type().elem_type() == 0) return Type::unknown();
    return tensor_type_of(proto.tensor_type(), name);
  }
  if (proto.has_sequence_type()) {
    TESSERA_TRY(Type type, type_of(proto.sequence_type().elem_type(), name));
    type.shape.reset();  // elements may differ, and exporters state it loosely
    if (type.kind == Type::Kind::Tensor) {
      type.kind = Type::Kind::Sequence;
      return type;
    }
  }
  if (proto.has_optional_type()) {
    TESSERA_TRY(Type type, type_of(proto.optional_type().elem_type(), name));
    if (type.kind == Type::Kind::Tensor || type.kind == Type::Kind::Sequence) {
      type.kind =
          type.kind == Type::Kind::Tensor ? Type::Kind::Optional : Type::Kind::OptionalSequence;
      return type;
    }
  }
  return Diagnostic{.id = "onnx-unsupported-type",
                    .where = {.item = name},
                    .message = "a map, a sparse tensor or a nested container is not supported",
                    .note = "tessera reads tensors, sequences and optionals"};
}

void set_type(::onnx::TypeProto& proto, const Type& type) {
  switch (type.kind) {
    case Type::Kind::Unknown: break;
    case Type::Kind::Tensor: set_tensor_type(*proto.mutable_tensor_type(), type); break;
    case Type::Kind::Sequence:
      set_tensor_type(*proto.mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type(),
                      type);
      break;
    case Type::Kind::Optional:
      set_tensor_type(*proto.mutable_optional_type()->mutable_elem_type()->mutable_tensor_type(),
                      type);
      break;
    case Type::Kind::OptionalSequence:
      set_tensor_type(*proto.mutable_optional_type()
                           ->mutable_elem_type()
                           ->mutable_sequence_type()
                           ->mutable_elem_type()
                           ->mutable_tensor_type(),
                      type);
      break;
  }
}

}  // namespace tessera::onnx
