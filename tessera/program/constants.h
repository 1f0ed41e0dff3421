#pragma once

#include "tessera/ir/graph.h"
#include "tessera/program/compile.h"
#include "tessera/support/expected.h"

namespace tessera::program {

/// Constant evaluation at compile time, by generated code:
///
///   y = conv(x, concat(v, w))   =>   y = conv(x, u)
///
/// Needs:  no composites. Leaves alone random draws, nodes with subgraphs or dynamic shapes, and
///         results that are larger than their operands by more than a mebibyte, or, for weights of
///         small types, by more than a gibibyte in all. Temporary results may grow by 256 MiB, in
///         all by a gibibyte.
/// Keeps:  the meaning.
Expected<Graph> evaluate_constants(const Graph& graph, const CompileOptions& options);

/// The same without evaluation, for plans: large results are zeros.
Expected<Graph> assume_constants(const Graph& graph);

}  // namespace tessera::program
