#pragma once

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Computes only the parts of a result that are read:
///
///   y = conv(x, w), only slices of y are used   =>   conv(slice(x), w) for each slice
///
/// The slice of an operand is the cone of the box: the range of the affine indices at which the
/// definition reads it. An operator is narrowed where the definition on the narrowed operands
/// (with other `pads`, where it reads beyond them) is the old one with its indices shifted.
///
/// Taps of a window that only read padding are left out, with their part of a constant weight.
///
/// Needs:  static shapes.
/// Keeps:  the meaning, with the same sums in the same order, up to terms that are 0.
/// Leaves: no operator with a definition of this kind that is read by slices of step 1 alone,
/// unless
///         they take together as many elements as it has.
Graph narrow(const Graph& graph);

}  // namespace tessera::passes
