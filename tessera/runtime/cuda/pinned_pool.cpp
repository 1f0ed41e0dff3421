#include "tessera/runtime/cuda/pinned_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <list>
#include <map>
#include <mutex>
#include <new>

#include "tessera/machine/machine.h"
#include "tessera/runtime/program.h"

namespace tessera::runtime::cuda {
namespace {

constexpr std::size_t kHugePage = 2 << 20;

/// Whole pages, huge ones where available: locking them takes less time. Null where there are none.
std::byte* pages_of(std::size_t bytes) {
  const std::size_t unit = bytes >= kHugePage ? kHugePage : PinnedPool::kLeastBytes;
  void* const memory = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
  if (memory != nullptr && unit == kHugePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

std::shared_ptr<std::byte> pageable(std::size_t bytes) {
  constexpr auto kUnit = static_cast<std::size_t>(kAlignment);
  void* const memory = std::aligned_alloc(kUnit, (bytes / kUnit + 1) * kUnit);
  if (memory == nullptr) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), [](std::byte* freed) { std::free(freed); }};
}

}  // namespace

/// Blocks, in use and idle. Those in use are unlocked, but not freed, when the pool ends.
struct PinnedPool::State {
  struct Idle {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::int64_t since = 0;  // number of the allocation
  };

  State(Pages how, const Limits& most) : pages(std::move(how)), limits(most) {}

  /// A block of the pool that no one uses, or null.
  std::byte* take(std::size_t bytes) {
    const auto found = std::ranges::find(idle, bytes, &Idle::bytes);
    if (found == idle.end()) return nullptr;
    std::byte* const memory = found->memory;
    idle.erase(found);
    idle_bytes -= static_cast<std::int64_t>(bytes);
    return memory;
  }

  /// Frees idle blocks that are too many or too old, the least recently used first.
  void trim() {
    while (!idle.empty() && (idle_bytes > limits.idle_bytes ||
                             allocations - idle.back().since > limits.idle_allocations)) {
      const Idle block = idle.back();
      idle.pop_back();
      idle_bytes -= static_cast<std::int64_t>(block.bytes);
      locked_bytes -= static_cast<std::int64_t>(block.bytes);
      pages.unlock(block.memory);
      std::free(block.memory);
    }
  }

  /// A block that is locked, if the system allows; its bytes are already counted.
  std::byte* new_block(std::size_t bytes) {
    std::byte* const memory = pages_of(bytes);
    const bool is_locked = memory != nullptr && pages.lock(memory, bytes);
    const std::lock_guard lock(mutex);
    if (is_locked) {
      in_use.emplace(memory, bytes);
      return memory;
    }
    locked_bytes -= static_cast<std::int64_t>(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    limits.locked_bytes = locked_bytes;  // what was refused is not asked for again
    return memory;
  }

  void give_back(std::byte* memory) {
    // The lock may be held by a thread that a child of fork() does not have.
    if (::getpid() != process) return std::free(memory);
    const std::lock_guard lock(mutex);
    const auto found = in_use.find(memory);
    if (found == in_use.end()) return std::free(memory);  // the pool has ended
    const std::size_t bytes = found->second;
    in_use.erase(found);
    idle.push_front({memory, bytes, allocations});
    idle_bytes += static_cast<std::int64_t>(bytes);
    trim();
  }

  Pages pages;
  Limits limits;
  const pid_t process = ::getpid();
  mutable std::mutex mutex = {};
  std::map<const std::byte*, std::size_t> in_use = {};
  std::list<Idle> idle = {};  // the most recently used first
  std::int64_t idle_bytes = 0, locked_bytes = 0, allocations = 0;
};

PinnedPool::PinnedPool(Pages pages, const Limits& limits)
    : state_(std::make_shared<State>(std::move(pages), limits)) {}

PinnedPool::~PinnedPool() {
  if (::getpid() != state_->process) return;
  const std::lock_guard lock(state_->mutex);
  state_->limits = {};
  state_->limits.idle_allocations = -1;
  state_->trim();
  for (const auto& [memory, bytes] : state_->in_use)
    state_->pages.unlock(const_cast<std::byte*>(memory));
  state_->in_use.clear();
  state_->locked_bytes = 0;
  state_->pages = {};
}

std::shared_ptr<std::byte> PinnedPool::allocate(std::size_t bytes) {
  State& state = *state_;
  if (bytes < kLeastBytes || ::getpid() != state.process) return pageable(bytes);
  const std::size_t size = block_bytes(bytes);
  const auto signed_size = static_cast<std::int64_t>(size);
  std::byte* memory = nullptr;
  {
    const std::lock_guard lock(state.mutex);
    ++state.allocations;
    memory = state.take(size);
    state.trim();
    if (memory != nullptr) {
      state.in_use.emplace(memory, size);
    } else if (signed_size > state.limits.locked_bytes - state.locked_bytes) {
      return pageable(bytes);
    } else {
      state.locked_bytes += signed_size;
    }
  }
  if (memory == nullptr) memory = state.new_block(size);
  return {memory, [kept = state_](std::byte* freed) { kept->give_back(freed); }};
}

bool PinnedPool::contains(const std::byte* memory, std::size_t bytes) const {
  const std::lock_guard lock(state_->mutex);
  auto found = state_->in_use.upper_bound(memory);
  if (found == state_->in_use.begin()) return false;
  --found;
  const auto offset = static_cast<std::size_t>(memory - found->first);
  return offset <= found->second && bytes <= found->second - offset;
}

std::int64_t PinnedPool::locked_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->locked_bytes;
}

std::size_t PinnedPool::block_bytes(std::size_t bytes) {
  const std::size_t unit = std::max(kLeastBytes, std::bit_floor(bytes) / 4);
  return (bytes + unit - 1) / unit * unit;
}

std::shared_ptr<PinnedPool> pinned_pool(const Device& device) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<PinnedPool>> pools;
  const std::lock_guard lock(mutex);
  if (auto there = pools[device.number()].lock()) return there;
  constexpr std::int64_t kMostIdle = std::int64_t{1} << 30;
  const PageLocks locks = device.page_locks();
  auto pool = std::make_shared<PinnedPool>(
      PinnedPool::Pages{.lock = [locks](std::byte* memory,
                                        std::size_t bytes) { return locks.lock(memory, bytes); },
                        .unlock = [locks](std::byte* memory) { locks.unlock(memory); }},
      PinnedPool::Limits{.locked_bytes = machine::host_memory() / 8, .idle_bytes = kMostIdle});
  pools[device.number()] = pool;
  return pool;
}

}  // namespace tessera::runtime::cuda
