#include "tessera/prove/input_ranges.h"

#include <limits>
#include <optional>

#include "tessera/prove/distinguish.h"

namespace tessera::prove {
namespace {

/// Token numbers, masks and kinds of tokens: some integers are only 0 or 1.
std::vector<InputRanges> common_ranges(const std::vector<Type>& types) {
  std::vector<std::size_t> integers;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (is_integer(types[i].dtype)) integers.push_back(i);
  const std::size_t subsets = integers.size() <= 4 ? std::size_t{1} << integers.size() : 2;
  std::vector<InputRanges> list;
  for (const std::int64_t below : {1000, 100, 10})
    for (std::size_t subset = 0; subset < subsets; ++subset) {
      InputRanges& ranges = list.emplace_back(types.size(), below);
      for (std::size_t i = 0; i < integers.size(); ++i)
        if (subsets == 2 ? subset == 1 : (subset >> i & 1) != 0) ranges[integers[i]] = 2;
    }
  if (integers.empty()) list.resize(1);
  return list;
}

/// Ranges with which the graph runs, found input by input.
std::optional<InputRanges> fitted_ranges(const Graph& graph, const std::vector<Type>& types,
                                         interp::Options run) {
  constexpr std::size_t kComplete = std::numeric_limits<std::size_t>::max();
  constexpr int kMostRuns = 100;
  int runs = 0;
  std::size_t nodes = 0;
  run.observe = [&](ValueId, const interp::Value&) { ++nodes; };
  const auto progress = [&](const InputRanges& below) {
    nodes = 0;
    ++runs;
    std::vector<interp::Value> values;
    for (const Tensor& input : make_inputs(types, {.below = below})) values.push_back({input});
    return interp::run_as<float>(graph, values, run) ? kComplete : nodes;
  };
  const auto is_stopped = [&] {
    return runs >= kMostRuns || (run.stop != nullptr && run.stop->load());
  };
  InputRanges best(types.size(), 1000);
  std::size_t most = progress(best);
  for (bool improved = true; improved && most != kComplete;) {
    improved = false;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!is_integer(types[i].dtype)) continue;
      for (const std::int64_t below : {100, 10, 3, 2, 1}) {
        if (is_stopped()) return std::nullopt;
        InputRanges other = best;
        other[i] = below;
        const std::size_t reached = progress(other);
        if (reached <= most) continue;
        best = std::move(other);
        most = reached;
        improved = true;
      }
    }
  }
  return most == kComplete ? std::optional(best) : std::nullopt;
}

}  // namespace

bool for_each_range(const Graph& graph, const std::vector<Type>& types, const interp::Options& run,
                    const std::function<bool(const InputRanges&)>& attempt) {
  const std::vector<InputRanges> common = common_ranges(types);
  for (const InputRanges& ranges : common)
    if (attempt(ranges)) return true;
  if (common.size() == 1) return false;  // no integers
  const auto fitted = fitted_ranges(graph, types, run);
  return fitted && attempt(*fitted);
}

}  // namespace tessera::prove
