#include <fmt/format.h>

#include <numeric>

#include "tessera/tile/lang.h"
#include "tessera/tile/lang_fit.h"

namespace tessera::tile {
namespace {

int axis_of(const Operand& x, int axis) {
  return axis < 0 ? axis + type_of(x).rank() : axis;
}

/// Integers are summed and multiplied in their accumulator type; floats keep their type.
Operand widened(const Operand& x) {
  const DType dtype = type_of(x).dtype;
  return is_float(dtype) ? x : Operand(cast(x, accumulator(dtype)), x.where());
}

/// Reinserts the reduced axis.
Val with_axis(const Val& reduced, const Extents& before, int axis, Dims dims) {
  if (dims == Dims::Drop) return reduced;
  Extents shape = before;
  if (axis == kAllAxes)
    shape.assign(before.size(), 1);
  else
    shape[static_cast<std::size_t>(axis)] = 1;
  return reshape(reduced, shape);
}

Val reduction(Function function, const Operand& x, int axis, Dims dims) {
  const Trace::Line line(x.where());
  const Type type = type_of(x);
  if (type.is_scalar()) return Val::of(value_of(x));
  if (axis == kAllAxes) {
    const Val flat = type.rank() == 1 ? Val::of(x.id()) : reshape(x, {type.count()});
    return with_axis(made(build().reduce(function, flat.id(), 0)), type.shape, axis, dims);
  }
  axis = axis_of(x, axis);
  return with_axis(made(build().reduce(function, value_of(x), axis)), type.shape, axis, dims);
}

/// Indices of a tile along an axis, from 0.
Val positions(const Operand& x, int axis) {
  const Extents shape = type_of(x).shape;
  if (axis < 0 || axis >= static_cast<int>(shape.size())) {
    Trace::current().fail("tile-type", fmt::format("axis {} of {}", axis, to_string(type_of(x))),
                          "an axis of the tile");
  }
  Extents along(shape.size(), 1);
  along[static_cast<std::size_t>(axis)] = shape[static_cast<std::size_t>(axis)];
  const Val count = made(build().iota(DType::I64, along[static_cast<std::size_t>(axis)]));
  return broadcast_to(reshape(count, along), shape);
}

using Compare = Val (*)(const Operand&, const Operand&);
/// Element that the comparison prefers, with its index: the first of equals, NaN last.
std::pair<Val, Val> extreme(Compare better, const Operand& x, int axis, Dims dims) {
  const Trace::Line line(x.where());
  axis = axis_of(x, axis);
  const Val tile = Val::of(value_of(x));
  const std::vector<Val> found =
      reduce({tile, positions(x, axis)}, axis, [&](const auto& left, const auto& right) {
        const Val first = left[1] < right[1];
        Val wins = better(left[0], right[0]) || (left[0] == right[0] && first);
        if (is_float(tile.dtype())) {
          wins = wins || (right[0] != right[0] && (left[0] == left[0] || first));
        }
        return std::vector<Val>{where(wins, left[0], right[0]), where(wins, left[1], right[1])};
      });
  const Extents shape = tile.shape();
  return {with_axis(found[0], shape, axis, dims), with_axis(found[1], shape, axis, dims)};
}

std::vector<Val> values(const std::vector<ValueId>& ids) {
  std::vector<Val> list;
  for (const ValueId id : ids) list.push_back(made(id));
  return list;
}

std::vector<ValueId> ids_of(const std::vector<Val>& list) {
  std::vector<ValueId> ids;
  for (const Val& value : list) ids.push_back(value.id());
  return ids;
}

std::vector<ValueId> ids_of(const Operands& list) {
  std::vector<ValueId> ids;
  for (const Operand& x : list) ids.push_back(value_of(x));
  return ids;
}

Builder::Combine traced(const Combine& combine) {
  return [&combine](const std::vector<ValueId>& left, const std::vector<ValueId>& right) {
    return Trace::current().apart([&] { return ids_of(combine(values(left), values(right))); });
  };
}

/// Optional mask, broadcast to the shape of the pointers.
std::optional<ValueId> mask_of(const Maybe& mask, const Extents& shape) {
  if (!mask) return {};
  if (!(*mask).is_number() && type_of(*mask).dtype != DType::Bool) {
    Trace::current().fail("tile-type", "a mask of " + to_string(type_of(*mask)), "bools");
  }
  return fit(*mask, DType::Bool, shape);
}

Val atomic(Function function, const Operand& pointer, const Operand& x, const Maybe& mask) {
  const Trace::Line line(pointer.where());
  const Type type = type_of(pointer);
  const ValueId value = fit(x, type.dtype, type.shape);
  return made(build().atomic(function, value_of(pointer), value, mask_of(mask, type.shape)));
}

Val hinted(const Operand& x, const char* kind, std::vector<std::int64_t> list) {
  const Trace::Line line(x.where());
  return made(build().hint(value_of(x), kind, std::move(list)));
}

}  // namespace

Val program_id(int axis, Place where) {
  const Trace::Line line(where);
  return made(build().pid(axis));
}

Val num_programs(int axis, Place where) {
  const Trace::Line line(where);
  return made(build().npid(axis));
}

Val arange(std::int64_t from, std::int64_t to, DType dtype, Place where) {
  const Trace::Line line(where);
  const std::int64_t count = to > from ? to - from : 0;  // the builder reports an empty range
  const Val zero_based = made(build().iota(dtype, count));
  return from == 0 ? zero_based : zero_based + from;
}

Val full(const Extents& shape, const Operand& value, DType dtype) {
  const Trace::Line line(value.where());
  return Val::of(fit(value, dtype, shape));
}

Val zeros(const Extents& shape, DType dtype, Place where) {
  return full(shape, Operand(0, where), dtype);
}

Val zeros_like(const Operand& x) {
  return full(type_of(x).shape, Operand(0, x.where()), type_of(x).dtype);
}

Val broadcast_to(const Operand& x, const Extents& shape) {
  const Trace::Line line(x.where());
  return Val::of(spread(x, shape));
}

Val reshape(const Operand& x, const Extents& shape) {
  const Trace::Line line(x.where());
  return made(build().reshape(value_of(x), shape));
}

Val permute(const Operand& x, const std::vector<std::int64_t>& order) {
  const Trace::Line line(x.where());
  return made(build().permute(value_of(x), order));
}

Val trans(const Operand& x) {
  std::vector<std::int64_t> order(type_of(x).shape.size());
  std::iota(order.begin(), order.end(), 0);
  if (order.size() >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute(x, order);
}

Val expand_dims(const Operand& x, int axis) {
  const Trace::Line line(x.where());
  Extents shape = type_of(x).shape;
  if (axis < 0) axis += static_cast<int>(shape.size()) + 1;
  if (axis < 0 || axis > static_cast<int>(shape.size())) {
    Trace::current().fail("tile-type",
                          fmt::format("a new axis {} of {}", axis, to_string(type_of(x))),
                          fmt::format("0 to {}", shape.size()));
  }
  shape.insert(shape.begin() + axis, 1);
  return reshape(x, shape);
}

Val concat(const Operands& parts, int axis, Place where) {
  const Trace::Line line(where);
  return made(build().concat(ids_of(parts), parts.empty() ? axis : axis_of(parts.front(), axis)));
}

Val slice(const Operand& x, const std::vector<std::int64_t>& from, const Extents& shape) {
  const Trace::Line line(x.where());
  return made(build().slice(value_of(x), from, shape));
}

Val gather(const Operand& x, const Operand& index, int axis) {
  const Trace::Line line(x.where());
  return made(build().gather(value_of(x), value_of(index), axis_of(x, axis)));
}

Val sum(const Operand& x, int axis, Dims dims) {
  const Trace::Line line(x.where());
  return reduction(Function::Add, widened(x), axis, dims);
}
Val prod(const Operand& x, int axis, Dims dims) {
  const Trace::Line line(x.where());
  return reduction(Function::Mul, widened(x), axis, dims);
}
Val max(const Operand& x, int axis, Dims dims) {
  return reduction(Function::Max, x, axis, dims);
}
Val min(const Operand& x, int axis, Dims dims) {
  return reduction(Function::Min, x, axis, dims);
}
Val argmax(const Operand& x, int axis, Dims dims) {
  return max_with_index(x, axis, dims).second;
}
Val argmin(const Operand& x, int axis, Dims dims) {
  return min_with_index(x, axis, dims).second;
}
std::pair<Val, Val> max_with_index(const Operand& x, int axis, Dims dims) {
  return extreme(operator>, x, axis, dims);
}
std::pair<Val, Val> min_with_index(const Operand& x, int axis, Dims dims) {
  return extreme(operator<, x, axis, dims);
}

Val cumsum(const Operand& x, int axis) {
  const Trace::Line line(x.where());
  return made(build().scan(Function::Add, value_of(widened(x)), axis_of(x, axis)));
}
Val cumprod(const Operand& x, int axis) {
  const Trace::Line line(x.where());
  return made(build().scan(Function::Mul, value_of(widened(x)), axis_of(x, axis)));
}

std::vector<Val> reduce(const Operands& x, int axis, const Combine& combine, Place where) {
  const Trace::Line line(where);
  if (!x.empty()) axis = axis_of(x.front(), axis);
  return values(build().reduce(ids_of(x), axis, traced(combine)));
}

std::vector<Val> associative_scan(const Operands& x, int axis, const Combine& combine,
                                  Place where) {
  const Trace::Line line(where);
  if (!x.empty()) axis = axis_of(x.front(), axis);
  return values(build().scan(ids_of(x), axis, false, traced(combine)));
}

Val softmax(const Operand& x, int axis) {
  const Trace::Line line(x.where());
  const Val numerator = exp(x - max(x, axis, Dims::Keep));
  return numerator / sum(numerator, axis, Dims::Keep);
}

DType accumulator(DType dtype) {
  switch (dtype) {
    case DType::F16:
    case DType::BF16: return DType::F32;
    case DType::Bool:
    case DType::I8:
    case DType::I16: return DType::I32;
    case DType::U8:
    case DType::U16: return DType::U32;
    default: return dtype;
  }
}

Val dot(const Operand& a, const Operand& b, const Maybe& c) {
  const Trace::Line line(a.where());
  const Type left = type_of(a), right = type_of(b);
  // 8-bit dots are signed, whatever the operands are.
  const DType dtype = is_float(left.dtype) ? accumulator(left.dtype) : DType::I32;
  if (c && !(*c).is_number()) return made(build().dot(value_of(a), value_of(b), (*c).id()));
  const bool matrices = left.rank() == 2 && right.rank() == 2;
  const Extents shape = matrices ? Extents{left.shape[0], right.shape[1]} : Extents{};
  const ValueId start = fit(c ? *c : Operand(0, a.where()), dtype, shape);
  return made(build().dot(value_of(a), value_of(b), start));
}

Val load(const Operand& pointer, const Maybe& mask, const Maybe& other) {
  const Trace::Line line(pointer.where());
  const Type type = type_of(pointer);
  // Without a mask `other` has no use.
  const std::optional<ValueId> holds = mask_of(mask, type.shape);
  std::optional<ValueId> instead;
  if (holds && other) instead = fit(*other, type.dtype, type.shape);
  return made(build().load(value_of(pointer), holds, instead));
}

void store(const Operand& pointer, const Operand& x, const Maybe& mask) {
  const Trace::Line line(pointer.where());
  const Type type = type_of(pointer);
  const ValueId value = fit(x, type.dtype, type.shape);
  build().store(value_of(pointer), value, mask_of(mask, type.shape));
  Trace::current().check();
}

Val atomic_add(const Operand& pointer, const Operand& x, const Maybe& mask) {
  return atomic(Function::Add, pointer, x, mask);
}
Val atomic_max(const Operand& pointer, const Operand& x, const Maybe& mask) {
  return atomic(Function::Max, pointer, x, mask);
}
Val atomic_min(const Operand& pointer, const Operand& x, const Maybe& mask) {
  return atomic(Function::Min, pointer, x, mask);
}
Val atomic_and(const Operand& pointer, const Operand& x, const Maybe& mask) {
  return atomic(Function::And, pointer, x, mask);
}
Val atomic_or(const Operand& pointer, const Operand& x, const Maybe& mask) {
  return atomic(Function::Or, pointer, x, mask);
}
Val atomic_xor(const Operand& pointer, const Operand& x, const Maybe& mask) {
  return atomic(Function::Xor, pointer, x, mask);
}
Val atomic_xchg(const Operand& pointer, const Operand& x, const Maybe& mask) {
  return atomic(Function::Exchange, pointer, x, mask);
}
Val atomic_cas(const Operand& pointer, const Operand& expected, const Operand& x) {
  const Trace::Line line(pointer.where());
  const Type type = type_of(pointer);
  const ValueId before = fit(expected, type.dtype, type.shape);
  const ValueId after = fit(x, type.dtype, type.shape);
  return made(build().cas(value_of(pointer), before, after));
}

std::pair<Val, Val> swizzle2d(const Operand& pid, const Operand& rows, const Operand& columns,
                              const Operand& group) {
  const Trace::Line line(pid.where());
  const Val in_group = columns * group;
  const Val first = pid / in_group * group;
  const Val height = minimum(rows - first, group);
  const Val within = pid % in_group;
  return {first + within % height, within / height};
}

void assume(const Operand& condition) {
  const Trace::Line line(condition.where());
  build().assume(truth(condition));
  Trace::current().check();
}

Val multiple_of(const Operand& x, std::vector<std::int64_t> values) {
  return hinted(x, "multiple_of", std::move(values));
}
Val max_contiguous(const Operand& x, std::vector<std::int64_t> values) {
  return hinted(x, "max_contiguous", std::move(values));
}
Val max_constancy(const Operand& x, std::vector<std::int64_t> values) {
  return hinted(x, "max_constancy", std::move(values));
}

void device_assert(const Operand& condition, std::string message) {
  const Trace::Line line(condition.where());
  build().assertion(truth(condition), std::move(message));
  Trace::current().check();
}

void device_print(std::string text, const Operands& values, Place where) {
  const Trace::Line line(where);
  build().print(std::move(text), ids_of(values));
  Trace::current().check();
}

void barrier(Place where) {
  const Trace::Line line(where);
  build().barrier();
}

}  // namespace tessera::tile
