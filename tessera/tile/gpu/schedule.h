#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/tile/gpu/block_program.h"
#include "tessera/tile/gpu/planned_kernel.h"
#include "tessera/tile/gpu/row_schedule.h"
#include "tessera/tile/gpu/tile_pipelines.h"
#include "tessera/tile/gpu/warp_specialization.h"
#include "tessera/tile/passes/cut_rows.h"

namespace tessera::tile::gpu {

/// Features of the target GPU, capabilities of the launcher, and overrides of scheduling choices.
struct Options {
  bool wgmma = true;                      // the target has wgmma (Hopper)
  bool tf32 = false;                      // f32 matmuls may round their factors to tf32
  bool fast_precision = false;            // exp and erf may round differently (passes/exponents.h)
  std::int64_t shared_bytes = 227 << 10;  // shared memory limit per block
  /// Number of pipeline stages of a loop's operands; fewer where shared memory is short; up to
  /// `more_stages` where two blocks still fit on an SM.
  int stages = 4, more_stages = 0;
  bool persistent = false;         // blocks may be persistent
  bool block_per_program = false;  // small programs do not share a block
  /// Threads per program of kernels that row_schedule does not cover; a minimum for kernels with
  /// matmuls. 0: chosen by tile sizes.
  int threads = 0;
  bool warp_specialization = true;   // persistent blocks may be warp-specialized
  bool maps = false;                 // producers may copy by TMA
  bool programmatic_launch = false;  // blocks await the grids before theirs (programmatic_launch.h)
  /// Whether each parameter is a view of memory that no kernel writes; missing ones are not.
  std::vector<bool> constants = {};
  /// Overrides for kernels without matmuls; 0 (for `prefetched_rows`: -1) keeps the choice of
  /// row_schedule.
  int bytes_per_thread = 0, prefetched_rows = -1, coarsening = 0, registers = 0;
  /// Whether 16-bit elements of rows stay packed until a reduction; -1 keeps the choice of
  /// row_schedule.
  int packed = -1;
  /// Elements of a row per pass, 0 keeps the choice of row_schedule; bytes of a row cached in
  /// shared memory, -1 keeps it.
  std::int64_t part = 0, cached_bytes = -1;
};

/// Mapping of the programs of the grid to thread blocks.
struct BlockMapping {
  int programs = 1;         // programs of the kernel per block, along axis 0, each run by a warp
  int coarsening = 1;       // programs of the grid merged into one program of the kernel (coarsen)
  bool persistent = false;  // persistent: a block runs several programs of the grid in turn
  int prefetched = 1;       // number of programs prefetched by a persistent block
  bool rows = false;        // straight-line code with reductions
  bool packed = false;      // 16-bit elements of rows stay packed until a reduction
  /// Kernel that processes rows in several passes over parts of them; null where rows are whole.
  const CutRows* cut = nullptr;
  std::int64_t cached_bytes = 0;  // bytes of a row cached in shared memory between passes
  /// Whether the block is warp-specialized.
  bool warp_specialized = false;
  bool tile_pipelines = false;  // with a pipeline for each view
  int stages = 0;               // pipeline stages of loops; fewer than 2: no prefetching
  int maps = 0;                 // number of TMA tensor maps: the last parameters
  /// Whether a parameter after the kernel's own is the number of programs along axis 0.
  bool has_program_count() const {
    return programs > 1 || coarsening > 1 || persistent || warp_specialized;
  }
  /// Number of words between the kernel's own parameters and the tensor maps; with maps, one word
  /// says whether they could be encoded.
  int words() const { return (has_program_count() ? 1 : 0) + (maps > 0 ? 1 : 0); }
};

/// GPU schedule of a kernel: everything that is decided before code is
/// written. Not movable, because its
/// parts refer to its kernel.
struct ScheduledKernel {
  ScheduledKernel() = default;
  ScheduledKernel(const ScheduledKernel&) = delete;
  ScheduledKernel& operator=(const ScheduledKernel&) = delete;

  Kernel kernel = {};  // simplified; coarsened, or cut into parts of rows, where the shape says so
  std::optional<CutRows> cut = {};
  RowSchedule rows = {};
  std::optional<Plan> plan = {};
  std::optional<PlannedKernel> planned = {};
  Decision<WarpSpecialization> warp_specialization = DeclineReason{"no matmul"};
  Decision<TilePipelines> tile_pipelines = DeclineReason{"not requested"};
  BlockMapping mapping = {};
  std::set<ValueId> constants = {};  // parameters that are views of memory which no kernel writes
  int registers = 0;                 // maximum number per thread, for occupancy; 0: no limit
  bool fast_erf = false;             // 1 + erf(x) is evaluated as one (erf_pattern.h)
  BlockProgram program = {};         // form S

  /// Threads per block.
  int threads() const;
  /// Tensor maps of its producers.
  std::vector<runtime::cuda::TensorMap> maps() const;
};

/// Makes the schedule of a kernel, down to the program of its blocks, as `Kernel::block` requests
/// it; a request that cannot be met is `schedule-illegal`. Where the program needs too much shared
/// memory, a block prefetches less, or a program has a block of its own; a kernel that fits in no
/// shape is a diagnostic: `ptx-shared-memory`. An operation that no GPU code exists for is one too:
/// `ptx-unsupported`.
Expected<std::unique_ptr<ScheduledKernel>> schedule(const Kernel& kernel, const Options& options);

/// Prints the kernel as tile IR with the decisions and their reasons as comments.
std::string to_text(const ScheduledKernel& scheduled);

}  // namespace tessera::tile::gpu
