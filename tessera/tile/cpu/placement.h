#pragma once

#include <optional>
#include <set>
#include <vector>

#include "tessera/tile/cpu/nest.h"
#include "tessera/tile/cpu/panels.h"

namespace tessera::tile::cpu {

/// Which values are kept in buffers and what the others are computed in.
struct Placement {
  std::vector<std::optional<OpId>> definition = {};  // by value
  std::vector<bool> kept = {};                       // by value: has a buffer of its own
  /// By value: the value whose buffer it is another shape of (a reshape of a kept value).
  std::vector<std::optional<ValueId>> reshaped = {};
  /// Panels of a packed matrix are whole vectors of this many bytes, or they are not read in place.
  int vector_bytes = 16;
  std::vector<Panels> narrow = {};  // panels of bf16 and of bytes that have instructions, if any
};

Placement place(const Kernel& kernel, const machine::Machine& machine, const NestOptions& options);

/// Whether a tile is computed where it is used unless it is kept.
bool is_inline(const Kernel& kernel, const Operation& op);

/// Where a dot reads its operand from: through what only moves elements, to a load or a kept value.
/// `base` is a value that has to be kept unless `source.vload` is set.
struct TracedSource {
  DotSource source = {};
  ValueId base = 0;
};
TracedSource trace_source(const Kernel& kernel, const Placement& placement, ValueId operand);

}  // namespace tessera::tile::cpu
