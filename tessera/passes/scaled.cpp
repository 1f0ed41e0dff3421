#include "tessera/passes/scaled.h"

#include <algorithm>

#include "tessera/ops/operators.h"

namespace tessera::passes {
namespace {

/// How often each element of the smaller operand is used in a row, and how often the whole of it:
/// the larger one is [repeats, count, run] with the smaller as its middle.
struct Pattern {
  std::int64_t repeats = 1, count = 1, run = 1;
};

std::optional<Pattern> pattern_of(const std::vector<std::int64_t>& large,
                                  std::vector<std::int64_t> small) {
  if (small.size() > large.size()) return std::nullopt;
  small.insert(small.begin(), large.size() - small.size(), 1);
  Pattern pattern;
  std::size_t axis = 0;
  for (; axis < large.size() && small[axis] == 1; ++axis) pattern.repeats *= large[axis];
  for (; axis < large.size() && small[axis] == large[axis]; ++axis) pattern.count *= large[axis];
  for (; axis < large.size() && small[axis] == 1; ++axis) pattern.run *= large[axis];
  return axis == large.size() ? std::optional(pattern) : std::nullopt;
}

}  // namespace

std::optional<Tensor> scaled_weights(const OpDef& op, std::span<const interp::Value> inputs) {
  if (&op != op::mul || inputs.size() != 2) return std::nullopt;
  const Tensor *large = &inputs[0].datum.tensor(), *small = &inputs[1].datum.tensor();
  if (large->count() < small->count()) std::swap(large, small);
  if (large->dtype != DType::F32 || small->dtype != DType::F32) return std::nullopt;
  const std::optional<Pattern> pattern = pattern_of(large->shape, small->shape);
  if (!pattern) return std::nullopt;
  Buffer buffer(large->bytes.size());
  const float* in = large->as<float>().data();
  const float* factors = small->as<float>().data();
  auto* out = reinterpret_cast<float*>(buffer.data());
  for (std::int64_t repeat = 0; repeat < pattern->repeats; ++repeat) {
    if (pattern->run == 1) {
      for (std::int64_t i = 0; i < pattern->count; ++i) out[i] = in[i] * factors[i];
      in += pattern->count;
      out += pattern->count;
      continue;
    }
    for (std::int64_t i = 0; i < pattern->count; ++i, in += pattern->run, out += pattern->run)
      for (std::int64_t j = 0; j < pattern->run; ++j) out[j] = in[j] * factors[i];
  }
  return Tensor{DType::F32, large->shape, std::move(buffer).freeze()};
}

}  // namespace tessera::passes
