#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/expr/condition.h"
#include "tessera/ir/graph.h"
#include "tessera/support/lexer.h"

namespace tessera::rules {

/// Positions from `begin` to below `end` along an axis.
struct Interval {
  Dim begin, end;

  bool operator==(const Interval&) const = default;
};

/// Box in the index space of an output: an interval for each axis, none for a whole axis. As text,
/// for the second output: `1[_, _, h - 1:h, _]`.
struct Box {
  std::size_t output = 0;
  std::vector<std::optional<Interval>> axes = {};

  bool operator==(const Box&) const = default;
};

/// Union of boxes with symbolic borders.
using Region = std::vector<Box>;

std::string to_text(const Box& box);
std::string to_text(const Region& region);
Expected<Box> parse_box(Lexer& lexer);

/// `output 0 where h - 1 <= axis 2 < h`; `everywhere` where no axis is restricted.
std::string in_words(const Box& box);
std::string in_words(const Region& region);

/// Corrects a mutant: a graph that computes the same as the source except in the boxes of a region.
///
///   mutant  =>  update_slice(mutant, slice(source, box), begin of the box), box by box
///
/// Needs:  the same inputs on both sides; borders that are linear in the sizes of inputs.
/// Leaves: an ordinary graph, which is equal to the source if the region is right.
Expected<Graph> corrected(const Graph& source, const Graph& mutant, const Region& wrong);

/// Share of the elements of an output that lie in the boxes, which do not overlap, for these sizes.
Expected<double> share_of(const Region& region, const Graph& source, const SizeValues& sizes);

}  // namespace tessera::rules
