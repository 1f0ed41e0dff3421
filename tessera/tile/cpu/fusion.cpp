#include "tessera/tile/cpu/fusion.h"

#include <algorithm>

namespace tessera::tile::cpu {

bool Fusion::has_effects(const Nest& nest) {
  return std::any_of(nest.roots.begin(), nest.roots.end(),
                     [](const Root& root) { return root.kind == Root::Kind::Effect; });
}

bool Fusion::is_pending(ValueId id, const Nest& nest) const {
  return std::any_of(nest.roots.begin(), nest.roots.end(), [&](const Root& root) {
    if (root.kind != Root::Kind::Reduce) return false;
    const std::vector<ValueId>& out = kernel().ops[root.op].out;
    return std::find(out.begin(), out.end(), id) != out.end();
  });
}

bool Fusion::may_join(const Root& root, const Extents& space, std::optional<int> fold,
                      const Nest& nest) const {
  if (nest.roots.empty() || nest.space != space) return false;
  if (fold && nest.fold && *fold != *nest.fold) return false;
  if (fold && kernel().ops[root.op].code == Code::Scan) return false;
  if (!sharing_.may_join(nest, root)) return false;
  std::vector<ValueId> read;
  if (root.kind == Root::Kind::Write) {
    read = {root.value};
  } else {
    read = kernel().ops[root.op].in;
  }
  ReadPositions seen;
  return std::all_of(read.begin(), read.end(), [&](ValueId value) {
    return joins(value, identity_map(space.size()), nest, root.kind == Root::Kind::Write, seen);
  });
}

bool Fusion::joins(ValueId value, const IndexMap& map, const Nest& nest, bool is_written,
                   ReadPositions& seen) const {
  if (!is_written && !seen.emplace(value, map).second) return true;
  for (const Root& root : nest.roots) {
    if (root.kind == Root::Kind::Write) {
      if (root.value == value) return map == identity_map(map.size());
      if (scheduled_.buffer_of[value] == root.buffer && !is_written) return false;
    } else {
      const std::vector<ValueId>& out = kernel().ops[root.op].out;
      if (std::find(out.begin(), out.end(), value) != out.end()) return false;
    }
  }
  if (!placement_.definition[value]) return true;
  const bool ends = placement_.kept[value] && !is_written;
  const Operation& op = kernel().ops[*placement_.definition[value]];
  if (ends || !is_tile(value) || !is_inline(kernel(), op)) {
    return !is_pending(value, nest);
  }
  if (const auto moved = operand_map(kernel(), op, map))
    return joins(op.in[0], *moved, nest, false, seen);
  // A gather reads its operand at any position.
  if (op.code == Code::Gather && !joins(op.in[0], anywhere(), nest, false, seen)) return false;
  return std::all_of(op.in.begin(), op.in.end(), [&](ValueId in) {
    return is_tile(in) ? joins(in, map, nest, false, seen) : !is_pending(in, nest);
  });
}

}  // namespace tessera::tile::cpu
