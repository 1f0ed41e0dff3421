#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tessera/tile/gpu/programs.h"
#include "tessera/tile/passes/cut_rows.h"

namespace tessera::tile::gpu {

/// Alignment of the rows of a program: all accesses are aligned; accesses to rows of this program
/// alone are aligned if parts start a few elements before the row; unknown.
enum class RowAlignment : std::uint8_t { Aligned, Shifted, Unknown };

/// One pass over the parts of a row, up to the next reduction result. Each reduction of a row that
/// exceeds the registers of a block is a pass over its parts, and so is the store; a pass reloads
/// its inputs, from the caches. Threads reduce their own elements of all parts before they exchange
/// partial results.
struct RowPass {
  std::vector<OpId> before = {};  // once, before the parts
  std::vector<OpId> inside = {};  // for each part
  std::vector<OpId> folds = {};   // reductions among those, combined over the parts
  std::optional<OpId> store = {};
  std::vector<OpId> after = {};  // stores besides the row
};
std::vector<RowPass> row_passes(const Kernel& kernel, const CutRows& cut);

/// Axis of an access that is cut into parts.
std::optional<int> cut_axis(const CutRows& cut, const Operation& op);

/// Whether a load is the same for all programs.
bool is_fixed(const ProgramDependences& dependences, const Operation& op);

/// Properties of the accesses of a pass: of parts that are within the row, or of the first and last
/// one. `constants`: loads of read-only memory.
struct PartAccesses {
  RowAlignment alignment = RowAlignment::Unknown;
  bool is_middle = false;
  const std::set<OpId>& constants;
};
std::map<OpId, KnownAccess> known_accesses_of_parts(const PlannedKernel& planned,
                                                    const ProgramDependences& dependences,
                                                    const RowPass& pass, const PartAccesses& of);

}  // namespace tessera::tile::gpu
