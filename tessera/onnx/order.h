#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <string>
#include <vector>

#include "tessera/support/expected.h"

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace tessera::onnx {

using Nodes = ::google::protobuf::RepeatedPtrField<::onnx::NodeProto>;

/// What a graph uses of those around it, each name once, in order of first use.
std::vector<std::string> free_names(const ::onnx::GraphProto& graph);

/// An order in which each node follows those that it uses, their own order where it is one; a
/// diagnostic if a name is made twice or nodes use each other.
Expected<std::vector<int>> order_of(const Nodes& nodes);

/// How people call a node: its name, or `Conv #12`.
std::string label_of(const ::onnx::NodeProto& node, int index);

}  // namespace tessera::onnx
