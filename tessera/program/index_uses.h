#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::program {

/// An operand whose elements say which elements of a tensor are read or written.
struct IndexUse {
  /// Of the operand, where its elements index several axes: those at this position alone.
  struct Part {
    std::size_t axis = 0;
    std::int64_t position = 0;
    auto operator<=>(const Part&) const = default;
  };
  ValueId indices = {};
  std::int64_t low = 0, high = 0;  // what they have to be, both inclusive
  std::optional<Part> part = {};
  auto operator<=>(const IndexUse&) const = default;
};

/// The operands of a core operator whose elements are indices without anything in place of what is
/// out of range. Sizes have to be numbers; where they are not, there is nothing.
std::vector<IndexUse> index_uses(const Graph& graph, const GraphNode& node);

}  // namespace tessera::program
