#include "tessera/program/memory.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "tessera/runtime/program.h"
#include "tessera/support/check.h"
#include "tessera/support/rng.h"

namespace tessera::program {
namespace {

/// Conflicts looked at before the search for a better order ends: some tens of milliseconds. Not
/// the clock: the same tensors get the same offsets everywhere.
constexpr std::int64_t kWork = 6'000'000;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + runtime::kAlignment - 1) / runtime::kAlignment * runtime::kAlignment;
}

/// Tensors that share one offset: each reuses the memory of the one before in place.
struct Block {
  std::vector<std::size_t> tensors = {};
  std::int64_t bytes = 0, area = 0, pressure = 0;
  int first = 0, last = 0;
};

/// Another block that is alive at the same time: no start between its offset - below and its
/// offset + above.
struct Conflict {
  std::uint32_t other;
  std::int64_t below, above;
};

/// Blocks to place in memory, and which of them overlap in time.
struct PlacementProblem {
  std::vector<Block> blocks = {};
  std::vector<std::vector<Conflict>> conflicts = {};  // per block
};

/// Offsets of the blocks.
struct Placement {
  std::vector<std::int64_t> offsets = {};  // per block
  std::int64_t bytes = 0;
};

/// By tensor, the one that reuses its memory in place: the largest candidate.
std::vector<std::optional<std::size_t>> heirs(std::span<const Lifetime> tensors) {
  std::vector<std::optional<std::size_t>> heir(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::optional<std::size_t> from = tensors[i].in_place_of;
    if (!from) continue;
    const Lifetime& before = tensors[*from];
    TESSERA_CHECK(before.last == tensors[i].first, "in place of a tensor that is still needed");
    if (*from == i || before.first == before.last || tensors[i].bytes > before.bytes) continue;
    if (!heir[*from] || tensors[*heir[*from]].bytes < tensors[i].bytes) heir[*from] = i;
  }
  return heir;
}

/// Bytes alive at each step; a tensor and its heir count as one at the step where they meet.
std::vector<std::int64_t> alive(std::span<const Lifetime> tensors,
                                const std::vector<std::optional<std::size_t>>& heir) {
  int end = 0;
  for (const Lifetime& t : tensors) end = std::max(end, t.last + 1);
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(end) + 1);
  const auto at = [&](int step) -> std::int64_t& { return bytes[static_cast<std::size_t>(step)]; };
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Lifetime& t = tensors[i];
    at(t.first) += aligned(t.bytes);
    at(t.last + 1) -= aligned(t.bytes);
    if (!heir[i]) continue;
    at(t.last) -= aligned(tensors[*heir[i]].bytes);
    at(t.last + 1) += aligned(tensors[*heir[i]].bytes);
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  return bytes;
}

std::vector<Block> blocks_of(std::span<const Lifetime> tensors,
                             const std::vector<std::optional<std::size_t>>& heir,
                             const std::vector<std::int64_t>& alive) {
  std::vector<bool> inherits(tensors.size());
  for (const auto& h : heir) {
    if (h) inherits[*h] = true;
  }
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (inherits[i]) continue;
    Block block{.first = tensors[i].first};
    for (std::optional<std::size_t> t = i; t; t = heir[*t]) {
      const Lifetime& tensor = tensors[*t];
      block.tensors.push_back(*t);
      block.bytes = std::max(block.bytes, aligned(tensor.bytes));
      block.area += aligned(tensor.bytes) * (tensor.last - tensor.first + 1);
      block.last = tensor.last;
    }
    for (int step = block.first; step <= block.last; ++step) {
      block.pressure = std::max(block.pressure, alive[static_cast<std::size_t>(step)]);
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

std::vector<std::vector<Conflict>> conflicts_of(std::span<const Lifetime> tensors,
                                                const std::vector<Block>& blocks) {
  struct Part {
    int first, last;
    std::int64_t bytes;
    std::uint32_t block;
  };
  std::vector<Part> parts;
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    for (const std::size_t t : blocks[b].tensors) {
      const Lifetime& tensor = tensors[t];
      if (tensor.bytes > 0) {
        parts.push_back({tensor.first, tensor.last, aligned(tensor.bytes), b});
      }
    }
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.first < b.first; });
  std::vector<std::vector<Conflict>> found(blocks.size());
  std::vector<Part> active;
  for (const Part& part : parts) {
    std::erase_if(active, [&](const Part& other) { return other.last < part.first; });
    for (const Part& other : active) {
      if (other.block == part.block) continue;
      found[part.block].push_back({other.block, part.bytes, other.bytes});
      found[other.block].push_back({part.block, other.bytes, part.bytes});
    }
    active.push_back(part);
  }
  for (std::vector<Conflict>& of : found) {  // two staircases may meet on several steps
    std::stable_sort(of.begin(), of.end(),
                     [](const Conflict& a, const Conflict& b) { return a.other < b.other; });
    std::size_t kept = 0;
    for (const Conflict& c : of) {
      if (kept > 0 && of[kept - 1].other == c.other) {
        of[kept - 1].below = std::max(of[kept - 1].below, c.below);
        of[kept - 1].above = std::max(of[kept - 1].above, c.above);
      } else {
        of[kept++] = c;
      }
    }
    of.resize(kept);
  }
  return found;
}

/// Places block after block in the smallest hole where it fits, the lowest if several.
class Placer {
 public:
  explicit Placer(const PlacementProblem& problem) : problem_(problem) {}

  /// Stops early, with more bytes than `bound`, when the bound is exceeded.
  Placement place(const std::vector<std::uint32_t>& order, std::int64_t bound) {
    Placement out{.offsets = std::vector<std::int64_t>(problem_.blocks.size(), kNowhere)};
    for (const std::uint32_t b : order) {
      out.offsets[b] = hole(b, out.offsets);
      out.bytes = std::max(out.bytes, out.offsets[b] + problem_.blocks[b].bytes);
      if (out.bytes > bound) break;
    }
    return out;
  }

  std::int64_t work() const { return work_; }

 private:
  static constexpr std::int64_t kNowhere = -1;

  std::int64_t hole(std::uint32_t block, const std::vector<std::int64_t>& offsets) {
    taken_.clear();
    for (const Conflict& c : problem_.conflicts[block]) {
      if (offsets[c.other] == kNowhere) continue;
      taken_.emplace_back(offsets[c.other] - c.below + 1, offsets[c.other] + c.above);
    }
    work_ += static_cast<std::int64_t>(problem_.conflicts[block].size() + 4 * taken_.size()) + 1;
    std::sort(taken_.begin(), taken_.end());
    std::int64_t start = 0, best = -1, best_slack = 0;
    for (const auto& [first, end] : taken_) {  // starts that would overlap
      if (first > start && (best < 0 || first - start < best_slack)) {
        best = start;
        best_slack = first - start;
      }
      start = std::max(start, end);
    }
    return best < 0 ? start : best;
  }

  const PlacementProblem& problem_;
  std::vector<std::pair<std::int64_t, std::int64_t>> taken_ = {};
  std::int64_t work_ = 0;
};

/// The orders that do well in one kind of network or another, largest key first.
std::vector<std::vector<std::uint32_t>> orders(const std::vector<Block>& blocks) {
  using Key = std::array<std::int64_t, 3>;
  const auto length = [](const Block& b) { return std::int64_t{b.last} - b.first; };
  const auto by = [&](auto key) {
    std::vector<std::uint32_t> order(blocks.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return Key{key(blocks[a])} > Key{key(blocks[b])};
    });
    return order;
  };
  return {
      by([&](const Block& b) {
        return Key{b.bytes, length(b), 0};
      }),
      by([&](const Block& b) {
        return Key{b.pressure, b.bytes, length(b)};
      }),
      by([&](const Block& b) {
        return Key{b.area, b.bytes, 0};
      }),
      by([&](const Block& b) {
        return Key{b.pressure, length(b), b.bytes};
      }),
      by([&](const Block& b) {
        return Key{length(b), b.bytes, 0};
      }),
      by([&](const Block& b) {
        return Key{-b.first, b.bytes, 0};
      }),
      by([&](const Block& b) {
        return Key{b.last, b.bytes, 0};
      }),
  };
}

/// The best of the orders, then of small changes to it: what ends highest is placed earlier.
Placement search(const PlacementProblem& problem, std::int64_t lower_bound) {
  Placer placer(problem);
  Placement best;
  std::vector<std::uint32_t> order;
  for (std::vector<std::uint32_t>& candidate : orders(problem.blocks)) {
    Placement placed = placer.place(candidate, order.empty() ? INT64_MAX : best.bytes - 1);
    if (order.empty() || placed.bytes < best.bytes) {
      best = std::move(placed);
      order = std::move(candidate);
    }
    if (best.bytes == lower_bound || placer.work() > kWork) return best;
  }
  Rng rng(1);
  while (best.bytes > lower_bound && placer.work() < kWork) {
    std::vector<std::size_t> highest;  // where in the order
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (best.offsets[order[i]] + problem.blocks[order[i]].bytes == best.bytes) {
        highest.push_back(i);
      }
    }
    const std::size_t from = highest[rng.below(highest.size())];
    if (from == 0) return best;  // it is as large as all of the memory
    std::vector<std::uint32_t> changed = order;
    const auto begin = changed.begin();
    const auto to = static_cast<std::ptrdiff_t>(rng.below(from));
    std::rotate(begin + to, begin + static_cast<std::ptrdiff_t>(from),
                begin + static_cast<std::ptrdiff_t>(from) + 1);
    Placement placed = placer.place(changed, best.bytes);
    if (placed.bytes > best.bytes) continue;
    best = std::move(placed);
    order = std::move(changed);
  }
  return best;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> tensors) {
  const auto heir = heirs(tensors);
  const std::vector<std::int64_t> bytes_alive = alive(tensors, heir);
  MemoryPlan plan{.offsets = std::vector<std::int64_t>(tensors.size()),
                  .lower_bound = *std::max_element(bytes_alive.begin(), bytes_alive.end())};
  PlacementProblem problem{.blocks = blocks_of(tensors, heir, bytes_alive)};
  problem.conflicts = conflicts_of(tensors, problem.blocks);
  const Placement placement = search(problem, plan.lower_bound);
  for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
    for (const std::size_t t : problem.blocks[b].tensors) plan.offsets[t] = placement.offsets[b];
  }
  plan.bytes = placement.bytes;
  return plan;
}

}  // namespace tessera::program
