#pragma once

#include "tessera/ir/graph.h"
#include "tessera/program/compile.h"
#include "tessera/support/expected.h"

namespace tessera::program {

/// Work on constants alone is done once, when a graph is compiled, by machine code of its own:
///
///   y = conv(x, concat(v, w))   =>   y = conv(x, u)
///
/// Needs:  no composites. Leaves alone draws, what has subgraphs, sizes that are not known, and
///         what makes constants larger by more than a mebibyte, or weights of small types by more
///         than a gibibyte in all.
/// Keeps:  the meaning.
Expected<Graph> with_computed_constants(const Graph& graph, const CompileOptions& options);

/// The same for those who only want to know what the rest becomes: in place of large constants,
/// zeros.
Expected<Graph> with_assumed_constants(const Graph& graph);

}  // namespace tessera::program
