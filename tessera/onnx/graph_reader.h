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

struct Row;
using Opsets = std::map<std::string, std::int64_t, std::less<>>;

/// The domain of ONNX itself has two names; this is the shorter one.
std::string plain_domain(const std::string& domain);

/// A function of the model and what its attributes are when they are not given.
struct Function {
  const ::onnx::FunctionProto* proto = nullptr;
  std::vector<std::shared_ptr<const ::onnx::AttributeProto>> defaults = {};
};
std::string function_id(const std::string& domain, const std::string& name);

/// The opsets of a model as a function of it sees them.
Opsets opsets_in_function(const ::onnx::FunctionProto& function, Opsets opsets);

/// How an operator is read; no row where it is not supported.
struct Operator {
  std::int64_t opset = 1;
  const Row* row = nullptr;
  const OpDef* op = nullptr;  // of the catalog, where the row names one

  explicit operator bool() const { return row != nullptr; }
};
Operator find_operator(const ::onnx::NodeProto& node, const Opsets& opsets);
/// `ai.onnx.Conv of opset 17`.
std::string operator_name(const ::onnx::NodeProto& node, const Opsets& opsets);

/// What all readers of one model share.
struct Reading {
  const ModelFile& file;
  std::map<std::string, Function> functions = {};  // by their id
  std::vector<std::string> calls = {};             // the functions being expanded
  int graphs = 0;                                  // that were begun
  /// A file may call functions that call functions; what they expand to has to end somewhere.
  std::int64_t node_limit = 0;
  std::int64_t nodes = 0;  // that were read, a loop's body perhaps more than once
};

/// Reads the nodes of one graph, function body or branch into a builder.
class GraphReader {
 public:
  /// Where a reader stands: inside which function, how deep, and how the operators are numbered.
  struct Place {
    const Opsets* opsets = nullptr;
    const Environment* env = nullptr;
    std::string prefix = {};  // of the names of values and nodes
    int depth = 0;
  };

  GraphReader(Reading& reading, GraphBuilder& g, Place place);

  Expected<Done> read_inputs(const ::onnx::GraphProto& graph, const ImportOptions& options);
  /// Initializers, nodes; then the outputs, in order.
  Expected<Vals> read_body(const ::onnx::GraphProto& graph);

 private:
  /// Reads into the builder of another reader.
  GraphReader(GraphReader& around, Place place);

  /// What a subgraph uses of this graph: values that are passed to it, and small constants that it
  /// has for itself.
  struct Captures {
    std::vector<std::pair<std::string, Val>> values;
    std::vector<std::pair<std::string, Tensor>> constants;
    Vals with(Vals inputs) const;
  };
  struct Subgraph {
    Graph graph;
    std::vector<Type> results;
    std::string scope;  // begins the names of the sizes that are its own
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
  struct Given {
    std::vector<Known> inputs = {};
    bool as_declared = true;  // what is unknown of an input is what the subgraph says
  };
  Expected<Subgraph> read_subgraph(const ::onnx::GraphProto& graph, const Given& given,
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

  Reading& reading_;
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
