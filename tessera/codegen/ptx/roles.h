#pragma once

#include <cstdint>

namespace tessera::codegen::ptx {

/// Threads of a block that copy for the others: a warpgroup, because registers change hands by
/// warpgroups.
constexpr int kCopyThreads = 128;
constexpr int kRegistersOfAMultiprocessor = 65536;
/// Of a loop that fewer rounds are known of, all threads copy: its program is mostly reads and
/// writes around it, which blocks beside each other hide better.
constexpr std::int64_t kLeastRounds = 12;

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

}  // namespace tessera::codegen::ptx
