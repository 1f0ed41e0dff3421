#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/egraph/operator_analysis.h"

namespace tessera::egraph {

/// Id of an e-class. Ids stay valid when classes are united: `EGraph::find` returns the canonical
/// id. A default-constructed id stands for an omitted optional input.
struct ClassId {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t index = kNone;

  bool present() const { return index != kNone; }
  auto operator<=>(const ClassId&) const = default;
};

using NodeId = std::uint32_t;

/// E-node: an operator applied to e-classes. Each of its results is a member of an e-class.
struct ENode {
  const Application* application = nullptr;  // operator, attributes and their properties
  std::vector<ClassId> inputs = {};          // as of construction: canonicalize with `find`
  std::vector<ClassId> outputs = {};         // likewise
  std::vector<std::shared_ptr<const Graph>> subgraphs = {};
  std::uint32_t origin = 0;  // rule that added it, see EGraph::origin

  const OpDef& op() const { return *application->op; }
  const Attrs& attrs() const { return *application->attrs; }
};

/// Result of an e-node.
struct Member {
  NodeId node = 0;
  std::uint32_t output = 0;
};

/// E-class: a set of equal values, which may be an input, a constant and results of nodes. A class
/// with none of them stands for a value of which only the type matters (the operand of `eye_like`).
struct EClass {
  const Type* type = nullptr;        // interned, the same for all members
  std::optional<std::size_t> input;  // the value is this input
  const Tensor* constant = nullptr;  // the value is this tensor
  bool from_constants = false;       // computed from constants alone
  std::vector<Member> members = {};  // in order of insertion
  std::vector<NodeId> users = {};    // nodes with this operand, perhaps more than once
};

/// Pairs of equal classes from which an equality was derived.
using Premises = std::vector<std::pair<ClassId, ClassId>>;

/// Justification of a union, for explanations: a rule (see EGraph::origin), or 0 for congruence.
struct Reason {
  std::uint32_t origin = 0;
  Premises premises = {};
};

/// E-graph: a congruence-closed set of equal values, which represents many equivalent graphs
/// (Nelson and Oppen's congruence closure; Willsey et al., egg, POPL 2021, for deferred
/// rebuilding).
///
/// - A node may have several results.
/// - Operands of commutative operators are unordered; attributes are equal if they mean the same.
/// - Constants are equal by content; an operand of which only the type matters is a class of that
///   type.
/// - Values have the types of their graphs, with numbers or symbols for sizes. Only values of the
/// same
///   type are united.
///
/// Deterministic: ids of nodes and classes depend on the order of insertions alone.
class EGraph {
 public:
  explicit EGraph(std::shared_ptr<OperatorAnalysis> analysis = std::make_shared<OperatorAnalysis>())
      : analysis_(std::move(analysis)) {}

  // Insertion. A new input is a value of its own; `constant`: it stands for an unknown constant.
  struct NewInput {
    bool constant = false;
  };
  ClassId add_input(const Graph& graph, ValueId input, NewInput how);
  ClassId add_input(const Graph& graph, ValueId input) { return add_input(graph, input, {}); }
  ClassId add_constant(const Graph& graph, ValueId constant);
  /// Class of values of which only the type matters.
  ClassId like(const Graph& graph, ValueId value) { return like(&graph.type(value)); }

  /// Adds the nodes of a graph over these classes for its inputs; returns the class of each value
  /// (none for unused constants). Equalities by which nodes were found to exist already are added
  /// to `premises`.
  std::vector<ClassId> add(const Graph& graph, std::span<const ClassId> inputs,
                           std::uint32_t origin, Premises& premises);
  /// With new inputs.
  std::vector<ClassId> add(const Graph& graph);

  /// Union of two classes; false if their types differ. `rebuild` restores congruence.
  bool unite(ClassId a, ClassId b, Reason reason);
  /// Restores congruence closure. Afterwards no two live nodes are equal.
  void rebuild();

  // Queries.
  ClassId find(ClassId id) const;
  bool equal(ClassId a, ClassId b) const { return find(a) == find(b); }
  const EClass& at(ClassId id) const { return classes_[find(id).index]; }
  /// Canonical ids, in order of construction.
  std::vector<ClassId> classes() const;
  const ENode& node(NodeId id) const { return nodes_[id]; }
  /// Whether a node is not a duplicate of another.
  bool is_live(NodeId id) const { return live_[id]; }
  /// Nodes of an operator, perhaps with duplicates.
  std::span<const NodeId> nodes_of(const OpDef& op) const;
  std::size_t node_count() const { return live_count_; }
  std::size_t class_count() const { return class_count_; }
  OperatorAnalysis& analysis() const { return *analysis_; }

  /// Id for the name of a rule that adds nodes; 0 is the initial graph.
  std::uint32_t origin(const std::string& name);
  const std::string& origin_name(std::uint32_t origin) const { return origins_[origin]; }

  /// Explanation: names of the rules by which two classes became equal, without duplicates.
  std::vector<std::string> explain(ClassId a, ClassId b) const;

 private:
  struct Edge {
    ClassId to = {};
    Reason reason = {};
  };
  ClassId add_class(EClass made);
  ClassId like(const Type* type);
  NodeId add_node(ENode node, const std::vector<const Type*>& results, Premises& premises);
  ENode made_of(const Graph& graph, const GraphNode& node, std::vector<ClassId> inputs);
  std::uint64_t hash_of(const ENode& node) const;
  bool same(const ENode& a, const ENode& b) const;
  Premises operand_pairs(const ENode& a, const ENode& b) const;
  std::optional<NodeId> lookup(std::uint64_t hash, const ENode& node) const;
  std::optional<NodeId> repair(NodeId id);
  void note_constants(NodeId id);
  void remove_dead(const std::vector<NodeId>& dead);
  void link(ClassId a, ClassId b, Reason reason);

  std::shared_ptr<OperatorAnalysis> analysis_;
  std::deque<ENode> nodes_;  // addresses are stable
  std::vector<bool> live_;
  std::vector<EClass> classes_;  // by id; empty for a class that was merged into another
  mutable std::vector<std::uint32_t> parents_;  // union-find
  std::vector<Edge> proof_;                     // proof forest: why a class is equal to its parent
  std::unordered_map<std::uint64_t, std::vector<NodeId>> by_hash_;
  std::unordered_map<const OpDef*, std::vector<NodeId>> by_op_;
  std::unordered_map<const Tensor*, ClassId> constants_;
  std::unordered_map<const Type*, ClassId> likes_;
  std::vector<NodeId> dirty_;  // nodes whose operands were united
  std::vector<std::string> origins_ = {""};
  std::unordered_map<std::string, std::uint32_t> origin_of_;
  std::size_t live_count_ = 0, class_count_ = 0, inputs_ = 0;
};

}  // namespace tessera::egraph
