#pragma once

#include <optional>
#include <set>
#include <vector>

#include "tessera/tile/cpu/nest.h"
#include "tessera/tile/cpu/panels.h"

namespace tessera::tile::cpu {

/// Materialization decisions of a kernel: which values are kept in buffers; the others are computed
/// where they are used.
struct Placement {
  std::vector<std::optional<OpId>> definition = {};  // by value
  std::vector<bool> kept = {};                       // by value: has a buffer of its own
  /// By value: the value whose buffer it reinterprets (a reshape of a kept value).
  std::vector<std::optional<ValueId>> reshaped = {};
  /// Vector width in bytes; panels of a packed matrix are read in place only if they are whole
  /// vectors.
  int vector_bytes = 16;
  /// Columns of the widest panels of f32 whose accumulators fit the registers.
  std::int64_t widest_panel = 0;
  std::vector<Panels> narrow =
      {};  // panel layouts of bf16 and i8 where the CPU has instructions for them
};

/// Decides which values are materialized.
Placement place(const Kernel& kernel, const machine::Machine& machine, const NestOptions& options);

/// Whether a tile is computed where it is used unless it is kept.
bool is_inline(const Kernel& kernel, const Operation& op);

/// Origin of a factor of a dot, traced through data movement to a load or a kept value. `base` is a
/// value that has to be kept unless `source.vload` is set. Factor 0 is the left one, factor 1 the
/// right one, which alone may be in panels.
struct TracedSource {
  DotSource source = {};
  ValueId base = 0;
};
TracedSource trace_source(const Kernel& kernel, const Placement& placement, const Operation& dot,
                          std::size_t factor);

}  // namespace tessera::tile::cpu
