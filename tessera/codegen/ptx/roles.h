#pragma once

namespace tessera::codegen::ptx {

/// Threads of a block that copy for the others: a warpgroup, because registers change hands by
/// warpgroups.
constexpr int kCopyThreads = 128;
constexpr int kRegistersOfAMultiprocessor = 65536;

/// Registers of a thread that copies and of one that computes. A block begins with equal shares;
/// those that copy give away what they do not need. With 128 threads that compute, two blocks share
/// a multiprocessor: one writes its results while the other multiplies.
struct RoleRegisters {
  int blocks = 1, copy = 0, compute = 0;
};
constexpr RoleRegisters role_registers(int compute_threads) {
  constexpr int kCopy = 64, kMost = 240, kUnit = 8;
  const int blocks = compute_threads <= kCopyThreads ? 2 : 1;
  // What a block is given when it begins is all that it has to share.
  const int all = compute_threads + kCopyThreads;
  const int given = kRegistersOfAMultiprocessor / blocks / all / kUnit * kUnit * all;
  const int share = (given - kCopyThreads * kCopy) / compute_threads / kUnit * kUnit;
  return {.blocks = blocks, .copy = kCopy, .compute = share < kMost ? share : kMost};
}

}  // namespace tessera::codegen::ptx
