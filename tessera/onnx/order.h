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

/// Free names of a graph: values of enclosing graphs that it uses, each once, in order of first
/// use.
std::vector<std::string> free_names(const ::onnx::GraphProto& graph);

/// Topological order of the nodes, stable where the file is sorted already; a diagnostic if a name
/// is defined twice or there is a cycle.
Expected<std::vector<int>> order_of(const Nodes& nodes);

/// Label of a node in messages: its name, or `Conv #12`.
std::string label_of(const ::onnx::NodeProto& node, int index);

}  // namespace tessera::onnx
