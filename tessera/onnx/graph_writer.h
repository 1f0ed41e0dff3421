#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/onnx/model_file.h"
#include "tessera/support/unique_names.h"

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace tessera::onnx {

/// What all graphs of a model being written share.
struct Writing {
  Payloads payloads = {};
  UniqueNames names = {};  // of values; those of subgraphs differ from the ones around
  std::map<std::string, std::int64_t> domains = {};  // with the versions that are needed
  std::int64_t opset = 0;                            // the least that has all that is written
};

/// Writes one graph.
class GraphWriter {
 public:
  GraphWriter(Writing& writing, const Graph& graph) : writing_(writing), graph_(graph) {}

  /// The values of the graph around a subgraph that its last inputs stand for.
  void bind_captures(const std::vector<std::string>& outer);
  /// `output_names` is for outputs that are inputs, constants or another output as well.
  Expected<Done> write(::onnx::GraphProto& into, const std::vector<std::string>& output_names = {});

 private:
  void name_values(const std::vector<std::string>& output_names);
  Expected<Done> write_node(std::size_t index, ::onnx::NodeProto& into);
  Expected<Done> write_attrs(const GraphNode& node, ::onnx::NodeProto& into);
  Expected<Done> write_control(const GraphNode& node, ::onnx::NodeProto& into);
  Expected<Done> write_subgraph(const GraphNode& node, std::size_t index, std::size_t own_inputs,
                                ::onnx::GraphProto& into);
  void write_outputs(::onnx::GraphProto& into);
  void require(std::string_view domain, std::int64_t version);
  void require(const GraphNode& node, std::string_view part);

  Writing& writing_;
  const Graph& graph_;
  std::vector<std::string> names_;  // by value; those of captures are there before
  std::vector<std::string> output_names_;
  std::size_t captures_ = 0;
};

}  // namespace tessera::onnx
