#pragma once

#include <cstdint>

namespace tessera::tile::gpu {

/// Allocation of the shared memory of a block, as a stack: `reserve` and `release` for long-lived
/// buffers, and scratch above it, which the next user reuses after a barrier.
class SharedStack {
 public:
  /// Offset of a buffer, of a multiple of kSharedAlignment bytes.
  std::int64_t reserve(std::int64_t bytes);
  void release(std::int64_t bytes) { top_ -= bytes; }

  /// Scratch for one exchange: `needs_barrier`: earlier users may still read it.
  struct Scratch {
    std::int64_t offset = 0;
    bool needs_barrier = false;
  };
  Scratch scratch(std::int64_t bytes);
  /// Scratch that was not used before, in code that runs once.
  std::int64_t fresh(std::int64_t bytes);

  /// A barrier of all threads that use the scratch.
  void barrier() {
    is_scratch_used_ = false;
    ++barriers_;
  }
  /// Scratch may be in use: by reads after the last barrier, or on another path.
  void use_scratch() { is_scratch_used_ = true; }
  /// Number of barriers: two accesses with the same count are not ordered.
  int barriers() const { return barriers_; }

  /// Bytes of all buffers and of the largest scratch above them.
  std::int64_t bytes() const { return peak_; }
  /// Bytes of it that are not reserved now.
  std::int64_t scratch_bytes() const;

 private:
  std::int64_t top_ = 0, peak_ = 0, fresh_ = 0;
  bool is_scratch_used_ = false;
  int barriers_ = 0;
};

}  // namespace tessera::tile::gpu
