#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tessera {

/// Interning table: equal objects are one object, which stays where it is as long as the table
/// lives. Any thread may use it; it is sharded by hash, so that threads seldom wait for each other.
/// Its content is never observable: what was interned before changes no result.
template <class Object>
class InternTable {
 public:
  /// The object of this hash for which `equals` is true; else the one that `make` returns.
  template <class Equals, class Make>
  const Object& find_or_add(std::uint64_t hash, const Equals& equals, const Make& make) {
    Shard& shard = shards_[hash >> (64 - kShardBits)];
    const std::lock_guard lock(shard.mutex);
    if (2 * shard.count >= shard.slots.size()) shard.grow();
    Slot* slot = shard.slot_of(hash, equals);
    if (slot->object == nullptr) {
      *slot = {hash, std::unique_ptr<const Object>(make())};
      ++shard.count;
    }
    return *slot->object;
  }

 private:
  static constexpr int kShardBits = 4;
  struct Slot {
    std::uint64_t hash = 0;
    std::unique_ptr<const Object> object = nullptr;
  };
  /// Open addressing with linear probing.
  struct Shard {
    std::mutex mutex;
    std::vector<Slot> slots = std::vector<Slot>(64);  // a power of two
    std::size_t count = 0;

    template <class Equals>
    Slot* slot_of(std::uint64_t hash, const Equals& equals) {
      for (std::size_t at = hash;; ++at) {
        Slot& slot = slots[at & (slots.size() - 1)];
        if (slot.object == nullptr || (slot.hash == hash && equals(*slot.object))) return &slot;
      }
    }
    void grow() {
      std::vector<Slot> old(2 * slots.size());
      std::swap(old, slots);
      for (Slot& slot : old)
        if (slot.object != nullptr)
          *slot_of(slot.hash, [](const Object&) { return false; }) = std::move(slot);
    }
  };
  std::array<Shard, 1 << kShardBits> shards_;
};

}  // namespace tessera
