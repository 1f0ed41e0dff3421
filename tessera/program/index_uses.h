#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::program {

/// Operand whose elements are indices into a tensor, with their valid range.
struct IndexUse {
  /// Slice of the operand, where its elements index several axes.
  struct Part {
    std::size_t axis = 0;
    std::int64_t position = 0;
    auto operator<=>(const Part&) const = default;
  };
  ValueId indices = {};
  std::int64_t low = 0, high = 0;  // valid range, inclusive
  std::optional<Part> part = {};
  auto operator<=>(const IndexUse&) const = default;
};

/// Index operands of a core operator whose definition has no value for indices out of range. None
/// for dynamic shapes.
std::vector<IndexUse> index_uses(const Graph& graph, const GraphNode& node);

}  // namespace tessera::program
