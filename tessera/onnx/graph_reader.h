#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tessera/onnx/attribute.h"
#include "tessera/onnx/call.h"
#include "tessera/onnx/import.h"
#include "tessera/onnx/order.h"
#include "tessera/support/unique_names.h"

namespace onnx {
class FunctionProto;
class NodeProto;
class TypeProto;
class ValueInfoProto;
}  // namespace onnx

namespace tessera::onnx {

struct OperatorRow;
/// Opset versions by domain.
using Opsets = std::map<std::string, std::int64_t, std::less<>>;

/// Normalizes a domain name: `ai.onnx` is the empty domain.
std::string plain_domain(const std::string& domain);

/// Local function of a model, with the default values of its attributes.
struct Function {
  const ::onnx::FunctionProto* proto = nullptr;
  std::vector<std::shared_ptr<const ::onnx::AttributeProto>> defaults = {};
};
std::string function_id(const std::string& domain, const std::string& name);

/// Opsets that apply inside of a function.
Opsets opsets_in_function(const ::onnx::FunctionProto& function, Opsets opsets);

/// Import rule of an operator; without a row it is not supported.
struct Operator {
  std::int64_t opset = 1;
  const OperatorRow* row = nullptr;
  const OpDef* op = nullptr;  // of the catalog, where the row names one

  explicit operator bool() const { return row != nullptr; }
};
Operator find_operator(const ::onnx::NodeProto& node, const Opsets& opsets);
/// Operator name for messages: `ai.onnx.Conv of opset 17`.
std::string operator_name(const ::onnx::NodeProto& node, const Opsets& opsets);

/// State shared by all readers of one model.
struct ImportContext {
  const ModelFile& file;
  std::map<std::string, Function> functions = {};  // by their id
  std::vector<std::string> calls = {};             // call stack of functions being expanded
  int graphs = 0;                                  // number of graphs read so far
  /// Limit on the expanded nodes: functions that call functions may grow exponentially.
  std::int64_t node_limit = 0;
  std::int64_t nodes = 0;  // nodes read so far; a loop body may count more than once
};

/// Importer of the nodes of one graph, function body or branch into a GraphBuilder.
class GraphReader {
 public:
  /// Scope of a reader: enclosing function, nesting depth and opset versions.
  struct Place {
    const Opsets* opsets = nullptr;
    const Environment* env = nullptr;
    std::string prefix = {};  // prefix of the names of values and nodes
    int depth = 0;
  };

  GraphReader(ImportContext& reading, GraphBuilder& g, Place place);

  Expected<Done> read_inputs(const ::onnx::GraphProto& graph, const ImportOptions& options);
  /// Reads initializers and nodes; returns the outputs in order.
  Expected<Vals> read_body(const ::onnx::GraphProto& graph);

 private:
  /// Reader into the builder of another reader.
  GraphReader(GraphReader& around, Place place);

  /// Captures of a subgraph: outer values that are passed to it, and small constants that are
  /// copied into it.
  struct Captures {
    std::vector<std::pair<std::string, Val>> values;
    std::vector<std::pair<std::string, Tensor>> constants;
    Vals with(Vals inputs) const;
  };
  struct Subgraph {
    Graph graph;
    std::vector<Type> results;
    std::string scope;  // prefix of the size symbols that it introduces
  };

  Expected<Done> read_initializers(const ::onnx::GraphProto& graph);
  Expected<Done> read_nodes(const Nodes& nodes);
  Expected<Vals> read_node(const ::onnx::NodeProto& node, int wanted);
  Expected<Done> name_results(const ::onnx::NodeProto& node, const Vals& results);
  Expected<Vals> call_function(const Function& called, const ::onnx::NodeProto& node,
                               const Vals& inputs);

  // control.cpp
  Expected<Vals> read_control(const ::onnx::NodeProto& node, Call& call);
  Expected<Vals> read_if(const ::onnx::NodeProto& node, Call& call);
  Expected<Vals> read_loop(const ::onnx::NodeProto& node, Call& call);
  Expected<Vals> read_scan(const ::onnx::NodeProto& node, Call& call);
  Expected<Vals> read_batched_scan(const ::onnx::NodeProto& node, Call& call);
  Expected<Vals> read_sequence_map(const ::onnx::NodeProto& node, Call& call);
  Expected<Vals> read_flex_attention(const ::onnx::NodeProto& node, Call& call);
  Expected<const ::onnx::GraphProto*> graph_attr(const ::onnx::NodeProto& node,
                                                 std::string_view name) const;
  Expected<Captures> captures_of(const std::vector<const ::onnx::GraphProto*>& graphs);
  struct SubgraphInputs {
    std::vector<ValueInfo> inputs = {};
    bool as_declared = true;  // declared types of the subgraph complete unknown ones
  };
  Expected<Subgraph> read_subgraph(const ::onnx::GraphProto& graph, const SubgraphInputs& given,
                                   const Captures& captures);
  Expected<Vals> read_branch_in_place(const ::onnx::GraphProto& graph);
  Expected<Vals> emit_scan(const ::onnx::GraphProto& body, const Captures& captures,
                           const Vals& inputs, const Attrs& attrs);
  Place deeper() const;
  Expected<Done> check_depth() const;
  std::string new_scope();

  Val* find(const std::string& name);
  bool has_name(const Val& value) const;
  Expected<Val> use(const std::string& name);
  Expected<Done> define(const std::string& name, Val value);
  void declare(const ::onnx::GraphProto& graph);
  Expected<Done> refine(const std::string& name, const Val& value);
  std::string unique_name(const std::string& name);
  Diagnostic placed(Diagnostic diagnostic, const std::string& label) const;

  ImportContext& context_;
  GraphBuilder& g_;
  Place place_;
  GraphReader* around_ = nullptr;  // a reader into the same builder whose names can be used
  std::shared_ptr<UniqueNames>
      names_;  // of values in the builder, so that those of functions stay apart
  std::set<std::string> replaced_;  // initializers that are inputs
  std::unordered_map<std::string, Val> values_;
  std::unordered_set<std::uint32_t> named_;  // the ids among them
  std::unordered_map<std::string, const ::onnx::TypeProto*> declared_;
  std::unordered_map<std::uint32_t, Tensor> small_constants_;
};

}  // namespace tessera::onnx
