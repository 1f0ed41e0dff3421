#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tessera/egraph/egraph.h"

namespace tessera::search {

/// Which node computes each class that a graph needs.
using Chosen = std::map<egraph::ClassId, egraph::NodeId>;

/// Takes graphs out of an e-graph: no value depends on itself, and what is
/// needed twice is computed, and counts, once.
class Extraction {
 public:
  /// `from` is the graph that the e-graph was made of, `values` the class of
  /// each of its values.
  Extraction(const egraph::EGraph& egraph, const Graph& from,
             const std::vector<egraph::ClassId>& values,
             const std::function<double(const egraph::Node&)>& weight);

  /// Of the least weight, nearly: of each class the node whose needs weigh
  /// least together with those of its operands. Nothing where an output cannot
  /// be computed.
  std::optional<Chosen> least() const;

  /// The same choices but for one class, and what that needs.
  std::optional<Chosen> with(const Chosen& chosen, egraph::ClassId id, egraph::NodeId node) const;

  /// Nodes that compute a class, in order.
  std::vector<egraph::NodeId> alternatives(egraph::ClassId id) const;

  /// Nothing if a value would depend on itself.
  std::optional<Graph> graph(const Chosen& chosen) const;

 private:
  struct Solution {
    Chosen chosen = {};
    double weight = 0;
  };
  bool is_leaf(egraph::ClassId id) const;
  std::optional<Solution> made_by(egraph::NodeId node) const;
  double weight_of(const Chosen& chosen) const;
  void solve();

  const egraph::EGraph& egraph_;
  const Graph& from_;
  const std::vector<egraph::ClassId>& values_;
  std::map<egraph::NodeId, double> weights_;
  std::map<egraph::ClassId, Solution> solutions_;
};

}  // namespace tessera::search
