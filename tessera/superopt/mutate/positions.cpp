#include "tessera/superopt/mutate/positions.h"

#include "tessera/expr/field.h"
#include "tessera/interp/interp.h"

namespace tessera::superopt {
namespace {

/// Random elements for the inputs of a graph with static sizes.
Expected<std::vector<interp::Value>> random_elements(const Graph& graph, Rng& rng) {
  std::vector<interp::Value> inputs;
  for (const ValueId id : graph.inputs()) {
    const auto shape = static_shape(graph.type(id));
    if (!shape || !is_float(graph.type(id).dtype))
      return Diagnostic{.id = "mutant-invalid",
                        .message = fmt::format("input {} is not a tensor of floats of known sizes",
                                               graph.name(id))};
    std::vector<FieldA> elements(static_cast<std::size_t>(element_count(*shape).value_or(0)));
    for (FieldA& element : elements) element = FieldA::of_word(rng.next());
    inputs.push_back({Tensor::of<FieldA>(graph.type(id).dtype, *shape, elements), true});
  }
  return inputs;
}

/// Number of positions between neighbours along each axis, in row-major order.
std::vector<std::size_t> strides_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * static_cast<std::size_t>(shape[axis]);
  return strides;
}

}  // namespace

Expected<std::vector<OutputDifference>> differing_positions(const Graph& source,
                                                            const Graph& mutant, Rng& rng) {
  TESSERA_TRY(const std::vector<interp::Value> inputs, random_elements(source, rng));
  const interp::Options run{.memory_limit = std::int64_t{1} << 30};
  TESSERA_TRY(const std::vector<interp::Value> left, interp::run_as<FieldA>(source, inputs, run));
  TESSERA_TRY(const std::vector<interp::Value> right, interp::run_as<FieldA>(mutant, inputs, run));
  std::vector<OutputDifference> outputs;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const bool comparable = i < right.size() && left[i].datum.is_tensor() && left[i].lifted &&
                            right[i].datum.is_tensor() && right[i].lifted &&
                            left[i].datum.tensor().shape == right[i].datum.tensor().shape;
    if (!comparable)
      return Diagnostic{.id = "mutant-invalid",
                        .message = fmt::format("output {} of the two graphs has another shape", i)};
    const Tensor &a = left[i].datum.tensor(), &b = right[i].datum.tensor();
    const auto first = a.as<FieldA>(), second = b.as<FieldA>();
    OutputDifference& output = outputs.emplace_back(OutputDifference{a.shape, {}});
    for (std::size_t k = 0; k < first.size(); ++k)
      output.differs.push_back(first[k].word() != second[k].word());
  }
  return outputs;
}

bool agrees_in_box(const OutputDifference& output, const std::vector<std::int64_t>& begin,
                   const std::vector<std::int64_t>& end) {
  const std::vector<std::size_t> strides = strides_of(output.shape);
  std::size_t origin = 0, last = 0;
  for (std::size_t axis = 0; axis < begin.size(); ++axis) {
    origin += strides[axis] * static_cast<std::size_t>(begin[axis]);
    last += strides[axis] * static_cast<std::size_t>(end[axis] - 1);
  }
  bool agrees = !output.differs[origin] && !output.differs[last];
  for (std::size_t axis = 0; axis < begin.size(); ++axis)
    if (end[axis] - begin[axis] > 1) agrees = agrees && !output.differs[origin + strides[axis]];
  return agrees;
}

std::vector<std::vector<std::int64_t>> borders_of(const OutputDifference& output) {
  const std::vector<std::size_t> strides = strides_of(output.shape);
  std::vector<std::vector<std::int64_t>> borders;
  for (std::size_t axis = 0; axis < output.shape.size(); ++axis) {
    const auto size = static_cast<std::size_t>(output.shape[axis]);
    std::vector<bool> changes(size, false);
    for (std::size_t i = 0; i < output.differs.size(); ++i) {
      const std::size_t at = i / strides[axis] % size;
      if (at > 0 && output.differs[i] != output.differs[i - strides[axis]]) changes[at] = true;
    }
    std::vector<std::int64_t>& own = borders.emplace_back(1, 0);
    for (std::size_t at = 1; at < size; ++at)
      if (changes[at]) own.push_back(static_cast<std::int64_t>(at));
    own.push_back(static_cast<std::int64_t>(size));
  }
  return borders;
}

}  // namespace tessera::superopt
