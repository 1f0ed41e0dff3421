#include "tessera/tile/passes/recover.h"

#include <algorithm>
#include <utility>

#include "tessera/tile/passes/affine_tiles.h"
#include "tessera/tile/passes/carry_offsets.h"
#include "tessera/tile/type_check.h"

namespace tessera::tile {
namespace {

/// Position of an axis of a tile in a view: it starts at `at`, and the minimum of `ends` is the
/// extent.
struct Axis {
  Polynomial at = {};
  std::vector<Polynomial> ends = {};
};

/// Plan of an access as an access to a view.
struct Plan {
  ValueId base = 0;
  Polynomial offset = {};
  std::vector<Polynomial> strides = {};
  std::vector<Axis> axes = {};
  std::vector<Polynomial> not_negative = {};  // or nothing is accessed
  std::vector<ValueId> conditions = {};       // scalar conditions of the access
};

/// A bound along one axis of the tile: the element is accessed where `gap` +- i is not negative.
struct AxisBound {
  std::size_t axis = 0;
  bool grows = true;
  Polynomial gap = {}, index = {};  // as those of Bound
};

/// None where a bound depends on several axes. A coefficient s > 1 that divides all other terms is
/// divided out: s·(i + q) + r is not negative, with 0 <= r < s, exactly where i + q is not.
std::optional<AxisBound> axis_bound(const Bound& bound) {
  std::optional<std::size_t> axis;
  for (std::size_t i = 0; i < bound.gap.strides.size(); ++i) {
    if (bound.gap.strides[i].is_zero()) continue;
    if (axis) return {};
    axis = i;
  }
  const auto step = axis ? bound.gap.strides[*axis].as_constant() : std::nullopt;
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (!step || *step < -kMost || *step > kMost) return {};
  const std::int64_t by = *step < 0 ? -*step : *step;
  const auto gap = bound.gap.offset.divided(by);
  if (!gap) return {};
  return AxisBound{.axis = *axis,
                   .grows = *step > 0,
                   .gap = *gap,
                   .index = bound.index.divided(by).value_or(Polynomial{})};
}

/// Along one axis, an element i of the tile is accessed where every lower bound has low + i >= 0
/// and every upper one has high - i >= 0. In a view, it is accessed where 0 <= at + i < end: so at
/// = low and end = at + high + 1. Without a lower bound, `at` may be any non-negative value: the
/// index that the program itself compares, or 0.
std::optional<Axis> place(std::int64_t extent, const std::vector<AxisBound>& lower,
                          const std::vector<AxisBound>& upper, const std::vector<Facts>& facts) {
  Axis axis;
  if (lower.size() > 1) return {};
  if (!lower.empty()) {
    axis.at = lower[0].gap;
  } else if (!upper.empty()) {
    const auto least = upper[0].index.least(facts);
    if (least && *least >= 0) axis.at = upper[0].index;
  }
  const auto add_end = [&](const Polynomial& beyond) {
    const auto end = axis.at.plus(beyond);
    if (end) axis.ends.push_back(*end);
    return end.has_value();
  };
  for (const AxisBound& bound : upper) {
    const auto beyond = bound.gap.plus(Polynomial::constant(1));
    if (!beyond || !add_end(*beyond)) return {};
  }
  if (upper.empty() && !add_end(Polynomial::constant(extent))) return {};
  return axis;
}

std::optional<Plan> plan(const AffineTiles& forms, const Extents& shape, ValueId pointers,
                         const Mask& mask) {
  const auto affine = forms.tile(pointers);
  if (!affine || !affine->base) return {};
  Plan plan{.base = *affine->base, .offset = affine->offset, .strides = affine->strides};
  plan.conditions = mask.conditions;
  std::vector<std::vector<AxisBound>> lower(shape.size()), upper(shape.size());
  for (const Bound& bound : mask.bounds) {
    if (is_uniform(bound.gap)) {
      plan.not_negative.push_back(bound.gap.offset);
      continue;
    }
    auto along = axis_bound(bound);
    if (!along) return {};
    const std::size_t axis = along->axis;
    (along->grows ? lower : upper)[axis].push_back(*std::move(along));
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    auto axis = place(shape[i], lower[i], upper[i], forms.facts());
    if (!axis) return {};
    const auto moved = axis->at.times(plan.strides[i]);
    const auto offset = moved ? plan.offset.plus(*moved, -1) : std::nullopt;
    if (!offset) return {};
    plan.offset = *offset;
    plan.axes.push_back(*std::move(axis));
  }
  return plan;
}

/// The view of a plan, and the position of the tile in it.
std::vector<ValueId> emit_view(Rewrite& out, const Plan& plan, DType dtype) {
  const auto known = [](const Polynomial& x) {
    const auto number = x.as_constant();
    return number && *number >= 0 && *number < kMostViewElements ? *number : kDynamic;
  };
  std::optional<ValueId> condition;
  const auto demand = [&](ValueId truth) {
    condition = condition ? out.map(Function::And, {*condition, truth}) : truth;
  };
  for (const ValueId truth : plan.conditions) demand(out.of(truth));
  for (const Polynomial& x : plan.not_negative)
    demand(out.map(Function::GreaterEqual, {x.emit(out), out.index(0)}));

  const std::size_t rank = plan.axes.size();
  Extents shape(rank, kDynamic), strides(rank, kDynamic);
  for (std::size_t i = 0; i < rank; ++i) {
    const bool whole = plan.axes[i].ends.size() == 1 && !(condition && i == 0);
    if (whole) shape[i] = known(plan.axes[i].ends[0]);
    strides[i] = known(plan.strides[i]);
  }
  Type type = Type::view(dtype, shape, strides);
  if (type_mistake(type))
    type = Type::view(dtype, Extents(rank, kDynamic), Extents(rank, kDynamic));

  const ValueId base = out.of(plan.base);
  std::vector<ValueId> in = {base};
  if (!plan.offset.is_zero())
    in[0] = out.emit({.code = Code::Offset, .in = {base, plan.offset.emit(out)}}, out.type(base));
  for (std::size_t i = 0; i < rank; ++i) {
    if (type.shape[i] != kDynamic) continue;
    std::optional<ValueId> extent;
    for (const Polynomial& end : plan.axes[i].ends) {
      const ValueId next = end.emit(out);
      extent = extent ? out.map(Function::Min, {*extent, next}) : next;
    }
    // Where the condition is false, nothing is in bounds.
    if (condition && i == 0)
      extent = out.map(Function::Select, {*condition, *extent, out.index(0)});
    in.push_back(*extent);
  }
  for (std::size_t i = 0; i < rank; ++i) {
    if (type.strides[i] == kDynamic) in.push_back(plan.strides[i].emit(out));
  }
  std::vector<ValueId> access = {out.emit({.code = Code::View, .in = in}, type)};
  for (const Axis& axis : plan.axes) access.push_back(axis.at.emit(out));
  return access;
}

class Recovery {
 public:
  explicit Recovery(const Kernel& kernel) : kernel_(kernel), forms_(kernel) {}

  void visit(Rewrite& out, const Operation& op) const {
    const bool stores = op.code == Code::Store;
    const auto found = stores || op.code == Code::Load ? read(op) : std::nullopt;
    if (!found) return out.copy(op);
    const Type& tile = kernel_.type(stores ? op.in[1] : op.out[0]);
    std::vector<ValueId> access = emit_view(out, *found, tile.dtype);
    if (stores) {
      access.push_back(out.of(op.in[1]));
      return out.emit({.code = Code::Vstore, .in = access});
    }
    const bool pads = op.in.size() == 3;
    const Literal pad = pads ? forms_.definition(op.in[2])->literal : Literal{};
    out.set(op.out[0], out.emit({.code = Code::Vload, .in = access, .literal = pad}, tile));
  }

 private:
  std::optional<Plan> read(const Operation& op) const {
    const bool stores = op.code == Code::Store;
    const Type& pointers = kernel_.type(op.in[0]);
    if (!pointers.is_tile()) return {};
    const std::size_t at = stores ? 2 : 1;
    const auto mask = op.in.size() > at ? forms_.mask(op.in[at]) : Mask{};
    if (!mask) return {};
    if (!stores && op.in.size() == 3) {
      const Operation* other = forms_.definition(op.in[2]);
      if (other == nullptr || other->code != Code::Const) return {};
    }
    return plan(forms_, pointers.shape, op.in[0], *mask);
  }

  const Kernel& kernel_;
  AffineTiles forms_;
};

}  // namespace

Kernel recover(const Kernel& kernel) {
  const Kernel carried = carry_offsets(kernel);
  const Recovery recovery(carried);
  return Rewrite::run(carried, [&](Rewrite& out, const Operation& op) { recovery.visit(out, op); });
}

}  // namespace tessera::tile
