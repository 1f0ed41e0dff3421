#include <algorithm>
#include <map>

#include "tessera/codegen/llvm/emitter.h"
#include "tessera/codegen/llvm/row.h"

namespace tessera::codegen {

using tile::Code;
using tile::Operation;
using tile::OpId;
using tile::ValueId;
using tile::cpu::Nest;
using tile::cpu::Root;

/// Loops over the outer axes of a nest around its rows. A nest that stores into a view goes no
/// further than the view does.
void Emitter::emit_nest(const Nest& nest, std::int64_t first) {
  const std::size_t rank = nest.space.size();
  std::vector<llvm::Value*> from(rank, index(0)), to;
  for (const std::int64_t extent : nest.space) to.push_back(index(extent));
  // Several stores in one nest all end at the same place.
  const auto store = std::find_if(nest.roots.begin(), nest.roots.end(),
                                  [](const Root& root) { return root.kind == Root::Kind::Effect; });
  const Operation* effect = store == nest.roots.end() ? nullptr : &op(store->op);
  if (effect != nullptr && effect->code == Code::Vstore) {
    const ViewParts& view = views[effect->in[0]];
    for (std::size_t i = 0; i < rank; ++i) {
      if (i < effect->ints.size() && effect->ints[i] == 1) continue;  // known to be inside
      llvm::Value* at = as_index(ir, effect->in[i + 1]);
      const auto clamp = [&](llvm::Value* x) {
        x = greatest_of(ir, x, index(0));
        return least_of(ir, x, index(nest.space[i]));
      };
      from[i] = clamp(ir.CreateNeg(at));
      to[i] = clamp(ir.CreateSub(view.shape[i], at));
    }
  }

  if (first > 0) {
    llvm::Value*& start = from[static_cast<std::size_t>(nest.lane)];
    start = greatest_of(ir, start, index(first));
  }

  // Without vectors along the axis of a fold, the fold's own loop runs through it.
  const bool folds_lanes = nest.fold && *nest.fold == nest.lane;
  const int lane = folds_lanes && nest.width == 1 ? -1 : nest.lane;
  std::vector<llvm::Value*> outer(rank, nullptr);
  const std::function<void(std::size_t)> descend = [&](std::size_t axis) {
    if (axis == rank) {
      Row row(*this, nest, lane, outer);
      row.emit(lane < 0 ? nullptr : from[static_cast<std::size_t>(lane)],
               lane < 0 ? nullptr : to[static_cast<std::size_t>(lane)]);
      return;
    }
    const bool inner =
        static_cast<int>(axis) == lane || (nest.fold && *nest.fold == static_cast<int>(axis));
    if (inner) return descend(axis + 1);
    loop(from[axis], to[axis], 1, [&](llvm::Value* i) {
      outer[axis] = i;
      descend(axis + 1);
    });
  };
  descend(0);
}

llvm::Value* Emitter::only_element(ValueId id) {
  const Nest nest{.space = tile::Extents(type(id).shape.size(), 1)};
  Row row(*this, nest, -1, std::vector<llvm::Value*>(nest.space.size(), index(0)));
  return row.single(id);
}

}  // namespace tessera::codegen
