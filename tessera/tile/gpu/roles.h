#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/runtime/cuda/tensor_map.h"
#include "tessera/tile/gpu/ahead.h"

namespace tessera::tile::gpu {

/// Threads of a block that copy for the others: a warpgroup, because registers change hands by
/// warpgroups.
constexpr int kCopyThreads = 128;
constexpr int kRegistersOfAMultiprocessor = 65536;
/// Those that compute are one team, or two where 128 threads run a program: each has programs of
/// its own, and one writes its results while the other multiplies. All begin with equal shares of
/// the registers; those that copy give away what they do not need.
struct Teams {
  int count = 1, copy_registers = 0, compute_registers = 0;
};
constexpr Teams teams_of(int threads_of_a_program) {
  constexpr int kCopy = 64, kMost = 240, kUnit = 8;
  const int count = threads_of_a_program <= kCopyThreads ? 2 : 1;
  const int computing = threads_of_a_program * count, all = computing + kCopyThreads;
  // What a block is given when it begins is all that it has to share.
  const int given = kRegistersOfAMultiprocessor / all / kUnit * kUnit * all;
  const int share = (given - kCopyThreads * kCopy) / computing / kUnit * kUnit;
  return {
      .count = count, .copy_registers = kCopy, .compute_registers = share < kMost ? share : kMost};
}

/// Whether roles are worth it where the rounds of a loop are known, as they are in models. Measured
/// on an H200 with convolutions of f16, microseconds of a kernel without and with them:
///
///   sums     rounds   without    with
///   64x32    4           2.6      3.0
///   64x32    36         10.7      9.2   few programs: what counts is when a round arrives
///   64x64    2           9.2      7.0
///   64x64    32         10.7     16.1   two blocks in a multiprocessor do better than two teams
///   64x128   4          25.5     21.7
///   64x128   16         10.4     13.2
///   64x128   36         44.8     32.8
///   128x128  2          21.2     12.4
///   128x128  8          20.3     15.7
///   128x128  72         39.2     27.1
///   128x256  8          19.2     17.4
///   256x128  18         21.6     16.4
struct RoleCost {
  std::int64_t rounds = 0, sums = 0;
};
constexpr bool roles_pay(const RoleCost& cost) {
  constexpr std::int64_t kLarge = 128 * 128, kMiddle = 64 * 128, kSmall = 64 * 64;
  if (cost.sums >= kLarge) return cost.rounds >= 2;
  if (cost.sums >= kMiddle) return cost.rounds <= 4 || cost.rounds >= 18;
  if (cost.sums >= kSmall) return cost.rounds <= 2;
  return cost.rounds >= 9;
}

/// A kernel around one loop of products: some threads of a block fill its rings, the others
/// multiply and do all else.
struct Roles {
  OpId loop = 0;
  Ahead ahead = {};
  std::vector<OpId> needed = {};  // to know what to copy: numbers and views, in order
  /// Small loads that need not wait for the loop, and the numbers that they need.
  struct Early {
    OpId load = 0;
    std::vector<OpId> numbers = {};
  };
  std::vector<Early> early = {};
  std::vector<runtime::cuda::TensorMap> maps = {};  // of the rings, or none,
  std::string no_maps = {};                         // for this reason
};

/// The first loop that has roles.
///
/// Needs:  the loop comes before any write, a product of it goes on into the next round, and where
///         it reads follows from arguments and the grid alone, because those that copy compute
///         nothing else. Programs do not wait for each other.
struct RoleOptions {
  int stages = 0;
  bool maps = false;  // who launches can make them
};
Decided<Roles> find_roles(const Planned& planned, const RoleOptions& options);

}  // namespace tessera::tile::gpu
