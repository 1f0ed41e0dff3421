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

/// State shared by all graphs of a model that is written.
struct ExportContext {
  Payloads payloads = {};
  UniqueNames names = {};                            // names of values, unique over all subgraphs
  std::map<std::string, std::int64_t> domains = {};  // required version by domain
  std::int64_t opset = 0;  // smallest opset that has all written operators
};

/// Exporter of one graph to a GraphProto.
class GraphWriter {
 public:
  GraphWriter(ExportContext& writing, const Graph& graph) : context_(writing), graph_(graph) {}

  /// Names of the outer values that the last inputs of a subgraph stand for.
  void bind_captures(const std::vector<std::string>& outer);
  /// Writes the graph; `output_names` is for outputs that are inputs, constants or another output
  /// as well.
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

  ExportContext& context_;
  const Graph& graph_;
  std::vector<std::string> names_;  // by value; those of captures are there before
  std::vector<std::string> output_names_;
  std::size_t captures_ = 0;
};

}  // namespace tessera::onnx
