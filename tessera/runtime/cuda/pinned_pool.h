#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "tessera/runtime/cuda/device.h"

namespace tessera::runtime::cuda {

/// Pool of page-locked (pinned) host memory. The GPU copies such memory by itself; to lock pages
/// takes longer than to copy them, so blocks are kept for later allocations. Thread-safe.
///
/// A block is ordinary memory whose pages are locked: it may outlive the pool, and then is no
/// longer locked; a child of fork() has a copy of it.
class PinnedPool {
 public:
  /// Functions that lock and unlock pages; `lock` may refuse.
  struct Pages {
    std::function<bool(std::byte* memory, std::size_t bytes)> lock;
    std::function<void(std::byte* memory)> unlock;
  };
  struct Limits {
    std::int64_t locked_bytes = 0;  // beyond it, memory is not locked
    std::int64_t idle_bytes = 0;    // of blocks that are kept
    /// A block that so many allocations have not taken is freed.
    std::int64_t idle_allocations = 256;
  };

  PinnedPool(Pages pages, const Limits& limits);
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  /// Memory with undefined content, aligned to kAlignment; it returns to the pool with its last
  /// owner. Where no more may be locked, it is pageable. Throws std::bad_alloc.
  std::shared_ptr<std::byte> allocate(std::size_t bytes);
  /// Whether memory lies in one locked block that is in use.
  bool contains(const std::byte* memory, std::size_t bytes) const;
  std::int64_t locked_bytes() const;

  /// Smaller blocks are not locked: a copy by the CPU takes less time than a transfer of their own.
  static constexpr std::size_t kLeastBytes = std::size_t{64} << 10;
  /// Size of the block for so many bytes; at most a quarter more, so that a block fits again.
  static std::size_t block_bytes(std::size_t bytes);

 private:
  struct State;
  std::shared_ptr<State> state_;  // blocks in use share it
};

/// The pool of a GPU, shared while in use: up to an eighth of the computer's memory is locked. It
/// must not outlive the device.
std::shared_ptr<PinnedPool> pinned_pool(const Device& device);

}  // namespace tessera::runtime::cuda
