#include "tessera/tile/passes/affine_tiles.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tessera/tile/passes/ranges.h"

namespace tessera::tile {
namespace {

constexpr int kMostDepth = 64;
constexpr std::size_t kMostBounds = 16;

std::optional<AffineTile> plus(const AffineTile& a, const AffineTile& b, std::int64_t factor) {
  AffineTile sum = a;
  const auto offset = a.offset.plus(b.offset, factor);
  if (!offset || b.base) return {};
  sum.offset = *offset;
  for (std::size_t i = 0; i < a.strides.size(); ++i) {
    const auto stride = a.strides[i].plus(b.strides[i], factor);
    if (!stride) return {};
    sum.strides[i] = *stride;
  }
  return sum;
}

std::optional<AffineTile> times(const AffineTile& a, const AffineTile& b) {
  if (!is_uniform(b)) return is_uniform(a) ? times(b, a) : std::nullopt;
  AffineTile result = a;
  const auto offset = a.offset.times(b.offset);
  if (!offset) return {};
  result.offset = *offset;
  for (Polynomial& stride : result.strides) {
    const auto scaled = stride.times(b.offset);
    if (!scaled) return {};
    stride = *scaled;
  }
  return result;
}

/// Which axes of the result make up each axis of the operand: axes come and go where their extent
/// is 1, and one may be cut into several. None where axes are merged.
std::optional<std::vector<Polynomial>> reshaped(const std::vector<Polynomial>& strides,
                                                const Extents& from, const Extents& to) {
  std::vector<Polynomial> result(to.size());
  std::size_t next = to.size();  // those from here on are done
  for (std::size_t i = from.size(); i-- > 0;) {
    std::int64_t inner = 1;
    while (inner < from[i]) {
      if (next == 0) return {};
      --next;
      if (from[i] % (inner * to[next]) != 0) return {};
      const auto stride = strides[i].times(Polynomial::constant(inner));
      if (!stride) return {};
      if (to[next] != 1) result[next] = *stride;
      inner *= to[next];
    }
  }
  return result;
}

}  // namespace

bool is_uniform(const AffineTile& x) {
  return std::all_of(x.strides.begin(), x.strides.end(),
                     [](const Polynomial& stride) { return stride.is_zero(); });
}

AffineTiles::AffineTiles(const Kernel& kernel)
    : kernel_(kernel), facts_(facts_of(kernel)), definitions_(definitions(kernel)) {}

const Operation* AffineTiles::definition(ValueId id) const {
  return definitions_[id] ? &kernel_.ops[*definitions_[id]] : nullptr;
}

bool AffineTiles::wraps(const Operation& op) const {
  const DType dtype = kernel_.type(op.out[0]).dtype;
  if (dtype == DType::I64) return false;
  const Facts &x = facts_[op.in.front()], &y = facts_[op.in.back()];
  const Interval a = range_of(x), b = range_of(y);
  switch (op.function) {
    case Function::Neg: return !fits(negate(a), dtype);
    case Function::Sub: return !fits(add(a, negate(b)), dtype);
    case Function::Mul: return !fits(multiply(a, b), dtype);
    default: break;
  }
  if (fits(add(a, b), dtype)) return false;
  // A multiple of 2^n and something less than 2^n do not wrap when they are added.
  const auto stays = [&](const Facts& multiple, const Facts& small) {
    const bool still = std::all_of(multiple.contiguity.begin(), multiple.contiguity.end(),
                                   [](std::int64_t own) { return own == 1; });
    const int twos = std::countr_zero(static_cast<std::uint64_t>(multiple.divisor));
    const std::int64_t power = std::int64_t{1} << std::min(twos, 8 * byte_width(dtype) - 1);
    return still && small.low && *small.low >= 0 && small.high && *small.high < power;
  };
  return dtype == DType::U64 || !(stays(x, y) || stays(y, x));
}

std::optional<AffineTile> AffineTiles::tile(ValueId id) const {
  if (const auto it = tiles_.find(id); it != tiles_.end()) return it->second;
  if (depth_ >= kMostDepth) return leaf(id);
  ++depth_;
  auto form = read(id);
  --depth_;
  if (!form) form = leaf(id);
  return tiles_[id] = std::move(form);
}

std::optional<AffineTile> AffineTiles::leaf(ValueId id) const {
  const Type& type = kernel_.type(id);
  if (!type.is_scalar()) return {};
  return type.is_pointer() ? AffineTile{.base = id} : AffineTile{.offset = Polynomial::value(id)};
}

std::optional<AffineTile> AffineTiles::read(ValueId id) const {
  const Type& type = kernel_.type(id);
  const Operation* op = definition(id);
  if (op == nullptr) return {};
  AffineTile made{.strides = std::vector<Polynomial>(type.shape.size())};
  switch (op->code) {
    case Code::Const: made.offset = Polynomial::constant(op->literal.integer); return made;
    case Code::Iota:
      if (type.shape[0] > 1) made.strides[0] = Polynomial::constant(1);
      return made;
    case Code::Broadcast:
    case Code::Reshape:
    case Code::Permute:
    case Code::Slice: {
      const auto x = tile(op->in[0]);
      return x ? moved(*op, *x) : std::nullopt;
    }
    case Code::Hint: return tile(op->in[0]);
    case Code::Cast: {
      // The numbers stay what they are.
      const bool keeps = is_integer(kernel_.type(op->in[0]).dtype) && is_integer(type.dtype) &&
                         fits(range_of(facts_[op->in[0]]), type.dtype);
      return keeps ? tile(op->in[0]) : std::nullopt;
    }
    case Code::Map: return arithmetic(*op);
    case Code::Offset: {
      const auto pointer = tile(op->in[0]), by = tile(op->in[1]);
      return pointer && by ? plus(*pointer, *by, 1) : std::nullopt;
    }
    default: return {};
  }
}

std::optional<AffineTile> AffineTiles::arithmetic(const Operation& op) const {
  const bool sums = op.function == Function::Add || op.function == Function::Sub;
  const bool known = sums || op.function == Function::Mul || op.function == Function::Neg;
  if (!known || !is_integer(kernel_.type(op.out[0]).dtype) || wraps(op)) return {};
  const auto a = tile(op.in.front()), b = tile(op.in.back());
  if (!a || !b) return {};
  if (op.function == Function::Mul) return times(*a, *b);
  if (op.function == Function::Neg)
    return plus({.strides = std::vector<Polynomial>(a->strides.size())}, *a, -1);
  return plus(*a, *b, op.function == Function::Add ? 1 : -1);
}

std::optional<AffineTile> AffineTiles::moved(const Operation& op, const AffineTile& x) const {
  const Extents &from = kernel_.type(op.in[0]).shape, &to = kernel_.type(op.out[0]).shape;
  AffineTile result{
      .base = x.base, .offset = x.offset, .strides = std::vector<Polynomial>(to.size())};
  switch (op.code) {
    case Code::Broadcast:
      if (!from.empty()) result.strides = x.strides;
      return result;
    case Code::Reshape: {
      auto strides = reshaped(x.strides, from, to);
      if (!strides) return {};
      result.strides = *std::move(strides);
      return result;
    }
    case Code::Permute:
      for (std::size_t i = 0; i < to.size(); ++i)
        result.strides[i] = x.strides[static_cast<std::size_t>(op.ints[i])];
      return result;
    default: break;
  }
  for (std::size_t i = 0; i < to.size(); ++i) {  // Slice
    const auto offset = result.offset.plus(x.strides[i], op.ints[i]);
    if (!offset) return {};
    result.offset = *offset;
    if (to[i] > 1) result.strides[i] = x.strides[i];
  }
  return result;
}

std::optional<Mask> AffineTiles::mask(ValueId id) const {
  if (const auto it = masks_.find(id); it != masks_.end()) return it->second;
  if (depth_ >= kMostDepth) return {};
  ++depth_;
  auto mask = read_mask(id);
  --depth_;
  return masks_[id] = std::move(mask);
}

std::optional<Mask> AffineTiles::read_mask(ValueId id) const {
  const Operation* op = definition(id);
  if (op != nullptr) {
    if (op->code == Code::Const && op->literal.integer != 0) return Mask{};
    if (op->code == Code::Map && op->function == Function::And) {
      auto a = mask(op->in[0]);
      const auto b = mask(op->in[1]);
      if (!a || !b || a->bounds.size() + b->bounds.size() > kMostBounds) return {};
      if (a->conditions.size() + b->conditions.size() > kMostBounds) return {};
      a->bounds.insert(a->bounds.end(), b->bounds.begin(), b->bounds.end());
      a->conditions.insert(a->conditions.end(), b->conditions.begin(), b->conditions.end());
      return a;
    }
    if (op->code == Code::Broadcast || op->code == Code::Reshape || op->code == Code::Permute ||
        op->code == Code::Slice) {
      auto inner = mask(op->in[0]);
      if (!inner) return {};
      for (Bound& bound : inner->bounds) {
        const auto gap = moved(*op, bound.gap);
        // A slice moves the index too, by as much as it moves the gap.
        if (!gap || op->code == Code::Slice) return {};
        bound.gap = *gap;
      }
      return inner;
    }
    if (kernel_.type(id).is_tile()) {
      if (facts_[id].low && *facts_[id].low == 1) return Mask{};  // it is always true
      auto bound = comparison(*op);
      if (!bound) return {};
      return Mask{.bounds = {*std::move(bound)}};
    }
  }
  if (kernel_.type(id).is_tile()) return {};
  return Mask{.conditions = {id}};
}

std::optional<Bound> AffineTiles::comparison(const Operation& op) const {
  if (op.code != Code::Map || !is_compare(op.function) || !is_integer(kernel_.type(op.in[0]).dtype))
    return {};
  const bool below = op.function == Function::Less || op.function == Function::LessEqual;
  const bool above = op.function == Function::Greater || op.function == Function::GreaterEqual;
  if (!below && !above) return {};
  const auto small = tile(op.in[below ? 0 : 1]), large = tile(op.in[below ? 1 : 0]);
  if (!small || !large) return {};
  auto gap = plus(*large, *small, -1);
  if (!gap) return {};
  if (op.function == Function::Less || op.function == Function::Greater) {
    const auto offset = gap->offset.plus(Polynomial::constant(-1));
    if (!offset) return {};
    gap->offset = *offset;
  }
  return Bound{*std::move(gap), is_uniform(*small) ? large->offset : small->offset};
}

}  // namespace tessera::tile
