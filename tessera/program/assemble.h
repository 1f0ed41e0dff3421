#pragma once

#include "tessera/program/boundary.h"
#include "tessera/program/compile.h"
#include "tessera/program/draft.h"
#include "tessera/program/lowerings.h"

namespace tessera::program {

/// What decisions are made with.
struct Planning {
  const CompileOptions& options;
  Lowerings& lowerings;  // for the machine and the options
  Boundary boundary = Boundary::Caller;
};

/// Steps over values for every group of a graph:
///
///   decide()          groups, orders of axes, dtypes in memory                   -> Decisions
///   kernel_group()    the nodes of a group as stages, with the moves they read   -> KernelGroup
///   Places            where operands are; copies where order or dtype differ     -> Place
///   IndexChecks       indices that have to be checked first                      -> IndexCheck
///   lowered()         kernels, or why there are none                             -> LoweredGroup
///   add_launches()    steps, weights, temporaries                                -> Draft
///   host_call()       nodes without kernels                                      -> HostCall
///   loop_body()       scans over slices: loops over the steps of their bodies    -> Draft
///   Outputs           results that the caller wants
Expected<Draft> assemble(const Graph& graph, const Planning& planning);

}  // namespace tessera::program
