#pragma once

#include "tessera/program/assemble.h"
#include "tessera/program/compile.h"

namespace tessera::program {

/// What compile() would make of a graph, as far as its steps: groups, layouts, kernels as tile
/// programs. Nothing is compiled, no weight is computed or packed, no memory is planned.
Expected<Draft> plan(const Graph& graph, const Planning& planning);

/// The lowerings that plans and programs with these options share.
Lowerings lowerings_for(const CompileOptions& options);

/// compile() of a graph of core operators with nothing computed beforehand.
Expected<Compiled> compile_as_it_is(const Graph& graph, const CompileOptions& options);

}  // namespace tessera::program
