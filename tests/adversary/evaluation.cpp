#include "tests/adversary/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "tessera/interp/interp.h"
#include "tessera/ir/bind.h"
#include "tessera/prove/draw.h"

namespace tessera::testing {
namespace {

constexpr std::int64_t kMemoryLimit = std::int64_t{1} << 30;  // the prover's: to replay its finds
constexpr std::int64_t kMostElements = 4096;

/// What part of the largest number rounding may change, after some cancellation: by the float type
/// with the fewest bits in the graphs.
double rounding_of(const Graph& source, const Graph& target) {
  double most = 1e-3;
  for (const Graph* graph : {&source, &target})
    for (std::uint32_t i = 0; i < graph->value_count(); ++i) {
      const DType dtype = graph->type({i}).dtype;
      if (dtype == DType::F16) most = std::max(most, 2e-2);
      if (dtype == DType::BF16) most = std::max(most, 1e-1);
      if (is_float(dtype) && is_small(dtype)) most = 1;
    }
  return most;
}

double largest(const Tensor& tensor) {
  double most = 1;
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    if (const double x = std::fabs(number_at(tensor, i)); std::isfinite(x))
      most = std::max(most, x);
  return most;
}

/// `most` is the distance that counts as equal; nothing: bits have to be the same.
bool differs_at(const Tensor& a, const Tensor& b, std::int64_t i, std::optional<double> most) {
  if (!is_float(a.dtype)) return integer_at(a, i) != integer_at(b, i);
  const double x = number_at(a, i), y = number_at(b, i);
  if (x == y || (std::isnan(x) && std::isnan(y))) return false;
  if (!most) return true;
  return std::isfinite(x) && std::isfinite(y) && std::fabs(x - y) > *most;
}

/// `rounding` is a part of the largest number; nothing: bits have to be the same.
std::optional<std::string> difference(const Tensor& a, const Tensor& b,
                                      std::optional<double> rounding) {
  if (a.dtype != b.dtype) return "the types differ";
  if (a.shape != b.shape)
    return fmt::format("the shapes are [{}] and [{}]", fmt::join(a.shape, ", "),
                       fmt::join(b.shape, ", "));
  if (a.dtype == DType::String)
    return *a.strings == *b.strings ? std::nullopt : std::optional<std::string>("the texts differ");
  std::optional<double> most;
  if (rounding && is_float(a.dtype)) most = *rounding * std::max(largest(a), largest(b));
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (differs_at(a, b, i, most))
      return fmt::format("element {}: {} and {}", i, number_at(a, i), number_at(b, i));
  return std::nullopt;
}

/// The graphs at sizes that are numbers.
struct SizedPair {
  SizeValues sizes;
  Graph source, target;
};

std::optional<SizedPair> at_some_sizes(const Graph& source, const Graph& target, const Guard& guard,
                                       Rng& rng) {
  auto relations = prove::relate_sizes(source);
  if (relations) relations = prove::relate_sizes(guard, *relations);
  if (!relations) return std::nullopt;
  std::optional<SizeValues> sizes = prove::draw_sizes(*relations, rng);
  if (!sizes) return std::nullopt;
  for (const Graph* graph : {&source, &target})  // inputs that nothing reads have sizes too
    for (const ValueId id : graph->inputs())
      for (const Dim& dim : graph->type(id).shape.value_or(Shape{})) {
        std::set<std::string> names;
        dim.collect_symbols(names);
        for (const std::string& name : names) sizes->emplace(name, 1);
      }
  auto a = bound(source, *sizes), b = bound(target, *sizes);
  if (!a || !b) return std::nullopt;
  return SizedPair{*std::move(sizes), *std::move(a), *std::move(b)};
}

/// Whether every float that a graph computes is finite.
bool computes_finite(Graph graph, const std::vector<Datum>& inputs,
                     const interp::Options& options) {
  std::vector<ValueId> all;
  for (const GraphNode& node : graph.nodes())
    for (const ValueId value : graph.outputs(node)) all.push_back(value);
  graph.set_outputs(std::move(all));
  const auto values = interp::run(graph, inputs, options);
  return values && std::ranges::all_of(*values, [](const Datum& value) {
           if (!value.is_tensor() || !is_float(value.tensor().dtype)) return true;
           for (std::int64_t i = 0; i < value.tensor().count(); ++i)
             if (!std::isfinite(number_at(value.tensor(), i))) return false;
           return true;
         });
}

}  // namespace

std::optional<std::string> difference_on(const Graph& source, const Graph& target,
                                         const std::vector<Tensor>& inputs, Closeness closeness) {
  const std::vector<Datum> data(inputs.begin(), inputs.end());
  const interp::Options options{.memory_limit = kMemoryLimit};
  const auto a = interp::run(source, data, options), b = interp::run(target, data, options);
  if (!a || !b) return std::nullopt;
  std::optional<double> rounding;
  if (closeness != Closeness::Bits) rounding = rounding_of(source, target);
  const auto is_claimed = [&] {
    return closeness != Closeness::FiniteReals ||
           (computes_finite(source, data, options) && computes_finite(target, data, options));
  };
  for (std::size_t i = 0; i < std::min(a->size(), b->size()); ++i) {
    if (!(*a)[i].is_tensor() || !(*b)[i].is_tensor()) continue;
    if (auto found = difference((*a)[i].tensor(), (*b)[i].tensor(), rounding))
      return is_claimed() ? std::optional(fmt::format("output {}: {}", i, *found)) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::vector<Tensor>> moderate_inputs(const Graph& graph, Rng& rng) {
  constexpr std::array<std::int64_t, 4> kReaches = {1, 3, 7, 20};  // of integers
  constexpr std::int64_t kByteReach = 3;  // products of some do not wrap around
  const std::int64_t reach = kReaches[rng.below(kReaches.size())];
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs()) {
    const Type& type = graph.type(id);
    if (!type.is_ranked_tensor() || type.dtype == DType::String) return std::nullopt;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : *type.shape) {
      if (!dim.constant()) return std::nullopt;
      shape.push_back(*dim.constant());
    }
    const std::optional<std::int64_t> count = element_count(shape);
    if (!count || *count > kMostElements) return std::nullopt;
    Buffer buffer(static_cast<std::size_t>(*count * byte_width(type.dtype)));
    for (std::int64_t i = 0; i < *count; ++i) {
      const std::int64_t most = byte_width(type.dtype) == 1 ? std::min(reach, kByteReach) : reach;
      const std::int64_t least = is_signed(type.dtype) ? -most : 0;
      const auto span = static_cast<std::uint64_t>(most - least + 1);
      const std::int64_t integer = least + static_cast<std::int64_t>(rng.below(span));
      if (is_float(type.dtype))
        store_number(type.dtype, buffer.data(), i, (static_cast<double>(rng.below(49)) - 24) / 8);
      else
        store_integer(
            type.dtype, buffer.data(), i,
            type.dtype == DType::Bool ? static_cast<std::int64_t>(rng.below(2)) : integer);
    }
    inputs.push_back({type.dtype, std::move(shape), std::move(buffer).freeze()});
  }
  return inputs;
}

std::optional<std::string> find_difference(const Graph& source, const Graph& target,
                                           const Search& search) {
  Rng rng(search.seed);
  for (int i = 0; i < search.tries; ++i) {
    const std::optional<SizedPair> sized = at_some_sizes(source, target, search.guard, rng);
    if (!sized) continue;
    const auto inputs = moderate_inputs(sized->source, rng);
    if (!inputs) continue;
    const auto found = difference_on(sized->source, sized->target, *inputs, search.closeness);
    if (!found) continue;
    std::string sizes;
    for (const auto& [name, size] : sized->sizes) sizes += fmt::format(" {} = {}", name, size);
    return sizes.empty() ? *found : fmt::format("{} at{}", *found, sizes);
  }
  return std::nullopt;
}

}  // namespace tessera::testing
