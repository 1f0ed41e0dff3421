#pragma once

#include "tessera/program/assemble.h"
#include "tessera/program/compile.h"

namespace tessera::program {

/// Plans a program without generating code: fusion groups, layouts and kernels as tile IR. No
/// weight is evaluated or packed, no memory is planned. For cost models.
Expected<Draft> plan(const Graph& graph, const PlanContext& planning);

/// Lowering cache for plans and programs with these options.
Lowerings lowerings_for(const CompileOptions& options);

/// compile() for a graph of core operators, without passes and constant evaluation.
Expected<Compiled> compile_core_graph(const Graph& graph, const CompileOptions& options);

}  // namespace tessera::program
