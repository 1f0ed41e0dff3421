#include "tessera/tile/gpu/maps.h"

#include "tessera/tile/argument.h"

namespace tessera::tile::gpu {

using runtime::cuda::TensorMap;

namespace {

/// Where the view lies; its box is left open.
std::optional<TensorMap> map_of(const Planned& planned, ValueId view) {
  const std::vector<ValueId>& params = planned.kernel.params();
  TensorMap map;
  const auto made_by = [&](ValueId id, Code code) {
    const Operation* op = planned.maker(id);
    return op != nullptr && op->code == code ? op : nullptr;
  };
  if (const Operation* made = made_by(view, Code::View)) {
    // All that is open is its base.
    if (made->in.size() != 1) return {};
    map.extents = planned.type(view).shape;
    map.strides = planned.type(view).strides;
    view = made->in[0];
    if (const Operation* further = made_by(view, Code::Offset)) {
      const Operation* by = made_by(further->in[1], Code::Const);
      if (by == nullptr) return {};
      map.offset = by->literal.integer;
      view = further->in[0];
    }
    if (const Operation* base = made_by(view, Code::Base)) view = base->in[0];
  }
  const auto param = std::find(params.begin(), params.end(), view);
  if (param == params.end()) return {};
  map.word = word_positions(planned.kernel)[static_cast<std::size_t>(param - params.begin())];
  return map;
}

}  // namespace

Decided<std::vector<TensorMap>> maps_of(const Planned& planned, const Ahead& ahead) {
  std::vector<TensorMap> maps;
  for (const Ring& ring : ahead.rings) {
    const Operation& load = planned.kernel.ops[ring.load];
    std::optional<TensorMap> map = map_of(planned, load.in[0]);
    if (!map) return No{"a view is neither an argument nor made of one with all else known"};
    map->column = static_cast<int>(ring.column);
    map->width = ring.panels.width;
    map->box = planned.type(load.out[0]).shape;
    if (ring.panels.rows * ring.panels.columns != planned.type(load.out[0]).count())
      return No{"a tile is no power of two: boxes would reach further"};
    map->box[ring.column] = ring.panels.panel_width() / ring.panels.width;
    if (!is_valid(*map)) return No{"a tile is no box that the GPU copies"};
    // What is known now of a view is no surprise at launch: a base of 0 is aligned.
    const std::vector<std::uint64_t> words(static_cast<std::size_t>(map->word) + 1);
    if (!map->extents.empty() && !shape_of(*map, words))
      return No{"a view is not at multiples of 16 bytes"};
    maps.push_back(*std::move(map));
  }
  if (maps.size() > runtime::cuda::kMostMaps) return No{"there are too many operands"};
  return maps;
}

}  // namespace tessera::tile::gpu
