#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tessera::report {

/// Directed graph of boxes, to be laid out from top to bottom. Edges of a cycle are allowed and
/// ignored where they point up.
struct BoxGraph {
  struct Box {
    double width = 0, height = 0;  // pixels
  };
  std::vector<Box> boxes = {};
  std::vector<std::pair<std::size_t, std::size_t>> edges = {};
};

/// Centers of the boxes of a layout, and its extent.
struct BoxLayout {
  std::vector<std::pair<double, double>> centers = {};
  double width = 0, height = 0;
  std::string by = {};  // "dot" or "layers"
};

/// Layout by Graphviz's `dot`; by layered_layout() where it is missing or takes longer than this.
BoxLayout layout(const BoxGraph& graph, double seconds);

/// Layered layout (Sugiyama): layers by longest path, their order by barycenters, coordinates by
/// the mean of the neighbours. Needs edges that point to later boxes; others are ignored.
BoxLayout layered_layout(const BoxGraph& graph);

}  // namespace tessera::report
