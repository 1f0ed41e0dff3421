#include "tessera/prove/random_rounding.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/prove/elements.h"
#include "tessera/support/rng.h"
#include "tessera/support/rounding_mode.h"

namespace tessera::prove {
namespace {

/// Results of an operator by rounding mode.
constexpr std::array kModes = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD};
using Results = std::array<std::vector<interp::Value>, kModes.size()>;

/// The i-th result with each element rounded up or down at random. What the mode changes by more
/// than a rounding is to the nearest: operators that round to integers do so in this mode, too.
interp::Value mixed(const Results& results, std::size_t i, Rng& rng) {
  constexpr double kRounding = 1e-12;  // of the largest element
  const interp::Value& made = results[0][i];
  if (!made.datum.is_tensor() || !is_float(made.datum.tensor().dtype)) return made;
  const Tensor& nearest = made.datum.tensor();
  for (const auto& other : results)
    if (!other[i].datum.is_tensor() || other[i].datum.tensor().dtype != nearest.dtype ||
        other[i].datum.tensor().shape != nearest.shape)
      return made;
  const Elements numbers(nearest);
  double largest = 0;
  for (std::int64_t at = 0; at < nearest.count(); ++at)
    if (std::isfinite(numbers[at])) largest = std::max(largest, std::fabs(numbers[at]));
  Buffer buffer(nearest.bytes.size());
  for (std::int64_t at = 0; at < nearest.count(); ++at) {
    const double other = number_at(results[1 + rng.below(2)][i].datum.tensor(), at);
    const bool is_rounding = std::fabs(other - numbers[at]) <= kRounding * largest;
    store_number(nearest.dtype, buffer.data(), at, is_rounding ? other : numbers[at]);
  }
  return {Tensor{nearest.dtype, nearest.shape, std::move(buffer).freeze()}};
}

}  // namespace

std::optional<std::vector<interp::Value>> run_with_random_rounding(
    const Graph& graph, std::span<const interp::Value> inputs, std::uint64_t seed,
    interp::Options run) {
  run.threads = 1;  // the rounding mode is one of this thread
  run.observe = {};
  Rng rng(seed);
  std::vector<interp::Value> values(graph.value_count());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (const Tensor* constant = graph.constant({i})) values[i] = {*constant};
  for (const GraphNode& node : graph.nodes()) {
    if (!graph.subgraphs(node).empty()) return std::nullopt;
    std::vector<interp::Value> operands;
    for (const ValueId id : graph.inputs(node))
      operands.push_back(id.present() ? values[id.index] : interp::Value{});
    const auto outputs = graph.outputs(node);
    Results results;
    for (std::size_t i = 0; i < kModes.size(); ++i) {
      const RoundingMode mode(kModes[i]);
      auto made = interp::run_op<double>(*node.op, *node.attrs, operands,
                                         static_cast<int>(outputs.size()), run);
      if (!made || made->size() < outputs.size()) return std::nullopt;
      results[i] = *std::move(made);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      values[outputs[i].index] = mixed(results, i, rng);
  }
  std::vector<interp::Value> made;
  for (const ValueId id : graph.outputs()) made.push_back(values[id.index]);
  return made;
}

}  // namespace tessera::prove
