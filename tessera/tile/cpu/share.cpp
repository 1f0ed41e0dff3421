#include "tessera/tile/cpu/share.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace tessera::tile::cpu {
namespace {

bool is_effect(const Root& root) {
  return root.kind == Root::Kind::Effect;
}

bool is_inside(const Operation& store, std::size_t axis) {
  return axis < store.ints.size() && store.ints[axis] == 1;
}

bool is_all_inside(const Operation& store) {
  for (std::size_t axis = 0; axis + 2 < store.in.size(); ++axis)
    if (!is_inside(store, axis)) return false;
  return true;
}

}  // namespace

/// Parameters that are loaded from; false where one is not known.
bool Sharing::collect_loads(ValueId value, std::set<ValueId>& seen,
                            std::set<ValueId>& params) const {
  if (!kernel_.type(value).is_tile() || !seen.insert(value).second) return true;
  const auto definition = placement_.definition[value];
  if (!definition) return true;
  const Operation& op = kernel_.ops[*definition];
  if (!is_inline(kernel_, op)) return true;
  if (reads_memory(op.code)) {
    const auto param = parameter_of(kernel_, placement_.definition, op.in[0]);
    if (!param) return false;
    params.insert(*param);
  }
  return std::all_of(op.in.begin(), op.in.end(), [&](ValueId in) {
    return placement_.kept[in] || collect_loads(in, seen, params);
  });
}

std::optional<std::set<ValueId>> Sharing::loads_of(const Root& root) const {
  std::set<ValueId> seen, params;
  if (root.kind == Root::Kind::Write)
    return collect_loads(root.value, seen, params) ? std::optional(params) : std::nullopt;
  for (const ValueId in : kernel_.ops[root.op].in)
    if (!placement_.kept[in] && !collect_loads(in, seen, params)) return std::nullopt;
  return params;
}

/// Whether two stores to one view are disjoint: along one axis, one starts after the end of the
/// other.
bool Sharing::is_apart(const Operation& a, const Operation& b) const {
  const Extents& shape = kernel_.type(a.in.back()).shape;
  if (a.in[0] != b.in[0] || shape != kernel_.type(b.in.back()).shape) return false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const auto distance = forms_.of(a.in[axis + 1]).plus(forms_.of(b.in[axis + 1]), -1);
    if (distance && distance->terms.empty() && std::abs(distance->base) >= shape[axis]) return true;
  }
  return false;
}

bool Sharing::is_clipped_alike(const Operation& a, const Operation& b) const {
  const Extents &left = kernel_.type(a.in[0]).shape, &right = kernel_.type(b.in[0]).shape;
  if (left.size() != right.size()) return false;
  for (std::size_t axis = 0; axis < left.size(); ++axis) {
    if (is_inside(a, axis) && is_inside(b, axis)) continue;
    if (is_inside(a, axis) != is_inside(b, axis) || a.in[axis + 1] != b.in[axis + 1]) return false;
    if (a.in[0] != b.in[0] && (left[axis] != right[axis] || left[axis] == kDynamic)) return false;
  }
  return true;
}

bool Sharing::may_join(const Nest& nest, const Root& root) const {
  const bool stores = is_effect(root);
  if (!stores && std::none_of(nest.roots.begin(), nest.roots.end(), is_effect)) return true;
  if (!shares_) return false;
  const auto stored = [&](const Root& r) {
    return parameter_of(kernel_, placement_.definition, kernel_.ops[r.op].in[0]);
  };
  const auto loads = loads_of(root);
  if (!loads) return false;
  return std::all_of(nest.roots.begin(), nest.roots.end(), [&](const Root& other) {
    for (const Root* effect : {&root, &other})
      if (is_effect(*effect) && (kernel_.ops[effect->op].code != Code::Vstore || !stored(*effect)))
        return false;
    if (is_effect(other) && loads->contains(*stored(other))) return false;
    if (stores) {
      const auto others = loads_of(other);
      if (!others || others->contains(*stored(root))) return false;
    }
    if (!stores || !is_effect(other))
      return (!stores || is_all_inside(kernel_.ops[root.op])) &&
             (!is_effect(other) || is_all_inside(kernel_.ops[other.op]));
    const Operation &a = kernel_.ops[other.op], &b = kernel_.ops[root.op];
    if (!is_clipped_alike(a, b)) return false;
    return *stored(other) != *stored(root) || is_apart(a, b);
  });
}

}  // namespace tessera::tile::cpu
