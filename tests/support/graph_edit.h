#pragma once

#include <optional>
#include <string>

#include "tessera/ir/graph.h"
#include "tessera/support/rng.h"

namespace tessera::testing {

struct EditedGraph {
  Graph graph;
  std::string edit;  // in words
};

/// A graph after one random edit: operands exchanged or replaced, an attribute, a constant or an
/// operator changed, a node left out or put in, an output replaced. Nothing where the edit that was
/// drawn does not fit; the edited graph may compute the same.
std::optional<EditedGraph> edited_graph(const Graph& graph, Rng& rng);

}  // namespace tessera::testing
