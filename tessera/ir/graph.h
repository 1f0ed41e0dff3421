#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/ir/type.h"
#include "tessera/ops/catalog.h"
#include "tessera/support/attrs.h"
#include "tessera/support/tensor.h"

namespace tessera {

/// Id of a value (SSA value) of one graph. A default-constructed id stands for an omitted optional
/// input.
struct ValueId {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t index = kNone;

  bool present() const { return index != kNone; }
  auto operator<=>(const ValueId&) const = default;
};

using OpRef = const OpDef*;
class Graph;

/// Node of a graph: an operator with attributes, inputs and results. Small and trivially copyable;
/// its lists are stored in the graph.
class GraphNode {
 public:
  OpRef op = nullptr;
  const Attrs* attrs = nullptr;  // interned: equal attributes have equal addresses

 private:
  friend class Graph;
  std::uint32_t first_input_ = 0, inputs_ = 0;
  std::uint32_t first_output_ = 0, outputs_ = 0;
  std::uint32_t first_subgraph_ = 0, subgraphs_ = 0;
};

/// Dataflow graph of a tensor program, with value semantics: cheap to copy and comparable by hash.
///
/// Values are numbered in order of construction: inputs, constants and the results of nodes. Nodes
/// are in topological order. Weights are shared memory, never copied. A subgraph (of if, loop and
/// scan) is closed: what it uses of the outer graph is passed to it as further inputs.
class Graph {
 public:
  std::span<const ValueId> inputs() const { return inputs_; }
  std::span<const ValueId> outputs() const { return outputs_; }
  std::span<const GraphNode> nodes() const { return nodes_; }
  std::size_t value_count() const { return values_.size(); }

  std::span<const ValueId> inputs(const GraphNode& node) const {
    return {lists_.data() + node.first_input_, node.inputs_};
  }
  std::span<const ValueId> outputs(const GraphNode& node) const {
    return {lists_.data() + node.first_output_, node.outputs_};
  }
  std::span<const std::shared_ptr<const Graph>> subgraphs(const GraphNode& node) const {
    return {subgraphs_.data() + node.first_subgraph_, node.subgraphs_};
  }

  const Type& type(ValueId value) const { return *info(value).type; }
  /// Constant tensor, or null if the value is not a constant.
  const Tensor* constant(ValueId value) const;
  /// Node that computes the value, or null for inputs and constants.
  const GraphNode* producer(ValueId value) const;

  /// Name of a value, for files and messages; one without a name is called `%index`.
  std::string name(ValueId value) const;
  bool is_named(ValueId value) const { return names_.contains(value.index); }
  void set_name(ValueId value, std::string name);
  const std::string& node_name(std::size_t node) const;
  void set_node_name(std::size_t node, std::string name);
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  /// Structural hash of the outputs, independent of names and of construction order: operators,
  /// attributes, wiring, types of inputs and weights (large weights by a sample of their content,
  /// so equal hashes call for a comparison with same_graph).
  std::uint64_t hash() const;
  std::uint64_t hash(ValueId value) const { return info(value).hash; }

  // Construction. Operands are values made before; the builder has checked the rest.
  ValueId add_input(const Type& type, std::string name);
  ValueId add_constant(Tensor tensor, std::string name);
  struct NewNode {
    OpRef op = nullptr;
    Attrs attrs = {};
    std::vector<ValueId> inputs = {};
    std::vector<Type> outputs = {};
    std::vector<std::shared_ptr<const Graph>> subgraphs = {};
  };
  /// Appends a node and returns its results.
  std::vector<ValueId> add_node(NewNode node);
  void set_outputs(std::vector<ValueId> outputs) { outputs_ = std::move(outputs); }
  void set_type(ValueId value, const Type& type);

 private:
  struct Info {
    const Type* type = nullptr;  // interned
    std::uint32_t node = ValueId::kNone;
    std::uint32_t constant = ValueId::kNone;
    std::uint64_t hash = 0;
  };
  const Info& info(ValueId value) const;
  ValueId add_value(Info info, std::string name);

  std::string name_;
  std::vector<ValueId> inputs_, outputs_;
  std::vector<GraphNode> nodes_;
  std::vector<Info> values_;
  std::vector<ValueId> lists_;
  std::vector<Tensor> constants_;
  std::vector<std::shared_ptr<const Graph>> subgraphs_;
  std::unordered_map<std::uint32_t, std::string> names_, node_names_;
};

}  // namespace tessera
