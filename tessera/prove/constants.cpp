#include "tessera/prove/constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tessera/interp/interp.h"
#include "tessera/ops/operators.h"

namespace tessera::prove {
namespace {

constexpr double kMostUnits = 4, kMostSpread = 8;
constexpr int kDraws = 4;
constexpr std::int64_t kTellingSize = 2;
constexpr std::size_t kMostParts = 16;

Tensor integers(const Ints& values) {
  return Tensor::of<std::int64_t>(DType::I64, {static_cast<std::int64_t>(values.size())}, values);
}

Tensor filled(DType dtype, const Ints& shape, double number) {
  const std::int64_t count = *element_count(shape);
  Buffer buffer(static_cast<std::size_t>(count * byte_width(dtype)));
  for (std::int64_t i = 0; i < count; ++i) store_number(dtype, buffer.data(), i, number);
  return {dtype, shape, std::move(buffer).freeze()};
}

Ints strides_of(const Ints& shape) {
  Ints strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// The distance of neighbouring numbers of a type near x.
double last_place(DType dtype, double x) {
  const int digits = dtype == DType::F64   ? 53
                     : dtype == DType::F32 ? 24
                     : dtype == DType::F16 ? 11
                                           : 8;
  const int smallest = dtype == DType::F64 ? -1074 : dtype == DType::F16 ? -24 : -149;
  if (x == 0 || !std::isfinite(x)) return std::ldexp(1.0, smallest);
  return std::ldexp(1.0, std::max(std::ilogb(x) + 1 - digits, smallest));
}

/// Each number that the type does not have becomes one of its two neighbours there.
Tensor rounded_at_random(const Tensor& tensor, DType dtype, Rng& rng) {
  Buffer buffer(static_cast<std::size_t>(tensor.count()) * sizeof(double));
  auto* numbers = reinterpret_cast<double*>(buffer.data());
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const double x = number_at(tensor, i), unit = last_place(dtype, x);
    const double below = std::floor(x / unit) * unit;
    numbers[i] = !std::isfinite(x) || below == x || rng.below(2) == 0 ? below : below + unit;
    if (!std::isfinite(x)) numbers[i] = x;
  }
  return {DType::F64, tensor.shape, std::move(buffer).freeze()};
}

bool same_element(const Tensor& a, std::int64_t i, const Tensor& b, std::int64_t j) {
  const auto width = static_cast<std::size_t>(byte_width(a.dtype));
  return std::memcmp(a.bytes.data() + static_cast<std::size_t>(i) * width,
                     b.bytes.data() + static_cast<std::size_t>(j) * width, width) == 0;
}

/// Whether b is a with its axes in this order.
bool is_transposed(const Tensor& a, const Tensor& b, const Ints& order) {
  const Ints strides = strides_of(a.shape);
  Ints at(b.shape.size());
  std::int64_t from = 0;
  for (std::int64_t i = 0; i < b.count(); ++i) {
    if (!same_element(a, from, b, i)) return false;
    for (std::size_t axis = at.size(); axis-- > 0;) {
      const std::int64_t stride = strides[static_cast<std::size_t>(order[axis])];
      from += stride;
      if (++at[axis] < b.shape[axis]) break;
      from -= stride * b.shape[axis];
      at[axis] = 0;
    }
  }
  return true;
}

std::optional<Ints> transposition(const Tensor& a, const Tensor& b) {
  if (a.shape.size() != b.shape.size() || a.shape.size() < 2 || a.shape.size() > 5)
    return std::nullopt;
  Ints order(a.shape.size());
  std::iota(order.begin(), order.end(), 0);
  while (std::ranges::next_permutation(order).found) {
    bool fits = true;
    for (std::size_t i = 0; i < order.size() && fits; ++i)
      fits = a.shape[static_cast<std::size_t>(order[i])] == b.shape[i];
    if (fits && is_transposed(a, b, order)) return order;
  }
  return std::nullopt;
}

/// Whether `part` is what `whole` has from `begin` on along an axis.
bool is_part(const Tensor& part, const Tensor& whole, std::size_t axis, std::int64_t begin) {
  std::int64_t inner = byte_width(whole.dtype), outer = 1;
  for (std::size_t i = 0; i < whole.shape.size(); ++i) {
    if (i != axis && part.shape[i] != whole.shape[i]) return false;
    if (i != axis) (i < axis ? outer : inner) *= whole.shape[i];
  }
  const auto length = static_cast<std::size_t>(inner * part.shape[axis]);
  for (std::int64_t i = 0; i < outer; ++i)
    if (std::memcmp(part.bytes.data() + static_cast<std::size_t>(i) * length,
                    whole.bytes.data() + (i * whole.shape[axis] + begin) * inner, length) != 0)
      return false;
  return true;
}

}  // namespace

std::optional<double> rounding_difference(const Tensor& given, const Tensor& computed,
                                          const std::function<std::vector<Tensor>()>& draws) {
  if (given.shape != computed.shape || !is_float(given.dtype) || !is_float(computed.dtype))
    return std::nullopt;
  const std::int64_t count = given.count();
  const auto is_near = [](double x, double y, double tolerance) {
    return x == y || (std::isnan(x) && std::isnan(y)) ||
           (std::isfinite(x) && std::isfinite(y) && std::fabs(x - y) <= tolerance);
  };
  // Weights of one shape are many; most of them differ almost everywhere.
  constexpr std::int64_t kSamples = 32;
  std::int64_t apart = 0;
  for (std::int64_t i = 0; i < kSamples && count > kSamples; ++i) {
    const double x = number_at(given, count / kSamples * i),
                 y = number_at(computed, count / kSamples * i);
    if (!is_near(x, y, 0.01 * (std::fabs(x) + std::fabs(y)))) ++apart;
  }
  if (apart > kSamples / 2) return std::nullopt;
  std::optional<std::vector<Tensor>> drawn;
  double largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = number_at(given, i), y = number_at(computed, i);
    if (is_near(x, y, 0)) continue;
    const double unit = last_place(given.dtype, y);
    double tolerance = kMostUnits * unit;
    if (!is_near(x, y, tolerance) && draws) {
      if (!drawn) drawn = draws();
      for (const Tensor& draw : *drawn)
        tolerance = std::max(tolerance, kMostSpread * std::fabs(number_at(draw, i) - y));
    }
    if (!is_near(x, y, tolerance)) return std::nullopt;
    largest = std::max(largest, std::fabs(x - y) / unit);
  }
  return largest;
}

ConstantMatcher::ConstantMatcher(Pairing& pairing) : pairing_(pairing) {
  const Prepared& source = pairing_.prepared(Side::Source);
  for (std::uint32_t i = 0; i < source.graph.value_count(); ++i)
    if (const Tensor* tensor = source.graph.constant({i}); tensor != nullptr && source.live[i]) {
      by_count_[{tensor->dtype, tensor->count()}].push_back({i});
      source_.push_back({i});
    }
}

bool ConstantMatcher::assign(Side side, ValueId value, ValueId derived) {
  pairing_.assign(side, value, pairing_.of(other(side), derived));
  return true;
}

bool ConstantMatcher::assign_rounded(Side side, ValueId value, ValueId derived) {
  return is_rounded(side, value, derived) && assign(side, value, derived);
}

bool ConstantMatcher::is_rounded(Side side, ValueId constant, ValueId derived) {
  const auto computed = evaluated(other(side), derived);
  const Tensor* given = pairing_.graph(side).constant(constant);
  if (!computed || given == nullptr) return false;
  const auto difference = rounding_difference(*given, *computed, [&] {
    std::vector<Tensor> draws;
    for (int i = 0; i < kDraws; ++i) {
      Rng rng(static_cast<std::uint64_t>(i) + 1);
      evaluated_.clear();
      if (auto draw = evaluated(other(side), derived, &rng)) draws.push_back(*std::move(draw));
    }
    evaluated_.clear();
    return draws;
  });
  if (!difference) return false;
  ++rounded_;
  largest_ = std::max(largest_, *difference);
  return true;
}

std::optional<ValueId> ConstantMatcher::reshaped(Side side, ValueId value, const Ints& shape) {
  return pairing_.derive(side, *op::reshape, {},
                         {value, pairing_.derive_constant(side, integers(shape))});
}

bool ConstantMatcher::match_computed(ValueId target) {
  // Copies here and below: values that are derived move the lists.
  const std::optional<Tensor> result = pairing_.prepared(Side::Target).rounded[target.index];
  if (!result) return false;
  const auto same_count = by_count_.find({result->dtype, result->count()});
  if (same_count == by_count_.end()) return false;
  for (const ValueId source : same_count->second) {
    const ClassId id = pairing_.of(Side::Source, source);
    const Ints& shape = pairing_.graph(Side::Source).constant(source)->shape;
    // One number for all channels is an element or an array of one.
    const bool is_reshaped = shape != result->shape;
    if (is_reshaped && result->count() != 1) continue;
    const std::optional<ValueId> value =
        is_reshaped ? reshaped(Side::Target, target, shape) : target;
    if (!value) continue;
    if (is_reshaped && pairing_.of(Side::Target, *value) == id) return true;
    if (pairing_.paired(id) || !is_rounded(Side::Source, source, *value)) continue;
    if (is_reshaped) return assign(Side::Source, source, *value);
    return assign(Side::Target, target, source);
  }
  return false;
}

bool ConstantMatcher::match(ValueId target) {
  const Tensor wanted = *pairing_.graph(Side::Target).constant(target);
  if (wanted.dtype == DType::String) return false;
  const Prepared& source_graph = pairing_.prepared(Side::Source);
  for (std::uint32_t i = 0; i < source_graph.rounded.size(); ++i)
    if (const auto& result = source_graph.rounded[i];
        result && source_graph.live[i] && result->dtype == wanted.dtype &&
        result->shape == wanted.shape && assign_rounded(Side::Target, target, {i}))
      return true;
  const auto same_count = by_count_.find({wanted.dtype, wanted.count()});
  if (same_count != by_count_.end()) {
    const bool telling = wanted.count() >= kTellingSize;
    for (const ValueId source : same_count->second) {
      const Tensor given = *pairing_.graph(Side::Source).constant(source);
      const bool computed = pairing_.prepared(Side::Source).computed[source.index] ||
                            pairing_.prepared(Side::Target).computed[target.index];
      if (computed && given.shape == wanted.shape && assign_rounded(Side::Target, target, source))
        return true;
      if (!telling) continue;
      if (given.shape != wanted.shape && given.bytes.size() == wanted.bytes.size() &&
          std::memcmp(given.bytes.data(), wanted.bytes.data(), wanted.bytes.size()) == 0)
        if (const auto derived = reshaped(Side::Source, source, wanted.shape))
          return assign(Side::Target, target, *derived);
      if (const auto order = transposition(given, wanted))
        if (const auto derived =
                pairing_.derive(Side::Source, *op::transpose, {{"perm", *order}}, {source}))
          return assign(Side::Target, target, *derived);
    }
  }
  if (const auto derived = joined(target)) return assign(Side::Target, target, *derived);
  if (const auto derived = cut_out(target)) return assign(Side::Target, target, *derived);
  return false;
}

std::optional<ValueId> ConstantMatcher::cut_out(ValueId target) {
  const Tensor& part = *pairing_.graph(Side::Target).constant(target);
  if (part.count() < kTellingSize) return std::nullopt;
  for (const ValueId source : source_) {
    const Tensor& whole = *pairing_.graph(Side::Source).constant(source);
    if (whole.dtype != part.dtype || whole.shape.size() != part.shape.size()) continue;
    const auto axis = static_cast<std::size_t>(std::ranges::mismatch(whole.shape, part.shape).in1 -
                                               whole.shape.begin());
    if (axis == whole.shape.size() || whole.shape[axis] < part.shape[axis]) continue;
    for (std::int64_t begin = 0; begin + part.shape[axis] <= whole.shape[axis]; ++begin) {
      if (!is_part(part, whole, axis, begin)) continue;
      const auto constant = [&](std::int64_t number) {
        return pairing_.derive_constant(Side::Source, integers({number}));
      };
      return pairing_.derive(Side::Source, *op::slice, {},
                             {source, constant(begin), constant(begin + part.shape[axis]),
                              constant(static_cast<std::int64_t>(axis))});
    }
  }
  return std::nullopt;
}

std::optional<ValueId> ConstantMatcher::joined(ValueId target) {
  const Tensor& whole = *pairing_.graph(Side::Target).constant(target);
  if (whole.count() < 2 * kTellingSize) return std::nullopt;
  for (std::size_t axis = 0; axis < whole.shape.size(); ++axis) {
    std::vector<ValueId> parts;
    std::int64_t begin = 0;
    while (begin < whole.shape[axis] && parts.size() < kMostParts) {
      const auto next = std::ranges::find_if(source_, [&](ValueId id) {
        const Tensor& part = *pairing_.graph(Side::Source).constant(id);
        return part.dtype == whole.dtype && part.shape.size() == whole.shape.size() &&
               part.count() >= kTellingSize && begin + part.shape[axis] <= whole.shape[axis] &&
               is_part(part, whole, axis, begin);
      });
      if (next == source_.end()) break;
      parts.push_back(*next);
      begin += pairing_.graph(Side::Source).constant(*next)->shape[axis];
    }
    if (begin == whole.shape[axis] && parts.size() > 1)
      return pairing_.derive(Side::Source, *op::concat, {{"axis", static_cast<std::int64_t>(axis)}},
                             parts);
  }
  return std::nullopt;
}

std::optional<Tensor> ConstantMatcher::evaluated(Side side, ValueId value, Rng* rounding) {
  const auto key = std::pair{side, value.index};
  if (const auto it = evaluated_.find(key); it != evaluated_.end()) return it->second;
  const Graph& graph = pairing_.graph(side);
  if (const Tensor* tensor = graph.constant(value)) {
    if (!is_float(tensor->dtype)) return *tensor;
    Tensor wide = interp::lift<double>(*tensor);
    wide.dtype = DType::F64;
    return wide;
  }
  const GraphNode* node = graph.producer(value);
  if (node == nullptr) return std::nullopt;
  std::vector<interp::Value> operands;
  for (const ValueId id : graph.inputs(*node)) {
    if (!id.present()) {
      operands.push_back({});
      continue;
    }
    const auto operand = evaluated(side, id, rounding);
    if (!operand) return std::nullopt;
    operands.push_back({*operand});
  }
  const auto results = interp::run_op<double>(*node->op, *node->attrs, operands, 1, {});
  if (!results || !results->front().datum.is_tensor()) return std::nullopt;
  Tensor result = results->front().datum.tensor();
  if (rounding != nullptr && is_float(result.dtype))
    result = rounded_at_random(result, graph.type(value).dtype, *rounding);
  return evaluated_.emplace(key, std::move(result)).first->second;
}

std::optional<ValueId> ConstantMatcher::replayed(const Window& window, Side side, ClassId product,
                                                 ValueId start) {
  std::map<ClassId, ValueId> values{{product, start}};
  ValueId last = start;
  for (const ClassId id : window.inside(side)) {
    const auto value = pairing_.member(side, id);
    if (!value || values.contains(id)) continue;
    const Graph& graph = pairing_.graph(side);
    const GraphNode* node = graph.producer(*value);
    if (node == nullptr || graph.outputs(*node).size() != 1) continue;
    std::vector<ValueId> operands;
    bool follows = false, constant = true;
    for (const ValueId operand : graph.inputs(*node)) {
      const auto it = values.find(pairing_.of(side, operand));
      follows = follows || (operand.present() && it != values.end());
      operands.push_back(operand.present() && it != values.end() ? it->second : operand);
      constant = constant &&
                 (!operand.present() || it != values.end() || graph.constant(operand) != nullptr);
    }
    if (!follows) continue;
    if (!constant) return std::nullopt;
    const auto derived = pairing_.derive(side, *node->op, *node->attrs, operands);
    if (!derived) return std::nullopt;
    last = values[id] = *derived;
  }
  return last;
}

bool ConstantMatcher::absorb(const Window& window) {
  for (const Side side : kSides)
    if (combine(window, side) || absorb(window, side)) return true;
  return false;
}

/// (x + a) + b is x + c with c = a + b; so are products.
bool ConstantMatcher::combine(const Window& window, Side from) {
  const Side to = other(from);
  if (window.loose(to).empty()) return false;
  const std::vector<ClassId> inside = window.inside(from);
  bool found = false;
  for (const ClassId root : inside) {
    const auto value = pairing_.member(from, root);
    const GraphNode* node = value ? pairing_.graph(from).producer(*value) : nullptr;
    if (node == nullptr || (node->op != op::add && node->op != op::mul)) continue;
    const OpDef& op = *node->op;
    std::vector<ValueId> constants, next{*value};
    for (std::size_t i = 0; i < next.size() && i < kMostParts; ++i) {
      const Graph& graph = pairing_.graph(from);
      const Tensor* const tensor = graph.constant(next[i]);
      const GraphNode* const inner = graph.producer(next[i]);
      if (tensor != nullptr && is_float(tensor->dtype)) constants.push_back(next[i]);
      if (inner != nullptr && inner->op == &op &&
          std::ranges::find(inside, pairing_.of(from, next[i])) != inside.end())
        for (const ValueId operand : graph.inputs(*inner)) next.push_back(operand);
    }
    if (constants.size() < 2) continue;
    std::optional<ValueId> all = constants.front();
    for (std::size_t i = 1; i < constants.size() && all; ++i)
      all = pairing_.derive(from, op, {}, {*all, constants[i]});
    if (!all) continue;
    for (const ClassId loose : window.loose(to)) {
      const auto member = pairing_.member(to, loose);
      const Tensor* const given = member ? pairing_.graph(to).constant(*member) : nullptr;
      if (given == nullptr) continue;
      const auto derived = reshaped(from, *all, given->shape);
      found = (derived && assign_rounded(to, *member, *derived)) || found;
    }
  }
  return found;
}

bool ConstantMatcher::absorb(const Window& window, Side from) {
  if (window.loose(other(from)).empty()) return false;
  for (const ClassId product : window.inside(from)) {
    const auto value = pairing_.member(from, product);
    if (!value) continue;
    const Graph& graph = pairing_.graph(from);
    const GraphNode* node = graph.producer(*value);
    const Type type = graph.type(*value);
    if (node == nullptr || !type.is_ranked_tensor() || type.shape->size() < 2) continue;
    const std::vector<ValueId> operands(graph.inputs(*node).begin(), graph.inputs(*node).end());
    for (const ValueId weights : operands) {
      const Tensor* tensor = weights.present() ? graph.constant(weights) : nullptr;
      if (tensor == nullptr || tensor->shape.size() < 2 || !is_float(tensor->dtype)) continue;
      std::set<int> channels{1, static_cast<int>(type.shape->size()) - 1};
      for (const int channel : channels)
        if (absorb(window, from, product, weights, channel)) return true;
    }
  }
  return false;
}

bool ConstantMatcher::absorb(const Window& window, Side from, ClassId product, ValueId weights,
                             int channel) {
  const ValueId value = *pairing_.member(from, product);
  const Type type = pairing_.graph(from).type(value);
  const auto extent = (*type.shape)[static_cast<std::size_t>(channel)].constant();
  if (!extent) return false;
  Ints line(type.shape->size(), 1);
  line[static_cast<std::size_t>(channel)] = *extent;

  // The window from the product on, applied to one number for each channel: what it adds is its
  // value at the bias (or 0), what it multiplies by the difference of its values at 1 and 0.
  const ValueId zero = pairing_.derive_constant(from, filled(type.dtype, line, 0));
  const ValueId one = pairing_.derive_constant(from, filled(type.dtype, line, 1));
  std::optional<ValueId> bias = zero;
  const Graph& graph = pairing_.graph(from);
  const GraphNode node = *graph.producer(value);
  const std::vector<ValueId> operands(graph.inputs(node).begin(), graph.inputs(node).end());
  for (const ValueId operand : operands)
    if (operand.present() && operand != weights && graph.constant(operand) != nullptr &&
        graph.constant(operand)->count() == *extent)
      bias = reshaped(from, operand, line);
  if (!bias) return false;
  const auto at_zero = replayed(window, from, product, zero);
  const auto at_one = replayed(window, from, product, one);
  const auto shift = replayed(window, from, product, *bias);
  if (!at_zero || !at_one || !shift) return false;
  if (*at_one == one)
    return false;  // nothing is done to the product: its weights are what they are
  const auto scale = pairing_.derive(from, *op::sub, {}, {*at_one, *at_zero});
  if (!scale) return false;

  const Side to = other(from);
  const Ints shape = pairing_.graph(from).constant(weights)->shape;
  bool found = false;
  for (const ClassId loose : window.loose(to)) {
    // A constant of the other side may stand for a value that this side computes.
    const auto member = pairing_.member(to, loose);
    const Tensor* const given = member ? pairing_.graph(to).constant(*member) : nullptr;
    if (given == nullptr) continue;
    const ValueId constant = *member;
    const Tensor tensor = *given;
    if (tensor.count() == *extent) {
      const auto derived = reshaped(from, *shift, tensor.shape);
      found = (derived && assign_rounded(to, constant, *derived)) || found;
    } else if (tensor.shape == shape) {
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] != *extent) continue;
        Ints along(shape.size(), 1);
        along[axis] = *extent;
        const auto factor = reshaped(from, *scale, along);
        const auto derived =
            factor ? pairing_.derive(from, *op::mul, {}, {weights, *factor}) : std::nullopt;
        if (derived && assign_rounded(to, constant, *derived)) {
          found = true;
          break;
        }
      }
    }
  }
  return found;
}

std::vector<Assumption> ConstantMatcher::assumptions() const {
  if (rounded_ == 0) return {};
  return {{Assumption::Kind::Rounding,
           fmt::format("{} constant{} of one model {} what the constants of the other compute to, "
                       "rounded: elements differ by at most {:.1f}{}",
                       rounded_, rounded_ == 1 ? "" : "s", rounded_ == 1 ? "is" : "are", largest_,
                       kLastPlace)}};
}

}  // namespace tessera::prove
