#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tessera::program {

/// A tensor that needs memory from step `first` to step `last`, both included.
struct Lifetime {
  std::int64_t bytes = 0;
  int first = 0, last = 0;
  /// A tensor whose last step is this one's first: it may take its memory over.
  std::optional<std::size_t> in_place_of = {};
};

struct MemoryPlan {
  std::vector<std::int64_t> offsets = {};  // aligned to 64
  std::int64_t bytes = 0;
  std::int64_t lower_bound = 0;  // the most that is alive at one time
};

/// Offsets so that tensors alive at the same time do not overlap.
MemoryPlan plan_memory(std::span<const Lifetime> tensors);

}  // namespace tessera::program
