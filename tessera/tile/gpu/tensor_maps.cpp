#include "tessera/tile/gpu/tensor_maps.h"

#include "tessera/tile/argument.h"

namespace tessera::tile::gpu {

using runtime::cuda::TensorMap;

namespace {

constexpr std::int64_t kColumnsAtOnce = 16;

bool all_wgmma(const PlannedKernel& planned) {
  bool all = true;
  for_each_op(planned.kernel, planned.kernel.body, [&](OpId id) {
    const Operation& op = planned.kernel.ops[id];
    all = all && (op.code != Code::Dot || planned.plan.uses_wgmma(op));
  });
  return all;
}

/// Tensor map of a view, without its box.
std::optional<TensorMap> map_of(const PlannedKernel& planned, ValueId view) {
  const std::vector<ValueId>& params = planned.kernel.params();
  TensorMap map;
  const auto made_by = [&](ValueId id, Code code) {
    const Operation* op = planned.defining_op(id);
    return op != nullptr && op->code == code ? op : nullptr;
  };
  if (const Operation* made = made_by(view, Code::View)) {
    // Only its base is dynamic.
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

Decision<std::vector<TensorMap>> tensor_maps_of(const PlannedKernel& planned,
                                                const LoopPipeline& pipeline) {
  std::vector<TensorMap> maps;
  for (const StagedOperand& staged : pipeline.operands) {
    const Operation& load = planned.kernel.ops[staged.load];
    std::optional<TensorMap> map = map_of(planned, load.in[0]);
    if (!map)
      return DeclineReason{
          "a view is neither a parameter nor made of one with static extents and strides"};
    map->column = static_cast<int>(staged.column);
    map->width = staged.panels.width;
    map->box = planned.type(load.out[0]).shape;
    const Extents& tile = planned.type(load.out[0]).shape;
    const std::int64_t columns = tile[staged.column];
    // A panel may go past the end of the tile, if no matmul reads it there: wgmma reads 16 columns
    // at a time.
    const bool reads_beyond =
        columns != staged.panels.columns && (columns % kColumnsAtOnce != 0 || !all_wgmma(planned));
    if (staged.panels.rows * columns != planned.type(load.out[0]).count() || reads_beyond)
      return DeclineReason{"the extents of a tile are not powers of two"};
    map->box[staged.column] = staged.panels.panel_width() / staged.panels.width;
    if (!is_valid(*map)) return DeclineReason{"a tile is not a box that TMA supports"};
    // A map of a static view is checked at compile time, with a base of 0, which is aligned.
    const std::vector<std::uint64_t> words(static_cast<std::size_t>(map->word) + 1);
    if (!map->extents.empty() && !shape_of(*map, words))
      return DeclineReason{"a view is not aligned to 16 bytes"};
    maps.push_back(*std::move(map));
  }
  if (maps.size() > runtime::cuda::kMostMaps) return DeclineReason{"there are too many operands"};
  return maps;
}

}  // namespace tessera::tile::gpu
