#include <algorithm>
#include <utility>

#include "tessera/tile/passes/fold.h"

namespace tessera::tile {
namespace {

using Axes = std::vector<std::int64_t>;

std::int64_t at(const Axes& list, std::int64_t i) {
  return list[static_cast<std::size_t>(i)];
}

bool all_zero(const Axes& list) {
  return std::all_of(list.begin(), list.end(), [](std::int64_t x) { return x == 0; });
}

/// Whether a permutation only moves axes of extent 1.
bool keeps_order(const Axes& order, const Extents& shape) {
  std::int64_t last = -1;
  for (const std::int64_t axis : order) {
    if (at(shape, axis) == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

std::optional<ValueId> fold_permute(Rewrite& out, const Operation& op, const Operation* inner,
                                    const Type& type) {
  const ValueId x = op.in[0];
  if (keeps_order(op.ints, out.type(x).shape))
    return make(out, {.code = Code::Reshape, .in = {x}}, type);
  if (inner == nullptr) return {};
  if (inner->code == Code::Permute) {
    Axes order;
    for (const std::int64_t axis : op.ints) order.push_back(at(inner->ints, axis));
    return make(out, {.code = Code::Permute, .in = inner->in, .ints = order}, type);
  }
  if (inner->code == Code::Broadcast) {
    const ValueId small = inner->in[0];
    Extents shape;
    for (const std::int64_t axis : op.ints) shape.push_back(at(out.type(small).shape, axis));
    Type moved = out.type(small).shaped(shape);
    const ValueId first =
        make(out, {.code = Code::Permute, .in = {small}, .ints = op.ints}, std::move(moved));
    return make(out, {.code = Code::Broadcast, .in = {first}}, type);
  }
  return {};
}

std::optional<ValueId> fold_slice(Rewrite& out, const Operation& op, const Operation* inner,
                                  const Type& type) {
  if (inner == nullptr) return {};
  if (inner->code == Code::Slice) {
    Axes from = op.ints;
    for (std::size_t i = 0; i < from.size(); ++i) from[i] += inner->ints[i];
    return make(out, {.code = Code::Slice, .in = inner->in, .ints = from}, type);
  }
  if (inner->code == Code::Concat) {
    const auto axis = static_cast<std::size_t>(inner->ints[0]);
    Axes from = op.ints;
    for (const ValueId part : inner->in) {
      const std::int64_t extent = out.type(part).shape[axis];
      if (from[axis] < extent) {
        if (from[axis] + type.shape[axis] > extent) return {};  // spans more than one part
        return make(out, {.code = Code::Slice, .in = {part}, .ints = from}, type);
      }
      from[axis] -= extent;
    }
  }
  return {};
}

}  // namespace

std::optional<ValueId> fold_shape(Rewrite& out, const Operation& op, const Type& type) {
  switch (op.code) {
    case Code::Broadcast:
    case Code::Reshape:
    case Code::Permute:
    case Code::Slice: break;
    case Code::Concat:
      if (op.in.size() == 1) return op.in[0];
      return {};
    default: return {};
  }
  const ValueId x = op.in[0];
  const bool moves = op.code == Code::Permute ? !std::is_sorted(op.ints.begin(), op.ints.end())
                                              : !all_zero(op.ints);
  if (out.type(x) == type && !moves) return x;
  if (const auto literal = out.literal(x)) return out.constant(type, *literal);
  // A copy, because emitting below reallocates the operations.
  const Operation* found = out.definition(x);
  const std::optional<Operation> copy =
      found != nullptr ? std::optional<Operation>(*found) : std::nullopt;
  const Operation* inner = copy ? &*copy : nullptr;
  // A tile of equal elements is invariant under data movement.
  const bool splat = inner != nullptr && !inner->in.empty() &&
                     (inner->code == Code::Broadcast || inner->code == Code::Reshape) &&
                     out.type(inner->in[0]).is_scalar();
  if (splat && type.is_tile()) {
    const bool one = type.count() == 1;
    return make(out, {.code = one ? Code::Reshape : Code::Broadcast, .in = inner->in}, type);
  }
  switch (op.code) {
    case Code::Broadcast:
      if (out.type(x).count() == type.count())
        return make(out, {.code = Code::Reshape, .in = {x}}, type);
      if (inner != nullptr && inner->code == Code::Broadcast)
        return make(out, {.code = Code::Broadcast, .in = inner->in}, type);
      return {};
    case Code::Reshape:
      if (inner == nullptr) return {};
      if (inner->code == Code::Reshape)
        return make(out, {.code = Code::Reshape, .in = inner->in}, type);
      if (type.is_scalar() && inner->code == Code::Broadcast) {
        const Type one = out.type(inner->in[0]);
        if (one.count() == 1) return make(out, {.code = Code::Reshape, .in = inner->in}, type);
      }
      return {};
    case Code::Permute: return fold_permute(out, op, inner, type);
    default: return fold_slice(out, op, inner, type);
  }
}

}  // namespace tessera::tile
