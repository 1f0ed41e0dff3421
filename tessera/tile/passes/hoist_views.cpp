#include "tessera/tile/passes/hoist_views.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tessera/tile/passes/affine_tiles.h"

namespace tessera::tile {
namespace {

/// A view of a loop's body as one in front of the loop: an axis along which accesses advance by
/// `step` elements with each unit of the loop's index.
struct HoistedView {
  Type type = {};
  ValueId base = 0;                   // a pointer of the source
  Polynomial offset = {};             // in elements
  std::vector<Polynomial> open = {};  // the extents and strides that the type leaves open
  std::size_t axis = 0;
  Polynomial step = {};
};

/// A scalar as rest + factor * index of the loop.
using Linear = Polynomial::Linear;

/// Scalars of a loop's body as linear functions of its index.
class LoopScalars {
 public:
  LoopScalars(const Kernel& kernel, const AffineTiles& tiles, const Operation& loop)
      : kernel_(kernel), tiles_(tiles), index_(loop.regions[0].params[0]) {
    collect(loop.regions[0]);
    const Region& body = loop.regions[0];
    const auto start = tiles.tile(loop.in[0]), step = tiles.tile(loop.in[2]);
    const auto by = step ? step->offset.as_constant() : std::nullopt;
    if (!start || !by || *by <= 0) return;
    // x = start + n * advance, where n counts the iterations: (index - from) / step.
    const std::vector<ValueId>& next = yields(kernel, body);
    for (std::size_t i = 0; i < next.size(); ++i) {
      const ValueId param = body.params[i + 1];
      const Type& type = kernel.type(param);
      if (!type.is_scalar() || type.is_pointer() || type.dtype != DType::I64) continue;
      const auto initial = tiles.tile(loop.in[i + 3]), after = tiles.tile(next[i]);
      if (!initial || !after) continue;
      const auto change = after->offset.plus(Polynomial::value(param), -1);
      const auto rate = change && is_invariant(*change) ? exactly(*change, *by) : std::nullopt;
      const auto since = Polynomial::value(index_).plus(start->offset, -1);
      const auto moved = rate && since ? rate->times(*since) : std::nullopt;
      const auto closed = moved ? initial->offset.plus(*moved) : std::nullopt;
      if (closed) closed_.emplace(param, *closed);
    }
  }

  /// None where it is no such function, or is made of other scalars of the body.
  std::optional<Linear> linear(Polynomial x) const {
    for (const auto& [param, form] : closed_) {
      const auto parts = x.linear_in(param);
      const auto product = parts ? parts->factor.times(form) : std::nullopt;
      const auto sum = product ? parts->rest.plus(*product) : std::nullopt;
      if (!sum) return {};
      x = *sum;
    }
    const auto parts = x.linear_in(index_);
    if (!parts || !is_invariant(parts->rest) || !is_invariant(parts->factor)) return {};
    return parts;
  }
  std::optional<Linear> linear(ValueId scalar) const {
    const auto form = tiles_.tile(scalar);
    return form && !form->base ? linear(form->offset) : std::nullopt;
  }

  bool is_inner(ValueId id) const { return inner_.contains(id); }
  ValueId index() const { return index_; }

 private:
  static std::optional<Polynomial> exactly(const Polynomial& x, std::int64_t by) {
    const auto quotient = x.divided(by);
    const auto back = quotient ? quotient->times(Polynomial::constant(by)) : std::nullopt;
    return back && *back == x ? quotient : std::nullopt;
  }
  bool is_invariant(const Polynomial& x) const {
    const auto scalars = x.scalars();
    return std::none_of(scalars.begin(), scalars.end(), [&](ValueId id) { return is_inner(id); });
  }
  void collect(const Region& region) {
    inner_.insert(region.params.begin(), region.params.end());
    for (const OpId id : region.ops) {
      const Operation& op = kernel_.ops[id];
      inner_.insert(op.out.begin(), op.out.end());
      for (const Region& r : op.regions) collect(r);
    }
  }

  const Kernel& kernel_;
  const AffineTiles& tiles_;
  ValueId index_;
  std::set<ValueId> inner_;
  std::map<ValueId, Polynomial> closed_;
};

/// x / by, where that is a polynomial.
std::optional<Polynomial> quotient(const Polynomial& x, const Polynomial& by) {
  if (const auto number = by.as_constant()) {
    if (*number == 0) return {};
    const auto result = x.divided(*number);
    const auto back = result ? result->times(by) : std::nullopt;
    return back && *back == x ? result : std::nullopt;
  }
  const std::vector<ValueId> scalars = by.scalars();
  if (scalars.size() != 1 || by != Polynomial::value(scalars[0])) return {};
  const auto parts = x.linear_in(scalars[0]);
  return parts && parts->rest.is_zero() ? std::optional(parts->factor) : std::nullopt;
}

class ViewHoisting {
 public:
  explicit ViewHoisting(const Kernel& kernel) : kernel_(kernel), tiles_(kernel) {}

  void visit(Rewrite& out, const Operation& op) {
    if (op.code == Code::For) {
      hoist(out, op);
      return out.copy(op);
    }
    const bool accesses = op.code == Code::Vload || op.code == Code::Vstore;
    const auto found = accesses ? hoisted_.find(op.in[0]) : hoisted_.end();
    if (found == hoisted_.end()) return out.copy(op);
    const auto& [view, now, index] = found->second;
    Operation moved = op;
    moved.in = out.of(op.in);
    moved.ints.clear();
    moved.in[0] = now;
    const std::size_t rank = view.type.shape.size();
    for (std::size_t axis = 0; axis < rank; ++axis)
      moved.in[axis + 1] = out.cast(moved.in[axis + 1], DType::I64);
    const auto advance = view.step.times(Polynomial::value(index));
    const ValueId by = advance->emit(out);
    moved.in[view.axis + 1] = out.map(Function::Add, {moved.in[view.axis + 1], by});
    if (op.code == Code::Vstore) return out.emit(std::move(moved));
    moved.out.clear();
    out.set(op.out[0], out.emit(std::move(moved), kernel_.type(op.out[0])));
  }

 private:
  struct Placed {
    HoistedView view;
    ValueId now = 0;  // in the result
    ValueId index = 0;
  };

  void hoist(Rewrite& out, const Operation& loop) {
    const LoopScalars scalars(kernel_, tiles_, loop);
    for (const OpId id : loop.regions[0].ops) {
      const Operation& op = kernel_.ops[id];
      if (op.code != Code::View || !starts_at_zero(loop, op.out[0])) continue;
      auto view = hoisted(scalars, loop, op);
      if (!view) continue;
      Operation made{.code = Code::View};
      made.in.push_back(
          out.emit({.code = Code::Offset, .in = {out.of(view->base), view->offset.emit(out)}},
                   Type::pointer(view->type.dtype)));
      for (const Polynomial& size : view->open) made.in.push_back(size.emit(out));
      const ValueId now = out.emit(std::move(made), view->type);
      hoisted_[op.out[0]] = {*std::move(view), now, scalars.index()};
    }
  }

  /// Whether the view is accessed in the body itself alone, at constant positions that are not
  /// negative.
  bool starts_at_zero(const Operation& loop, ValueId view) const {
    const auto is_fine = [&](const Operation& op) {
      if (std::find(op.in.begin(), op.in.end(), view) == op.in.end()) return true;
      if ((op.code != Code::Vload && op.code != Code::Vstore) || op.in[0] != view) return false;
      const auto rank = static_cast<std::size_t>(kernel_.type(view).rank());
      for (std::size_t i = 1; i <= rank; ++i) {
        const auto at = tiles_.tile(op.in[i]);
        const auto number = at && !at->base ? at->offset.as_constant() : std::nullopt;
        if (!number || *number < 0) return false;
      }
      return true;
    };
    bool fine = true;
    for (const OpId id : loop.regions[0].ops) {
      const Operation& op = kernel_.ops[id];
      fine = fine && is_fine(op);
      for (const Region& region : op.regions)
        for_each_op(kernel_, region, [&](OpId inner) {
          const Operation& o = kernel_.ops[inner];
          fine = fine && std::find(o.in.begin(), o.in.end(), view) == o.in.end();
        });
    }
    return fine;
  }

  /// Whether no access of the body leaves the view along an axis of static extent.
  bool stays_inside(const Operation& loop, ValueId view, std::size_t axis) const {
    const std::int64_t extent = kernel_.type(view).shape[axis];
    return std::all_of(loop.regions[0].ops.begin(), loop.regions[0].ops.end(), [&](OpId id) {
      const Operation& op = kernel_.ops[id];
      if ((op.code != Code::Vload && op.code != Code::Vstore) || op.in[0] != view) return true;
      const Type& tile = kernel_.type(op.code == Code::Vload ? op.out[0] : op.in.back());
      const auto at = tiles_.tile(op.in[axis + 1])->offset.as_constant();
      return at && *at <= extent - tile.shape[axis];
    });
  }

  std::optional<HoistedView> hoisted(const LoopScalars& scalars, const Operation& loop,
                                     const Operation& op) const {
    const Type& type = kernel_.type(op.out[0]);
    const auto pointer = tiles_.tile(op.in[0]);
    if (!pointer || !pointer->base || scalars.is_inner(*pointer->base)) return {};
    const auto offset = scalars.linear(pointer->offset);
    if (!offset || offset->factor.is_zero()) return {};
    HoistedView view{.type = type, .base = *pointer->base, .offset = offset->rest};
    std::size_t next = 1;
    std::vector<Linear> extents, strides;
    for (const auto& [list, forms] :
         {std::pair(&type.shape, &extents), std::pair(&type.strides, &strides)}) {
      for (const std::int64_t size : *list) {
        if (size != kDynamic) {
          forms->push_back({.rest = Polynomial::constant(size)});
          continue;
        }
        const auto form = scalars.linear(op.in[next++]);
        if (!form) return {};
        forms->push_back(*form);
      }
    }
    std::optional<std::size_t> axis;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (!strides[i].factor.is_zero()) return {};
      const auto step = quotient(offset->factor, strides[i].rest);
      const auto change = step ? extents[i].factor.plus(*step) : std::nullopt;
      // The end stays where it is; or there is none, where every access is inside.
      const bool ends = change && change->is_zero();
      const bool open = step && extents[i].factor.is_zero() && type.shape[i] != kDynamic &&
                        step->least(tiles_.facts()).value_or(-1) >= 0 &&
                        stays_inside(loop, op.out[0], i);
      if (axis || !(ends || open)) {
        if (!extents[i].factor.is_zero()) return {};
        continue;
      }
      if (step->least(tiles_.facts()).value_or(-1) < 0) return {};
      axis = i;
      view.step = *step;
      if (open) {
        // Up to what the last iteration reaches.
        const auto to = tiles_.tile(loop.in[1]);
        const auto reach = to && !to->base ? step->times(to->offset) : std::nullopt;
        const auto extent = reach ? reach->plus(extents[i].rest) : std::nullopt;
        if (!extent) return {};
        extents[i].rest = *extent;
      }
    }
    const auto from = tiles_.tile(loop.in[0]);
    const auto first = from && !from->base ? from->offset.least(tiles_.facts()) : std::nullopt;
    if (!axis || !first || *first < 0) return {};
    view.axis = *axis;
    view.type.shape[*axis] = kDynamic;
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (view.type.shape[i] == kDynamic) view.open.push_back(extents[i].rest);
    for (std::size_t i = 0; i < strides.size(); ++i)
      if (view.type.strides[i] == kDynamic) view.open.push_back(strides[i].rest);
    return view;
  }

  const Kernel& kernel_;
  AffineTiles tiles_;
  std::map<ValueId, Placed> hoisted_;  // by view of the source
};

}  // namespace

Kernel hoist_views(const Kernel& kernel) {
  ViewHoisting hoisting(kernel);
  return Rewrite::run(kernel, [&](Rewrite& out, const Operation& op) { hoisting.visit(out, op); });
}

}  // namespace tessera::tile
