#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/ir/infer.h"
#include "tessera/passes/change.h"
#include "tessera/rules/match.h"

namespace tessera::passes {

/// Rewrite driver: copies a graph node by node, in topological order, and lets rewrites replace the
/// results of each new node. Nodes that a rewrite adds are rewritten in turn. Operands are final
/// when a node is visited, so that one traversal replaces a worklist.
///
/// Keeps:  inputs and outputs with their names and types; the names of values that stay.
/// Leaves: no dead nodes.
class Rewriter final : public rules::Surroundings {
 public:
  using Results = std::vector<ValueId>;
  /// Replacement results for a node of `made()` that has no uses yet, or none to keep the node.
  /// Results of another type are rejected.
  using Rewrite = std::function<std::optional<Results>(Rewriter&, std::size_t node)>;

  Rewriter(const Graph& from, std::vector<Rewrite> rewrites);
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;

  Expected<Graph> run();

  /// The old graph, and the index of its node that is copied or rewritten now.
  const Graph& from() const { return from_; }
  std::size_t origin() const { return origin_; }
  /// Name of the first result of that node; empty if it has none.
  std::string where() const;
  /// The new graph so far. Adding nodes invalidates references to its nodes.
  const Graph& made() const { return made_; }
  const ValueInfo& known(ValueId value) const override { return known_[value.index]; }
  bool is_constant(ValueId value) const override { return constant_[value.index]; }
  std::vector<ValueInfo> known(std::span<const ValueId> values) const;
  bool is_used_within(ValueId value, const std::set<const GraphNode*>& nodes) const override;
  /// Number of uses, including those by nodes that are not copied yet.
  std::size_t uses(ValueId value) const;

  ValueId constant(Tensor tensor);
  /// Adds a node (missing result types are inferred) and rewrites it; none if the operator does not
  /// accept its operands or the shapes of its results are unknown.
  std::optional<Results> emit(Graph::NewNode node);
  /// Adds all nodes of a graph over these inputs; returns its outputs.
  std::optional<Results> emit(const Graph& graph, const Results& inputs);

 private:
  struct Use {
    std::vector<std::uint32_t> by = {};  // nodes that are alive
    std::size_t pending = 0;             // of nodes of the old graph, and as an output
  };

  ValueId mapped(ValueId old);
  void replace(std::span<const ValueId> old, const Results& with);
  std::optional<std::vector<ValueInfo>> inferred(const Graph::NewNode& node);
  Results place(Graph::NewNode node, std::vector<ValueInfo> known);
  Results rewritten(Results results);
  void add_value(ValueInfo known, bool constant);
  /// Held values count as used.
  void hold(const Results& values);
  void release(const Results& values);
  void drop_if_unused(ValueId value);
  Graph finished();

  const Graph& from_;
  std::vector<Rewrite> rewrites_;
  Graph made_;
  std::vector<ValueId> mapped_;  // by value of the old graph
  std::vector<std::size_t>
      pending_uses_;             // by value of the old graph: uses that are not copied yet
  std::deque<ValueInfo> known_;  // by value of the new one
  std::vector<bool> constant_;   // by value of the new one: known at compile time
  std::vector<Use> uses_;        // by value of the new one
  std::vector<bool> dead_;       // by node of the new one
  bool refined_ = false;         // more is known of a type than the old graph tells
  std::size_t origin_ = 0;       // node of the old graph
  std::size_t rewrites_left_;    // so that changes that undo each other come to an end
};

}  // namespace tessera::passes
