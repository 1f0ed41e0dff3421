#pragma once

#include "tessera/program/boundary.h"
#include "tessera/program/compile.h"
#include "tessera/program/draft.h"
#include "tessera/program/lowerings.h"

namespace tessera::program {

/// Arguments of planning: options, cached lowerings, and where inputs and outputs are.
struct PlanContext {
  const CompileOptions& options;
  Lowerings& lowerings;  // for the machine and the options
  Boundary boundary = Boundary::Caller;
};

/// Builds the draft of a program: steps over values for every fusion group of a graph.
///
///   decide()          fusion groups, layouts, dtypes in memory                   -> Decisions
///   kernel_group()    nodes of a group as stages, with fused data movement       -> KernelGroup
///   Places            location of operands; copies where layout or dtype differ  -> Place
///   IndexChecks       bounds checks of indices                                   -> IndexCheck
///   lowered()         kernels, or why there are none                             -> LoweredGroup
///   add_launches()    steps, weights, temporaries                                -> Draft
///   host_call()       nodes without kernels                                      -> HostCall
///   loop_body()       scans over slices: loops over the steps of their bodies    -> Draft
///   Outputs           outputs of the graph, in the caller's memory
Expected<Draft> assemble(const Graph& graph, const PlanContext& planning);

}  // namespace tessera::program
