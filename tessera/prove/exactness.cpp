#include "tessera/prove/exactness.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tessera/expr/tracer.h"
#include "tessera/interp/interp.h"
#include "tessera/prove/draw.h"
#include "tessera/prove/instances.h"
#include "tessera/prove/position.h"

namespace tessera::prove {
namespace {

constexpr std::int64_t kExactnessMemoryLimit = std::int64_t{1} << 30;
constexpr int kInputs = 4;  // that are tried where the operations are not the same

/// The elements of all outputs; nothing where one is no tensor of recorded numbers.
std::optional<std::vector<TracedNumber>> recorded_outputs(const Graph& graph,
                                                          const std::vector<interp::Value>& inputs,
                                                          const Options& options) {
  const auto results = interp::run_as<TracedNumber>(graph, inputs,
                                                    {.memory_limit = kExactnessMemoryLimit,
                                                     .stop = options.stop,
                                                     .in_order = true,
                                                     .traces_rounding = true});
  if (!results) return std::nullopt;
  std::vector<TracedNumber> all;
  for (const interp::Value& value : *results) {
    if (!value.datum.is_tensor() || !is_float(value.datum.tensor().dtype)) return std::nullopt;
    const auto elements = value.datum.tensor().as<TracedNumber>();
    all.insert(all.end(), elements.begin(), elements.end());
  }
  return all;
}

/// Whether what is drawn for the inputs does not matter: numbers that are recorded are any numbers.
bool takes_floats_alone(const Graph& graph) {
  return std::ranges::all_of(graph.inputs(),
                             [&](ValueId id) { return is_float(graph.type(id).dtype); });
}

bool has_floats(const Graph& graph) {
  for (std::uint32_t v = 0; v < graph.value_count(); ++v)
    if (is_float(graph.type(ValueId{v}).dtype)) return true;
  return false;
}

/// Whether both compute every element by the same operations in the same order.
bool does_the_same(const Instance& instance, const std::vector<Tensor>& drawn,
                   const Options& options) {
  Tracer recording;
  std::vector<interp::Value> inputs;
  for (const Tensor& tensor : drawn) {
    if (!is_float(tensor.dtype)) {
      inputs.push_back({tensor});
      continue;
    }
    std::vector<TracedNumber> elements(static_cast<std::size_t>(tensor.count()));
    for (TracedNumber& element : elements)
      element = TracedNumber::stored(tensor.dtype, recording.input());
    inputs.push_back({Tensor::of<TracedNumber>(tensor.dtype, tensor.shape, elements), true});
  }
  const auto source = recorded_outputs(instance.source, inputs, options);
  const auto target = recorded_outputs(instance.target, inputs, options);
  return source && target && recording.decided() && std::ranges::equal(*source, *target) &&
         recording.decided();
}

Expected<std::vector<Datum>> in_single_precision(const Graph& graph,
                                                 const std::vector<Tensor>& inputs) {
  std::vector<interp::Value> values;
  for (const Tensor& tensor : inputs) values.push_back({tensor});
  TESSERA_TRY(const std::vector<interp::Value> results,
              interp::run_as<float>(graph, values,
                                    {.memory_limit = kExactnessMemoryLimit, .in_order = true}));
  std::vector<Datum> data;
  for (const interp::Value& result : results) data.push_back(result.datum);
  return data;
}

std::string text_of(const SizeValues& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, size);
  return text.empty() ? "its sizes" : text;
}

/// The first element that is another number, both being finite.
std::optional<Refuted> other_bits(const Instance& instance, const std::vector<Tensor>& inputs) {
  const auto source = in_single_precision(instance.source, inputs);
  const auto target = in_single_precision(instance.target, inputs);
  if (!source || !target) return std::nullopt;
  for (std::size_t i = 0; i < source->size(); ++i) {
    if (!(*source)[i].is_tensor() || !(*target)[i].is_tensor()) continue;
    const Tensor &a = (*source)[i].tensor(), &b = (*target)[i].tensor();
    if (a.dtype == DType::String || a.shape != b.shape || a.dtype != b.dtype) continue;
    for (std::int64_t at = 0; at < a.count(); ++at) {
      const double x = number_at(a, at), y = number_at(b, at);
      if (x == y || !std::isfinite(x) || !std::isfinite(y)) continue;
      return Refuted{.sizes = instance.sizes,
                     .inputs = inputs,
                     .output = i,
                     .position = position_of(at, a.shape),
                     .source = x,
                     .target = y,
                     .what = "equal over the reals, but rounded otherwise",
                     .bits = true};
    }
  }
  return std::nullopt;
}

/// Numbers with many digits in place of floats.
std::vector<Tensor> with_digits(std::vector<Tensor> inputs, Rng& rng) {
  for (Tensor& tensor : inputs) {
    if (!is_float(tensor.dtype)) continue;
    std::vector<std::byte> bytes(tensor.bytes.view().begin(), tensor.bytes.view().end());
    for (std::int64_t i = 0; i < tensor.count(); ++i)
      store_number(tensor.dtype, bytes.data(), i, 4 * rng.uniform() - 2);
    tensor = {tensor.dtype, tensor.shape, Bytes::copy(bytes)};
  }
  return inputs;
}

}  // namespace

std::optional<Verdict> inexactness(const Graph& source, const Graph& target, const Guard& guard,
                                   const Options& options) {
  // Integers are not rounded, and that they do not wrap around is an assumption of its own.
  if (!has_floats(source) && !has_floats(target)) return std::nullopt;
  std::optional<Refuted> refuted;
  std::optional<SizeValues> unknown;
  std::set<SizeValues> exact;  // sizes at which both do the same, whatever the inputs are
  int checked = 0;
  const Draws draws =
      draw_instances(source, target, guard, options, [&](const Instance& instance, Rng& rng) {
        const auto drawn = draw_inputs(instance.source, Numbers::Small, rng);
        if (!drawn) return true;
        ++checked;
        if (exact.contains(instance.sizes)) return true;
        if (does_the_same(instance, *drawn, options)) {
          if (takes_floats_alone(instance.source)) exact.insert(instance.sizes);
          return true;
        }
        for (int i = 0; i < kInputs && !refuted; ++i)
          refuted = other_bits(instance, with_digits(*drawn, rng));
        if (!unknown) unknown = instance.sizes;
        return !refuted;
      });
  if (refuted) return *std::move(refuted);
  if (checked == 0) return Unknown{"no sizes were found at which exactness could be checked"};
  if (!unknown) return std::nullopt;
  return Unknown{
      fmt::format("equal over the reals, but not shown to be exact: at {} the operations "
                  "are not the same ones in the same order",
                  text_of(*unknown))};
}

Expected<bool> differ_in_bits(const Graph& source, const Graph& target, const Refuted& refuted) {
  const auto again = other_bits({refuted.sizes, source, target}, refuted.inputs);
  return again && again->output == refuted.output && again->position == refuted.position;
}

}  // namespace tessera::prove
