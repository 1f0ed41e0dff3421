#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/ir/infer.h"
#include "tessera/rules/match.h"

namespace tessera::passes {

/// What a pass says it did, one line each.
using Changes = std::vector<std::string>;

/// Makes a graph anew, node by node. As soon as a node is made, changes may offer other results in
/// its place; the nodes that they make for this are offered to the changes in their turn. So what a
/// node's operands have become is known when the node is looked at, and one walk does what a search
/// for the next place to change would do in many.
///
/// Keeps:  inputs and outputs with their names and types; the names of values that stay.
/// Leaves: no node that nothing depends on.
class Rewriter final : public rules::Surroundings {
 public:
  using Results = std::vector<ValueId>;
  /// Other results for a node of `made()` that nothing uses yet; nothing if it is to stay. Results
  /// of another type are not taken.
  using Change = std::function<std::optional<Results>(Rewriter&, std::size_t node)>;

  Rewriter(const Graph& from, std::vector<Change> changes);
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;

  Expected<Graph> run();

  /// The new graph as far as it is made. Adding to it moves its nodes.
  const Graph& made() const { return made_; }
  const Known& known(ValueId value) const override { return known_[value.index]; }
  bool is_constant(ValueId value) const override { return constant_[value.index]; }
  std::vector<Known> known(std::span<const ValueId> values) const;
  bool is_used_within(ValueId value, const std::set<const GraphNode*>& nodes) const override;
  /// How many uses it has, those of nodes that are still to come included.
  std::size_t uses(ValueId value) const;

  ValueId constant(Tensor tensor);
  /// Makes a node (results without a type are inferred) and lets it change; nothing if its operands
  /// do not fit or the sizes of its results are not known.
  std::optional<Results> emit(Graph::NewNode node);
  /// All nodes of a graph over these inputs; gives what its outputs are.
  std::optional<Results> emit(const Graph& graph, const Results& inputs);

 private:
  struct Use {
    std::vector<std::uint32_t> by = {};  // nodes that are alive
    std::size_t to_come = 0;             // of nodes of the old graph, and as an output
  };

  ValueId mapped(ValueId old);
  void replace(std::span<const ValueId> old, const Results& with);
  std::optional<std::vector<Known>> inferred(const Graph::NewNode& node);
  Results place(Graph::NewNode node, std::vector<Known> known);
  Results changed(Results results);
  void add_value(Known known, bool constant);
  /// While they are held, values count as used.
  void hold(const Results& values);
  void release(const Results& values);
  void drop_if_unused(ValueId value);
  Graph finished();

  const Graph& from_;
  std::vector<Change> changes_;
  Graph made_;
  std::vector<ValueId> mapped_;       // by value of the old graph
  std::vector<std::size_t> to_come_;  // by value of the old graph: uses that are not made yet
  std::deque<Known> known_;           // by value of the new one
  std::vector<bool> constant_;        // by value of the new one: known at compile time
  std::vector<Use> uses_;             // by value of the new one
  std::vector<bool> dead_;            // by node of the new one
  bool refined_ = false;              // more is known of a type than the old graph tells
  std::size_t changes_left_;          // so that changes that undo each other come to an end
};

}  // namespace tessera::passes
