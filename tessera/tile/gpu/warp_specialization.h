#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/runtime/cuda/tensor_map.h"
#include "tessera/tile/gpu/loop_pipeline.h"

namespace tessera::tile::gpu {

/// Producer threads of a warp-specialized block: one warpgroup, because setmaxnreg reallocates
/// registers per warpgroup.
constexpr int kProducerThreads = 128;
constexpr int kRegistersOfAMultiprocessor = 65536;
/// Consumer groups of a warp-specialized block and the registers of each thread: one group, or two
/// where 128 threads run a program. With two (CUTLASS: ping-pong), each has programs of its own,
/// and the epilogue of one overlaps with the matmuls of the other. All warps start with equal
/// shares of the registers; producers release what they do not need (setmaxnreg).
struct ConsumerGroups {
  int count = 1, producer_registers = 0, consumer_registers = 0;
};
constexpr ConsumerGroups consumer_groups_of(int threads_of_a_program) {
  constexpr int kCopy = 64, kMost = 240, kUnit = 8;
  const int count = threads_of_a_program <= kProducerThreads ? 2 : 1;
  const int computing = threads_of_a_program * count, all = computing + kProducerThreads;
  // Registers are allocated when the block starts; reallocation only redistributes them.
  const int given = kRegistersOfAMultiprocessor / all / kUnit * kUnit * all;
  const int share = (given - kProducerThreads * kCopy) / computing / kUnit * kUnit;
  return {.count = count,
          .producer_registers = kCopy,
          .consumer_registers = share < kMost ? share : kMost};
}

/// Cost model of warp specialization for loops whose number of k-steps is known, as in models.
/// Measured on an H200 with f16 convolutions, microseconds per kernel without and with it:
///
///   tile     k-steps  without    with
///   64x32    4           2.6      3.0
///   64x32    36         10.7      9.2   few programs: latency of the loads dominates
///   64x64    2           9.2      7.0
///   64x64    32         10.7     16.1   two blocks per SM beat two consumer groups
///   64x128   4          25.5     21.7
///   64x128   16         10.4     13.2
///   64x128   36         44.8     32.8
///   128x128  2          21.2     12.4
///   128x128  8          20.3     15.7
///   128x128  72         39.2     27.1
///   128x256  8          19.2     17.4
///   256x128  18         21.6     16.4
struct LoopWork {
  std::int64_t k_steps = 0, accumulators = 0;
};
constexpr bool warp_specialization_pays(const LoopWork& work) {
  constexpr std::int64_t kLarge = 128 * 128, kMiddle = 64 * 128, kSmall = 64 * 64;
  if (work.accumulators >= kLarge) return work.k_steps >= 2;
  if (work.accumulators >= kMiddle) return work.k_steps <= 4 || work.k_steps >= 18;
  if (work.accumulators >= kSmall) return work.k_steps <= 2;
  return work.k_steps >= 9;
}

/// Warp specialization of a kernel around one loop of matmuls: producer warps fill the multi-stage
/// buffers, consumer warpgroups compute everything else.
struct WarpSpecialization {
  OpId loop = 0;
  LoopPipeline pipeline = {};
  std::vector<OpId> needed = {};  // scalars and views that the addresses depend on, in order
  /// Small loads hoisted before the loop, and the scalars that they depend on.
  struct Early {
    OpId load = 0;
    std::vector<OpId> numbers = {};
  };
  std::vector<Early> early = {};
  std::vector<runtime::cuda::TensorMap> maps = {};  // TMA tensor maps of the operands; none
  std::string no_maps_reason = {};                  // where this reason is given
};

/// Finds the first loop that warp specialization applies to.
///
/// Needs:  the loop comes before any store, one of its matmuls overlaps with the next iteration,
///         and its addresses follow from parameters and program ids alone, because producers
///         compute nothing else. Programs do not synchronize with each other.
struct WarpSpecializationOptions {
  int stages = 0;
  bool maps = false;          // the caller can encode TMA tensor maps
  bool is_requested = false;  // whether it is profitable is not asked
};
Decision<WarpSpecialization> find_warp_specialization(const PlannedKernel& planned,
                                                      const WarpSpecializationOptions& options);

}  // namespace tessera::tile::gpu
