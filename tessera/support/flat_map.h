#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera {

/// Hash map from 64-bit keys, with open addressing and linear probing. References to values last
/// until the next insertion.
template <class Value>
class FlatMap {
 public:
  /// The value of a key, default-constructed where there was none, and whether there was none.
  std::pair<Value&, bool> try_emplace(std::uint64_t key) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place_of(key)];
    const bool fresh = !slot.used;
    if (fresh) {
      slot.key = key;
      slot.used = true;
      ++count_;
    }
    return {slot.value, fresh};
  }
  std::size_t size() const { return count_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Value value = {};
    bool used = false;
  };

  /// The slot of a key, or the empty one that it goes to.
  std::size_t place_of(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;  // sizes are powers of two
    std::size_t place = (key * 0x9e3779b97f4a7c15ull >> 32) & mask;
    while (slots_[place].used && slots_[place].key != key) place = (place + 1) & mask;
    return place;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    std::swap(old, slots_);
    for (Slot& slot : old)
      if (slot.used) slots_[place_of(slot.key)] = std::move(slot);
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace tessera
