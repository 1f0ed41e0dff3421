#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tessera::program {

/// Live range of a tensor: needs memory from step `first` to step `last`, inclusive.
struct Lifetime {
  std::int64_t bytes = 0;
  int first = 0, last = 0;
  /// Tensor whose memory this one may reuse in place: its last step is this one's first.
  std::optional<std::size_t> in_place_of = {};
};

/// Offsets of tensors in the arena.
struct MemoryPlan {
  std::vector<std::int64_t> offsets = {};  // aligned to 64
  std::int64_t bytes = 0;
  std::int64_t lower_bound = 0;  // largest sum of live tensors
};

/// Assigns offsets such that tensors with overlapping live ranges do not overlap.
MemoryPlan plan_memory(std::span<const Lifetime> tensors);

}  // namespace tessera::program
