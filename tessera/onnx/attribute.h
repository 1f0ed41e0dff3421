#pragma once

#include <map>
#include <optional>
#include <string>

#include "tessera/onnx/model_file.h"
#include "tessera/support/attrs.h"

/// Conversion between ONNX attributes (AttributeProto) and Attr.
namespace onnx {
class AttributeProto;
class NodeProto;
class SparseTensorProto;
}  // namespace onnx

namespace tessera::onnx {

/// Attributes of the enclosing function, for references to them (ref_attr_name).
using Environment = std::map<std::string, const ::onnx::AttributeProto*, std::less<>>;

/// Resolves a reference: the attribute itself or the one it refers to; null if that is not given.
const ::onnx::AttributeProto* resolved(const ::onnx::AttributeProto& proto, const Environment& env);

/// Value of an attribute that is not a graph.
Expected<Attr> attr_of(const ::onnx::AttributeProto& proto, const TensorStore& store);

/// All attributes of a node except graphs.
Expected<Attrs> attrs_of(const ::onnx::NodeProto& node, const Environment& env,
                         const TensorStore& store);

/// Dense form of a sparse tensor; a diagnostic if it is too large.
Expected<Tensor> dense(const ::onnx::SparseTensorProto& proto, const TensorStore& store);

/// Writes an attribute value, the inverse of attr_of; the caller sets the name.
void set_attr(::onnx::AttributeProto& proto, const Attr& attr, Payloads& payloads);

}  // namespace tessera::onnx
