#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onnx.pb.h"
#include "tessera/onnx/import.h"
#include "tessera/support/file.h"

namespace tessera::onnx::testing {

using Names = std::vector<std::string>;

/// A node with chained setters for its attributes.
class NodeBuilder {
 public:
  explicit NodeBuilder(::onnx::NodeProto& node) : node_(node) {}

  NodeBuilder& i(const std::string& name, std::int64_t value) {
    add(name, ::onnx::AttributeProto::INT).set_i(value);
    return *this;
  }
  NodeBuilder& f(const std::string& name, float value) {
    add(name, ::onnx::AttributeProto::FLOAT).set_f(value);
    return *this;
  }
  NodeBuilder& s(const std::string& name, const std::string& value) {
    add(name, ::onnx::AttributeProto::STRING).set_s(value);
    return *this;
  }
  NodeBuilder& ints(const std::string& name, const std::vector<std::int64_t>& values) {
    add(name, ::onnx::AttributeProto::INTS).mutable_ints()->Assign(values.begin(), values.end());
    return *this;
  }
  NodeBuilder& ref(const std::string& name, const std::string& of_function) {
    add(name, ::onnx::AttributeProto::INT).set_ref_attr_name(of_function);
    return *this;
  }
  NodeBuilder& graph(const std::string& name, const ::onnx::GraphProto& value) {
    *add(name, ::onnx::AttributeProto::GRAPH).mutable_g() = value;
    return *this;
  }
  ::onnx::NodeProto& proto() { return node_; }

 private:
  ::onnx::AttributeProto& add(const std::string& name, ::onnx::AttributeProto::AttributeType type) {
    ::onnx::AttributeProto& attribute = *node_.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }
  ::onnx::NodeProto& node_;
};

template <class Holder>
NodeBuilder add_node(Holder& into, const std::string& op, const Names& inputs,
                     const Names& outputs) {
  ::onnx::NodeProto& node = *into.add_node();
  node.set_op_type(op);
  for (const std::string& name : inputs) node.add_input(name);
  for (const std::string& name : outputs) node.add_output(name);
  return NodeBuilder(node);
}

/// Sizes that are not positive stand for ones without a name.
inline void set_info(::onnx::ValueInfoProto& info, const std::string& name,
                     const std::vector<std::int64_t>& shape,
                     int dtype = ::onnx::TensorProto::FLOAT) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(dtype);
  tensor.mutable_shape();
  for (const std::int64_t size : shape) tensor.mutable_shape()->add_dim()->set_dim_value(size);
}

/// A model with one input `x` of this shape and one output `y`.
inline ::onnx::ModelProto model(std::int64_t opset, const std::vector<std::int64_t>& shape) {
  ::onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(opset);
  proto.mutable_graph()->set_name("net");
  set_info(*proto.mutable_graph()->add_input(), "x", shape);
  proto.mutable_graph()->add_output()->set_name("y");
  return proto;
}

inline void add_floats(::onnx::GraphProto& graph, const std::string& name,
                       const std::vector<float>& values) {
  ::onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  tensor.mutable_float_data()->Assign(values.begin(), values.end());
}

inline Bytes bytes_of(const std::string& text) {
  return Bytes::copy(std::as_bytes(std::span(text)));
}

inline Expected<ImportedModel> import_proto(const ::onnx::ModelProto& proto,
                                            const ImportOptions& options = {}) {
  TESSERA_TRY(const ModelFile file, parse_model(bytes_of(proto.SerializeAsString()), "m.onnx"));
  return import_model(file, options);
}

}  // namespace tessera::onnx::testing
