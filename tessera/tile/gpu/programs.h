#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/tile/gpu/planned_kernel.h"

namespace tessera::tile::gpu {

/// Dependence of scalars and views on the program id along axis 0, for those that are computed from
/// parameters and program ids alone. Views that vary are left out.
enum class ProgramDependence : std::uint8_t { Uniform, Varying };
using ProgramDependences = std::map<ValueId, ProgramDependence>;
ProgramDependences program_dependences(const Kernel& kernel);

/// Parameter that a view is based on without pointer arithmetic, if there is one.
std::optional<ValueId> root_of(const PlannedKernel& planned, ValueId view);

/// A load that is executed by all programs before any store. In a persistent block, each thread
/// prefetches its own elements for the next program by cp.async while the current program runs, or
/// loads them once if they are read-only, shared by all programs.
struct PrefetchedLoad {
  OpId load = 0;
  std::int64_t bytes = 0;  // loaded by one program
  bool fixed = false;      // whether all programs load the same
};
std::vector<PrefetchedLoad> prefetched_loads(const PlannedKernel& planned,
                                             const ProgramDependences& dependences);

/// A load or store whose address is computed before the program starts, with the properties that a
/// check at launch guards: code is generated for them without branches (a fast version), and again
/// for the general case.
struct KnownAccess {
  int run = 1;             // elements per vector access; from 2 on, accesses are aligned
  bool constant = false;   // read-only data that several programs share
  bool unaligned = false;  // unaligned: each word is combined from two aligned loads
  bool edge = false;  // elements may lie beyond the end of the row, where their values are unused
  std::vector<bool> inside = {};  // by axis: the access is in bounds
  bool aligned() const { return run > 1; }
};
/// Accesses with known addresses, in the order of the kernel.
std::vector<std::pair<OpId, KnownAccess>> known_accesses(const PlannedKernel& planned,
                                                         const ProgramDependences& dependences);

}  // namespace tessera::tile::gpu
