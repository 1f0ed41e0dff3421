#include "tessera/passes/candidates.h"

#include <algorithm>
#include <cmath>

#include "tessera/ops/composite.h"
#include "tessera/ops/operators.h"

namespace tessera::passes {
namespace {

constexpr std::size_t kMostScales = 10;
constexpr std::int64_t kEnd = std::int64_t{1} << 40;  // beyond every axis

/// A size from the end.
std::int64_t size(const Val& x, int from_end) {
  return x.rank() < from_end ? -1 : x.dim(x.rank() - from_end).constant().value_or(-1);
}

/// The numbers that scores may be multiplied by, the usual one first.
std::vector<double> likely_scales(const Cone& cone, std::int64_t depth) {
  std::vector<double> all;
  const auto add = [&](double number) {
    const double rounded = static_cast<float>(number);
    if (rounded != 0 && std::isfinite(rounded) && std::ranges::find(all, rounded) == all.end())
      all.push_back(rounded);
  };
  if (!cone.numbers.empty()) add(1 / std::sqrt(static_cast<double>(depth)));
  add(1);
  for (const double number : cone.numbers)
    for (const double power : {number, 1 / number, number * number, 1 / (number * number)})
      add(power);
  for (const double first : cone.numbers)
    for (const double second : cone.numbers)
      for (const double product : {first * second, first / second}) add(product);
  if (all.size() > kMostScales) all.resize(kMostScales);
  return all;
}

/// The last two axes exchanged.
Val turned(const Val& x) {
  Ints order = counted(0, x.rank());
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transposed(x, order);
}

/// Every second element of the last axis.
Val every_second(const Val& x, std::int64_t first) {
  Body& b = x.body();
  return b.op(*op::slice, {x, b.ints({first}), b.ints({kEnd}), b.ints({-1}), b.ints({2})});
}

}  // namespace

Candidates attention_candidates(const Cone& cone, const Graph& graph) {
  Candidates all;
  const std::size_t count = cone.parameters.size() + 1;
  if (count != 3 && count != 4) return all;
  std::vector<std::size_t> roles(count);  // q, k, v and the mask
  for (std::size_t i = 0; i < count; ++i) roles[i] = i;
  const Shape& result = *graph.type(graph.outputs()[0]).shape;
  // The usual scale first, whatever the roles.
  for (std::size_t nth = 0; nth < kMostScales; ++nth) do {
      const auto rank_of = [&](std::size_t role) {
        return graph.type(graph.inputs()[roles[role]]).shape->size();
      };
      const auto dim = [&](std::size_t role, std::size_t from_end) {
        const Shape& shape = *graph.type(graph.inputs()[roles[role]]).shape;
        return shape.size() < from_end ? std::optional<std::int64_t>()
                                       : shape[shape.size() - from_end].constant();
      };
      if (result.size() < 2 || rank_of(0) < 2 || rank_of(1) < 2 || rank_of(2) < 2) continue;
      const auto depth = dim(0, 1), keys = dim(2, 2);
      if (!depth || !keys || dim(0, 2) != result[result.size() - 2].constant() ||
          dim(2, 1) != result.back().constant())
        continue;
      const DType mask = count == 4 ? graph.type(graph.inputs()[roles[3]]).dtype : DType::F32;
      if (count == 4 && dim(3, 1).value_or(1) != 1 && dim(3, 1) != keys) continue;
      for (const bool turns : {true, false}) {
        if (dim(1, turns ? 1 : 2) != depth || dim(1, turns ? 2 : 1) != keys) continue;
        const std::vector<double> scales = likely_scales(cone, *depth);
        if (nth < scales.size()) {
          const double scale = scales[nth];
          const auto build = [&](double hidden, bool chosen) {
            add_candidate(graph, all, [&](GraphBuilder& out, const Vals& in) {
              const Val &q = in[roles[0]], &k = in[roles[1]], &v = in[roles[2]];
              Val scores = out.op(*op::matmul, {q, turns ? turned(k) : k});
              if (scale != 1) scores = scores * out.number(scale, scores.dtype());
              if (count == 4 && mask != DType::Bool) scores = scores + in[roles[3]];
              if (count == 4 && mask == DType::Bool) {
                const Val low = out.number(hidden, scores.dtype());
                scores = out.op(*op::where,
                                {in[roles[3]], chosen ? scores : low, chosen ? low : scores});
              }
              return out.op(*op::matmul, {out.op(*op::softmax, {scores}, {{"axis", -1}}), v});
            });
          };
          if (mask != DType::Bool)
            build(0, false);
          else
            for (const double number : cone.numbers)
              if (number < -100)
                for (const bool chosen : {true, false}) build(number, chosen);
        }
      }
    } while (std::ranges::next_permutation(roles).found);
  return all;
}

Candidates rotary_candidates(const Cone& cone, const Graph& graph) {
  Candidates all;
  if (cone.parameters.size() != 2) return all;
  const Type& type = graph.type(graph.outputs()[0]);
  const std::int64_t width = type.shape->empty() ? 0 : type.shape->back().constant().value_or(0);
  if (width < 2 || width % 2 != 0) return all;
  constexpr std::size_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                       {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& [at, first, second] : orders) {
    if (graph.type(graph.inputs()[at]) != type) continue;
    // Halves; or pairs of neighbours, by a step or by an axis of their own.
    for (const int way : {0, 1, 2})
      add_candidate(
          graph, all,
          [&, at = at, first = first, second = second](GraphBuilder& out, const Vals& in) {
            const Val &x = in[at], &cos = in[first], &sin = in[second];
            const std::int64_t half = width / 2;
            const bool neighbours = way != 0;
            Ints shape;
            for (const Dim& dim : *type.shape) shape.push_back(dim.constant().value_or(0));
            Ints pairs = shape;
            pairs.back() = half;
            pairs.push_back(2);
            const auto side = [&](std::int64_t which) {
              if (way == 0) return sliced(x, -1, which * half, which == 0 ? half : kEnd);
              if (way == 1) return every_second(x, which);
              return picked(reshaped(x, pairs), -1, which);
            };
            const Val a = side(0), b = side(1);
            const auto paired = [&](const Val& even, const Val& odd) {
              if (!neighbours) return joined({even, odd}, -1);
              return reshaped(joined({unsqueezed(even, {-1}), unsqueezed(odd, {-1})}, -1), shape);
            };
            if (size(cos, 1) != half) return x * cos + paired(out.op(*op::neg, {b}), a) * sin;
            return paired(a * cos - b * sin, a * sin + b * cos);
          });
  }
  return all;
}

}  // namespace tessera::passes
