#pragma once

#include <array>
#include <optional>

#include "tessera/lower/contraction.h"

namespace tessera::lower {

/// Usual tile sizes of a contraction on a GPU, with the fewest estimated cycles: powers of two, for
/// registers and tensor cores. Rows, columns, and the reduction where it is one axis, may be
/// smaller than the tiles.
ContractionTiles gpu_tiles(const Contraction& contraction, const GroupOptions& options,
                           const machine::Machine& machine);

/// Elements of the usual k-step of a contraction.
std::int64_t usual_step_of(const Contraction& contraction, const GroupOptions& options);
/// Warps that run a program, as far as accumulators decide (tile/gpu/plan.h).
std::int64_t usual_warps(std::int64_t accumulators);

/// Numbers of split-K parts that are considered.
constexpr std::array<std::int64_t, 9> kSplitKParts = {2, 3, 4, 5, 6, 7, 8, 12, 16};

/// Split-K: a reduction that is split along one of its axes into parts of this length; the last may
/// go past the end, where factors are 0.
struct SplitK {
  std::string axis = {};
  std::int64_t parts = 1, length = 0;
};
/// Split into so many parts; none where no axis has them in whole k-steps.
std::optional<SplitK> split_k(const Contraction& contraction, const GroupOptions& options,
                              std::int64_t parts);
/// Number of split-K parts that fills a GPU; 1: the grid is large enough without.
SplitK choose_split_k(const Contraction& contraction, const GroupOptions& options,
                      const machine::Machine& machine);

/// Tiles of a schedule, if it is legal for this contraction, which is that of one part with
/// split-K.
Expected<ContractionTiles> block_tiles_of(const Contraction& contraction,
                                          const BlockContractionSchedule& schedule,
                                          const GroupOptions& options,
                                          const machine::Machine& machine);
/// Schedule of tiles, without split-K and requests of blocks.
BlockContractionSchedule schedule_of(const ContractionTiles& tiles);

/// Legal schedules without split-K, the fewest estimated cycles first.
ScheduleCandidates block_candidates(const Contraction& contraction, const GroupOptions& options,
                                    const machine::Machine& machine);

/// Schedule that the analytic estimates choose; none where the group is no contraction.
std::optional<GroupSchedule> default_block_schedule(const Group& group,
                                                    const machine::Machine& machine,
                                                    const GroupOptions& options);
/// Lowers a contraction for thread blocks.
Expected<Attempt> lower_by_blocks(const Group& group, const machine::Machine& machine,
                                  const GroupOptions& options);
/// Legal schedules of a contraction on a GPU, those with split-K among them, the fewest estimated
/// cycles first.
ScheduleCandidates block_space(const Group& group, const machine::Machine& machine,
                               const GroupOptions& options);

}  // namespace tessera::lower
