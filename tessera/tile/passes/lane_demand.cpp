#include "tessera/tile/passes/lane_demand.h"

#include <algorithm>
#include <map>

namespace tessera::tile {
namespace {

/// Axis of a reshaped tile that an axis of more than one element becomes; none where the reshape
/// does more than to add and to remove axes of one element.
std::optional<std::size_t> reshaped_axis(const Extents& from, const Extents& to, std::size_t axis) {
  std::size_t j = 0;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1) continue;
    while (j < to.size() && to[j] == 1) ++j;
    if (j == to.size() || to[j] != from[i]) return {};
    if (i == axis) found = j;
    ++j;
  }
  return found;
}

/// Forward dataflow: the axis along which each value depends on the lanes, until nothing changes.
class Lanes {
 public:
  Lanes(const Kernel& kernel, const AffineTiles& tiles, const AffineTile& bound)
      : kernel_(kernel), tiles_(tiles), bound_(bound) {}

  std::optional<std::vector<LaneLoad>> loads(ValueId lanes) {
    axes_[lanes] = 0;
    do {
      changed_ = false;
      region(kernel_.body);
    } while (changed_ && !observed_);
    if (observed_) return {};
    std::vector<LaneLoad> loads;
    for_each_op(kernel_, kernel_.body, [&](OpId id) {
      const Operation& op = kernel_.ops[id];
      if (op.code == Code::Load && axes_.contains(op.out[0]))
        loads.push_back({op.out[0], axes_[op.out[0]]});
    });
    return loads;
  }

 private:
  void region(const Region& region) {
    for (const OpId id : region.ops) visit(kernel_.ops[id]);
  }

  void set(ValueId value, std::size_t axis) {
    const auto [found, is_new] = axes_.emplace(value, axis);
    changed_ |= is_new;
    observed_ |= found->second != axis;
  }
  void carry(ValueId from, ValueId to) {
    if (const auto found = axes_.find(from); found != axes_.end()) set(to, found->second);
  }

  void visit(const Operation& op) {
    if (op.code == Code::For) return loop(op);
    if (op.code == Code::If) return branch(op);
    for (const Region& inner : op.regions) observed_ |= depends(inner);
    for (std::size_t i = 0; i < op.in.size(); ++i) {
      if (const auto found = axes_.find(op.in[i]); found != axes_.end()) use(op, i, found->second);
    }
  }

  /// Whether a region uses a value that depends on the lanes.
  bool depends(const Region& region) const {
    bool found = false;
    for_each_op(kernel_, region, [&](OpId id) {
      for (const ValueId in : kernel_.ops[id].in) found |= axes_.contains(in);
    });
    return found;
  }

  void loop(const Operation& op) {
    const Region& body = op.regions[0];
    for (int i = 0; i < 3; ++i) observed_ |= axes_.contains(op.in[i]);
    const std::vector<ValueId>& next = yields(kernel_, body);
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      carry(op.in[3 + i], body.params[1 + i]);
      carry(next[i], body.params[1 + i]);
      carry(body.params[1 + i], op.out[i]);
    }
    region(body);
  }

  void branch(const Operation& op) {
    observed_ |= axes_.contains(op.in[0]);
    for (const Region& inner : op.regions) {
      region(inner);
      const std::vector<ValueId>& results = yields(kernel_, inner);
      for (std::size_t i = 0; i < op.out.size(); ++i) carry(results[i], op.out[i]);
    }
  }

  /// A use of operand `operand`, which depends on the lanes along `axis`.
  void use(const Operation& op, std::size_t operand, std::size_t axis) {
    switch (op.code) {
      case Code::Map:
      case Code::Cast:
      case Code::Bitcast:
      case Code::Hint:
      case Code::Offset:
      case Code::Load:
      case Code::Broadcast: return set(op.out[0], axis);
      case Code::Reshape: {
        const auto to =
            reshaped_axis(kernel_.type(op.in[0]).shape, kernel_.type(op.out[0]).shape, axis);
        if (!to) break;
        return set(op.out[0], *to);
      }
      case Code::Permute: {
        const auto at = std::find(op.ints.begin(), op.ints.end(), static_cast<std::int64_t>(axis));
        return set(op.out[0], static_cast<std::size_t>(at - op.ints.begin()));
      }
      case Code::Reduce:
      case Code::Scan: {
        const auto along = static_cast<std::size_t>(op.ints[0]);
        if (along == axis) break;
        const bool moves = op.code == Code::Reduce && along < axis;
        for (const ValueId out : op.out) set(out, axis - (moves ? 1 : 0));
        return;
      }
      case Code::Dot:
        if (operand < 2 && axis != operand) break;  // the axis that is summed
        return set(op.out[0], axis);
      case Code::Store:
        if (is_masked(op, axis)) return;
        break;
      case Code::Yield: return;  // of a loop or branch, which carries it on
      default: break;
    }
    observed_ = true;
  }

  /// Whether a store is masked by the bound along the axis.
  bool is_masked(const Operation& store, std::size_t axis) const {
    const auto mask = store.in.size() > 2 ? tiles_.mask(store.in[2]) : std::nullopt;
    return mask && std::any_of(mask->bounds.begin(), mask->bounds.end(), [&](const Bound& b) {
             for (std::size_t i = 0; i < b.gap.strides.size(); ++i) {
               if (b.gap.strides[i] != (i == axis ? bound_.strides[0] : Polynomial{})) return false;
             }
             return b.gap.offset == bound_.offset;
           });
  }

  const Kernel& kernel_;
  const AffineTiles& tiles_;
  const AffineTile& bound_;
  std::map<ValueId, std::size_t> axes_;
  bool changed_ = false, observed_ = false;
};

}  // namespace

std::optional<std::vector<LaneLoad>> loads_of_unobserved(const Kernel& kernel,
                                                         const AffineTiles& tiles, ValueId lanes,
                                                         const AffineTile& bound) {
  const Extents& shape = kernel.type(lanes).shape;
  if (shape.size() != 1 || shape[0] == 1) return {};
  return Lanes(kernel, tiles, bound).loads(lanes);
}

}  // namespace tessera::tile
