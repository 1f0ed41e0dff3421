#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tessera/egraph/egraph.h"

namespace tessera::search {

/// Extraction choice: the node that computes each class that a graph needs.
using NodeChoice = std::map<egraph::ClassId, egraph::NodeId>;

/// Extraction of graphs from an e-graph. Extracted graphs are acyclic, and a shared node counts
/// once (DAG cost).
class Extraction {
 public:
  /// `from` is the graph that the e-graph was built from, `values` the class of each of its values.
  Extraction(const egraph::EGraph& egraph, const Graph& from,
             const std::vector<egraph::ClassId>& values,
             const std::function<double(const egraph::ENode&)>& weight);

  /// Greedy extraction of a graph of nearly least weight: for each class the node whose
  /// dependencies have the least total weight. Nothing where an output cannot be computed.
  std::optional<NodeChoice> least() const;

  /// Changes the choice of one class, and completes what the new node depends on.
  std::optional<NodeChoice> with(const NodeChoice& chosen, egraph::ClassId id,
                                 egraph::NodeId node) const;

  /// Nodes of a class, in order.
  std::vector<egraph::NodeId> alternatives(egraph::ClassId id) const;

  /// Builds the chosen graph; nothing if it has a cycle.
  std::optional<Graph> graph(const NodeChoice& chosen) const;

 private:
  struct Solution {
    NodeChoice chosen = {};
    double weight = 0;
  };
  bool is_leaf(egraph::ClassId id) const;
  std::optional<Solution> made_by(egraph::NodeId node) const;
  double weight_of(const NodeChoice& chosen) const;
  void solve();

  const egraph::EGraph& egraph_;
  const Graph& from_;
  const std::vector<egraph::ClassId>& values_;
  std::map<egraph::NodeId, double> weights_;
  std::map<egraph::ClassId, Solution> solutions_;
};

}  // namespace tessera::search
