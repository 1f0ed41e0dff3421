#include "tessera/tile/passes/version_indices.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tessera/tile/passes/affine_tiles.h"
#include "tessera/tile/passes/lane_demand.h"
#include "tessera/tile/passes/region_copier.h"

namespace tessera::tile {
namespace {

/// A remainder or quotient of a tile, and the condition that each number is less than the divisor.
struct Wrap {
  ValueId result = 0;
  Polynomial least = {}, gap = {};  // both are at least 0 where it holds
  /// Loads to be masked, after which numbers that are not less than the divisor may be any.
  std::optional<std::vector<LaneLoad>> loads = {};
};

/// Least and greatest element of an affine tile.
struct Extremes {
  Polynomial least = {}, greatest = {};
};
std::optional<Extremes> extremes(const AffineTile& x, const Extents& shape) {
  std::optional<Polynomial> least = x.offset, greatest = x.offset;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto stride = x.strides[i].as_constant();
    if (!stride) return {};
    std::optional<Polynomial>& moved = *stride < 0 ? least : greatest;
    moved = moved->plus(Polynomial::constant(*stride), shape[i] - 1);
    if (!moved) return {};
  }
  return Extremes{*least, *greatest};
}

/// The condition that a number of a tile is less than the divisor, by element: at least 0.
std::optional<AffineTile> bound_of(const AffineTile& x, const Polynomial& divisor) {
  AffineTile bound;
  auto gap = divisor.plus(x.offset, -1);
  if (gap) gap = gap->plus(Polynomial::constant(1), -1);
  if (!gap) return {};
  bound.offset = *gap;
  for (const Polynomial& stride : x.strides) {
    const auto down = Polynomial{}.plus(stride, -1);
    if (!down) return {};
    bound.strides.push_back(*down);
  }
  return bound;
}

/// Wraps at the beginning of the kernel's body, before anything that has effects.
std::vector<Wrap> find_wraps(const Kernel& kernel, WrappedElements wrapped) {
  const AffineTiles tiles(kernel);
  std::vector<Wrap> wraps;
  for (const OpId id : kernel.body.ops) {
    const Operation& op = kernel.ops[id];
    if (!is_pure(kernel, op)) break;
    const bool divides =
        op.code == Code::Map && (op.function == Function::Rem || op.function == Function::Div) &&
        kernel.type(op.out[0]).is_tile() && is_integer(kernel.type(op.out[0]).dtype);
    if (!divides) continue;
    const auto x = tiles.tile(op.in[0]), by = tiles.tile(op.in[1]);
    if (!x || x->base || is_uniform(*x) || !by || by->base || !is_uniform(*by)) continue;
    const auto ends = extremes(*x, kernel.type(op.out[0]).shape);
    if (!ends) continue;
    auto gap = by->offset.plus(ends->greatest, -1);
    if (gap) gap = gap->plus(Polynomial::constant(1), -1);
    if (!gap) continue;
    wraps.push_back({op.out[0], ends->least, *gap});
    if (wrapped == WrappedElements::Version || op.function != Function::Rem) continue;
    if (const auto bound = bound_of(*x, by->offset))
      wraps.back().loads = loads_of_unobserved(kernel, tiles, op.out[0], *bound);
  }
  return wraps;
}

/// A mask of one axis of a load.
struct LaneMask {
  ValueId mask = 0;  // of one dimension
  std::size_t axis = 0;
};
using LaneMasks = std::map<ValueId, std::vector<LaneMask>>;  // by the result of the load

/// Masks of a load, by the remainders that it depends on; `in_range` has the mask of each.
std::vector<LaneMask> masks_of(const std::vector<Wrap>& wraps,
                               const std::map<ValueId, ValueId>& in_range, ValueId load) {
  std::vector<LaneMask> masks;
  for (const Wrap& wrap : wraps) {
    if (!wrap.loads) continue;
    for (const LaneLoad& lane : *wrap.loads) {
      if (lane.result == load) masks.push_back({in_range.at(wrap.result), lane.axis});
    }
  }
  return masks;
}

/// Adds a mask of one axis to a load that is being copied.
void add_mask(RegionCopier& out, Operation& load, const LaneMask& lane) {
  const Extents shape = out.type(load.in[0]).shape;
  Extents column(shape.size(), 1);
  column[lane.axis] = shape[lane.axis];
  const auto truths = [](const Extents& extents) { return Type::tile(DType::Bool, extents); };
  const ValueId reshaped = out.emit({.code = Code::Reshape, .in = {lane.mask}}, truths(column));
  const ValueId mask = out.emit({.code = Code::Broadcast, .in = {reshaped}}, truths(shape));
  if (load.in.size() == 1) {
    load.in.push_back(mask);
    return;
  }
  load.in[1] = out.emit({.code = Code::Map, .function = Function::And, .in = {load.in[1], mask}},
                        truths(shape));
}

/// Whether a loop of the body multiplies matrices.
bool multiplies_in_a_loop(const Kernel& kernel) {
  bool found = false;
  for (const OpId id : kernel.body.ops) {
    if (kernel.ops[id].code != Code::For) continue;
    for_each_op(kernel, kernel.ops[id].regions[0],
                [&](OpId inner) { found |= kernel.ops[inner].code == Code::Dot; });
  }
  return found;
}

/// Whether an operation, or one in its regions, uses one of the values.
bool uses_any(const Kernel& kernel, OpId id, const std::set<ValueId>& values) {
  const Operation& op = kernel.ops[id];
  if (std::any_of(op.in.begin(), op.in.end(), [&](ValueId in) { return values.contains(in); }))
    return true;
  return std::any_of(op.regions.begin(), op.regions.end(), [&](const Region& region) {
    return std::any_of(region.ops.begin(), region.ops.end(),
                       [&](OpId inner) { return uses_any(kernel, inner, values); });
  });
}

}  // namespace

Kernel version_indices(const Kernel& kernel, WrappedElements wrapped_elements) {
  const std::vector<Wrap> wraps = find_wraps(kernel, wrapped_elements);
  std::vector<ValueId> counts;  // parameters that are to be at least 0
  for (const ValueId param : kernel.params()) {
    const Type& type = kernel.type(param);
    if (type.is_scalar() && type.is_number() && type.dtype == DType::I32) counts.push_back(param);
  }
  if (wraps.empty() && (counts.empty() || !multiplies_in_a_loop(kernel))) return kernel;

  // The conditions, after the last wrap.
  std::map<ValueId, ValueId> wrapped;  // by result, in the new kernel: the number without wrapping
  std::set<ValueId> quotients;
  std::optional<ValueId> condition;
  std::map<ValueId, ValueId> clamped;   // by parameter, in the new kernel: max(parameter, 0)
  std::map<ValueId, ValueId> in_range;  // by result of a remainder: whether nothing wraps
  LaneMasks masks;
  std::size_t left = wraps.size();
  const auto require = [&](Rewrite& out, ValueId holds) {
    condition = condition ? out.map(Function::And, {*condition, holds}) : holds;
  };
  Kernel result = Rewrite::run(kernel, [&](Rewrite& out, const Operation& op) {
    if (clamped.empty()) {
      for (const ValueId param : counts) {
        const ValueId zero = out.constant(kernel.type(param), {});
        clamped[out.of(param)] = out.map(Function::Max, {out.of(param), zero});
        require(out, out.map(Function::GreaterEqual, {out.of(param), zero}));
      }
    }
    out.copy(op);
    if (op.code == Code::Load) {
      auto found = masks_of(wraps, in_range, op.out[0]);
      if (!found.empty()) masks[out.of(op.out[0])] = std::move(found);
    }
    const auto wrap = std::find_if(wraps.begin(), wraps.end(), [&](const Wrap& w) {
      return op.out.size() == 1 && w.result == op.out[0];
    });
    if (wrap == wraps.end()) return;
    wrapped[out.of(op.out[0])] = out.of(op.in[0]);
    if (op.function == Function::Div) quotients.insert(out.of(op.out[0]));
    if (wrap->loads) in_range[op.out[0]] = out.map(Function::Less, out.of(op.in));
    if (--left > 0) return;
    const ValueId zero = out.index(0);
    for (const Wrap& w : wraps) {
      require(out, out.map(Function::GreaterEqual, {w.least.emit(out), zero}));
      if (!w.loads) require(out, out.map(Function::GreaterEqual, {w.gap.emit(out), zero}));
    }
  });

  // What depends on a wrap, and everything after the condition, goes into both versions.
  std::vector<OpId> shared, versioned;
  std::set<ValueId> dependent;
  for (const auto& [value, number] : wrapped) dependent.insert(value);
  const std::set<ValueId> results = dependent;
  bool after = false;
  for (const OpId id : result.body.ops) {
    const Operation& op = result.ops[id];
    const bool is_wrap = op.out.size() == 1 && results.contains(op.out[0]);
    if (after || is_wrap || uses_any(result, id, dependent)) {
      versioned.push_back(id);
      dependent.insert(op.out.begin(), op.out.end());
    } else {
      shared.push_back(id);
    }
    if (!op.out.empty() && op.out[0] == *condition) after = true;
  }
  const auto append = [&](Operation op) {
    result.ops.push_back(std::move(op));
    return static_cast<OpId>(result.ops.size() - 1);
  };
  std::vector<OpId> plain_ops;
  std::map<ValueId, ValueId> plain = clamped;
  for (const auto& [value, number] : wrapped) {
    plain[value] = number;
    if (!quotients.contains(value)) continue;
    result.values.push_back({result.type(value), {}});
    plain[value] = static_cast<ValueId>(result.values.size() - 1);
    plain_ops.push_back(append({.code = Code::Const, .out = {plain[value]}}));
  }
  std::vector<OpId> kept;
  for (const OpId id : versioned) {
    const Operation& op = result.ops[id];
    if (op.out.size() != 1 || !results.contains(op.out[0])) kept.push_back(id);
  }
  RegionCopier copier(result, plain, [&](RegionCopier& out, ValueId original, Operation& load) {
    if (load.code != Code::Load || !masks.contains(original)) return;
    for (const LaneMask& mask : masks.at(original)) add_mask(out, load, mask);
  });
  const std::vector<OpId> copies = copier.copy(kept);
  plain_ops.insert(plain_ops.end(), copies.begin(), copies.end());
  plain_ops.push_back(append({.code = Code::Yield}));
  versioned.push_back(append({.code = Code::Yield}));
  Operation branch{.code = Code::If, .in = {*condition}};
  branch.regions.push_back({.ops = std::move(plain_ops)});
  branch.regions.push_back({.ops = std::move(versioned)});
  shared.push_back(append(std::move(branch)));
  result.body.ops = std::move(shared);
  return result;
}

}  // namespace tessera::tile
