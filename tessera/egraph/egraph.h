#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/egraph/facts.h"

namespace tessera::egraph {

/// A class of equal values, by number. A number that was given stays good: when classes are united,
/// `EGraph::find` gives the one number that stands for all of it. The default one is an optional
/// input left out.
struct ClassId {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t index = kNone;

  bool present() const { return index != kNone; }
  auto operator<=>(const ClassId&) const = default;
};

using NodeId = std::uint32_t;

/// A computation over classes. Its results are members of classes of their own.
struct Node {
  const Application* application = nullptr;  // operator, attributes, what is true of them
  std::vector<ClassId> inputs = {};          // as they were when it was made: ask `find`
  std::vector<ClassId> outputs = {};         // likewise
  std::vector<std::shared_ptr<const Graph>> subgraphs = {};
  std::uint32_t origin = 0;  // who made it, see EGraph::origin

  const OpDef& op() const { return *application->op; }
  const Attrs& attrs() const { return *application->attrs; }
};

/// A result of a node.
struct Member {
  NodeId node = 0;
  std::uint32_t output = 0;
};

/// What is known of equal values. They are an input, a constant or results of nodes, perhaps all of
/// them; or none: then nothing but the type counts (what `eye_like` is given).
struct Class {
  const Type* type = nullptr;        // interned, the same for all members
  std::optional<std::size_t> input;  // the value is this input
  const Tensor* constant = nullptr;  // the value is this tensor
  bool from_constants = false;       // computed from constants alone
  std::vector<Member> members = {};  // in the order in which they came
  std::vector<NodeId> users = {};    // nodes that take it, some of them more than once
};

/// Classes that were equal when something else was concluded from it.
using Premises = std::vector<std::pair<ClassId, ClassId>>;

/// Why two classes are one: by a rule (its number, see EGraph::origin), or 0, since they are
/// results of nodes that became the same.
struct Reason {
  std::uint32_t origin = 0;
  Premises premises = {};
};

/// Many graphs in one: values that are known to be equal share a class, and whatever is computed
/// from equal values is computed once (Nelson and Oppen's congruence closure; Willsey et al., egg,
/// POPL 2021, for rebuilding).
///
/// - A node may have several results.
/// - Operands of commutative operators count in either order, attributes by what they mean.
/// - Constants are equal by content; an operand whose type alone counts is a class of that type.
/// - Types of values are those of their graphs, with numbers or symbols for sizes. Only values of
///   the same type are united.
///
/// Deterministic: numbers of nodes and classes depend on what is added, in order, and nothing else.
class EGraph {
 public:
  explicit EGraph(std::shared_ptr<Facts> facts = std::make_shared<Facts>())
      : facts_(std::move(facts)) {}

  // What is added. A new input is a value of its own; `constant`: it stands for some constant.
  struct NewInput {
    bool constant = false;
  };
  ClassId add_input(const Graph& graph, ValueId input, NewInput how);
  ClassId add_input(const Graph& graph, ValueId input) { return add_input(graph, input, {}); }
  ClassId add_constant(const Graph& graph, ValueId constant);
  /// The class of values of which only the type counts.
  ClassId like(const Graph& graph, ValueId value) { return like(&graph.type(value)); }

  /// Adds the nodes of a graph over these classes for its inputs; gives the class of each value
  /// (none for constants that nothing takes). What had to be equal for nodes to be there already is
  /// added to `premises`.
  std::vector<ClassId> add(const Graph& graph, std::span<const ClassId> inputs,
                           std::uint32_t origin, Premises& premises);
  /// With new inputs.
  std::vector<ClassId> add(const Graph& graph);

  /// Makes one class of two; false where they are of different types. What follows from it does so
  /// when `rebuild` is called.
  bool unite(ClassId a, ClassId b, Reason reason);
  /// Unites what became congruent. Afterwards no two nodes are the same.
  void rebuild();

  // What there is.
  ClassId find(ClassId id) const;
  bool equal(ClassId a, ClassId b) const { return find(a) == find(b); }
  const Class& at(ClassId id) const { return classes_[find(id).index]; }
  /// Those that stand for all, in the order in which they were made.
  std::vector<ClassId> classes() const;
  const Node& node(NodeId id) const { return nodes_[id]; }
  /// Whether a node is one of its own and not the same as another.
  bool is_live(NodeId id) const { return live_[id]; }
  /// The nodes of an operator, the same ones twice perhaps.
  std::span<const NodeId> nodes_of(const OpDef& op) const;
  std::size_t node_count() const { return live_count_; }
  std::size_t class_count() const { return class_count_; }
  Facts& facts() { return *facts_; }

  /// Names for who makes nodes, by number; 0 is the graph that was there first.
  std::uint32_t origin(const std::string& name);
  const std::string& origin_name(std::uint32_t origin) const { return origins_[origin]; }

  /// The names of the rules by which two equal classes became so, each once.
  std::vector<std::string> explain(ClassId a, ClassId b) const;

 private:
  struct Edge {
    ClassId to = {};
    Reason reason = {};
  };
  ClassId add_class(Class made);
  ClassId like(const Type* type);
  NodeId add_node(Node node, const std::vector<const Type*>& results, Premises& premises);
  Node made_of(const Graph& graph, const GraphNode& node, std::vector<ClassId> inputs);
  std::uint64_t hash_of(const Node& node) const;
  bool same(const Node& a, const Node& b) const;
  Premises operand_pairs(const Node& a, const Node& b) const;
  std::optional<NodeId> lookup(std::uint64_t hash, const Node& node) const;
  std::optional<NodeId> repair(NodeId id);
  void note_constants(NodeId id);
  void remove_dead(const std::vector<NodeId>& dead);
  void link(ClassId a, ClassId b, Reason reason);

  std::shared_ptr<Facts> facts_;
  std::vector<Node> nodes_;
  std::vector<bool> live_;
  std::vector<Class> classes_;                // by number; of a united one nothing is left
  mutable std::vector<std::uint32_t> above_;  // union-find
  std::vector<Edge> proof_;                   // a forest: why a class is equal to the next
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
