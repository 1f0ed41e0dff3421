#pragma once

#include <map>
#include <optional>
#include <string>

#include "tessera/onnx/model_file.h"
#include "tessera/support/attrs.h"

namespace onnx {
class AttributeProto;
class NodeProto;
class SparseTensorProto;
}  // namespace onnx

namespace tessera::onnx {

/// What the attributes of the function around a node are, for references to them.
using Environment = std::map<std::string, const ::onnx::AttributeProto*, std::less<>>;

/// The attribute that is meant: itself, or what it refers to; null if that is not given.
const ::onnx::AttributeProto* resolved(const ::onnx::AttributeProto& proto, const Environment& env);

/// The value of an attribute that is no graph.
Expected<Attr> attr_of(const ::onnx::AttributeProto& proto, const TensorStore& store);

/// All attributes of a node but graphs.
Expected<Attrs> attrs_of(const ::onnx::NodeProto& node, const Environment& env,
                         const TensorStore& store);

/// The same elements, zeros included; a diagnostic if they are too many.
Expected<Tensor> dense(const ::onnx::SparseTensorProto& proto, const TensorStore& store);

/// The inverse of attr_of; the name is the caller's.
void set_attr(::onnx::AttributeProto& proto, const Attr& attr, Payloads& payloads);

}  // namespace tessera::onnx
