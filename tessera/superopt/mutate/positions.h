#pragma once

#include <cstdint>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/rules/region.h"
#include "tessera/support/rng.h"

namespace tessera::superopt {

/// Positions of an output at which two graphs differ, in row-major order.
struct OutputDifference {
  std::vector<std::int64_t> shape;
  std::vector<bool> differs;
};

/// Compares two graphs with the same inputs and static sizes position by position, on random
/// elements of a prime field with more than 2^60 elements. Two multi-linear programs that differ at
/// a position are taken for equal there with a probability below 2^-31 (Schwartz–Zippel).
Expected<std::vector<OutputDifference>> differing_positions(const Graph& source,
                                                            const Graph& mutant, Rng& rng);

/// The same, by a few positions for each box of a grid: both graphs are multi-linear in each box,
/// so that they agree in a box if they do at a corner and at its neighbours along each axis (PET,
/// theorem 2). `grid[a]` has the borders along axis a, from 0 to the size; the last corner of a box
/// is compared as well, because borders are where mutants differ.
bool agrees_in_box(const OutputDifference& output, const std::vector<std::int64_t>& begin,
                   const std::vector<std::int64_t>& end);

/// Borders along each axis between positions whose differences are not alike, from 0 to the size.
std::vector<std::vector<std::int64_t>> borders_of(const OutputDifference& output);

}  // namespace tessera::superopt
