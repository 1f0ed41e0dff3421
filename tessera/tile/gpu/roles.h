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
/// on an H200 in resnet50 and bert_base, microseconds of a kernel without and with them:
///
///   sums     rounds   without    with
///   64x32    9 to 36    11.7     11.1   copies cost more than products
///   64x64    12          9.4      8.9
///   128x128  18         26.0     27.0   two blocks in a multiprocessor do as well as two teams
///   128x128  8          16.5     20.3
///   256x128  18         24.6     22.4   one team of 256 threads
///   128x256  12         45.4     42.3
///   256x128  8          14.3     16.3
struct RoleCost {
  std::int64_t rounds = 0, sums = 0;
  int threads = 0;  // of a program
};
constexpr bool roles_pay(const RoleCost& cost) {
  constexpr std::int64_t kSmall = 64 * 64, kRounds = 12;
  const bool one_team = teams_of(cost.threads).count == 1;
  return cost.sums <= kSmall || (one_team && cost.rounds >= kRounds);
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
