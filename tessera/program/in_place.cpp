#include "tessera/program/in_place.h"

#include <algorithm>

namespace tessera::program {

ReusableValues::ReusableValues(const Graph& graph, const Decisions& decisions)
    : graph_(graph), decisions_(decisions), uses_(graph.value_count()) {
  for (const GraphNode& node : graph.nodes())
    for (const ValueId input : graph.inputs(node))
      if (input.present()) ++uses_[input.index];
  for (const ValueId output : graph.outputs()) ++uses_[output.index];
}

bool ReusableValues::contains(ValueId value) const {
  while (true) {
    const auto producer = decisions_.producers[value.index];
    if (!producer || uses_[value.index] != 1) return false;
    switch (decisions_.grouping.kinds[*producer]) {
      case NodeKind::View:
      case NodeKind::Transpose: value = decisions_.grouping.sources[*producer]; break;
      case NodeKind::Move: return false;  // may be a piece of what others read
      default: return true;
    }
  }
}

Expected<std::optional<lower::Group>> box_update_group(const tile::Stage& stage,
                                                       const BoxUpdate& update,
                                                       const BoxUpdateLayout& layout) {
  const auto operand = std::ranges::find(stage.operands, update.update, &Operand::name);
  const Operand from{"from", layout.update_dtype, operand->shape};
  const Shape whole = stage.output.shape();
  std::vector<Axis> box = axes("i", static_cast<int>(whole.size()));
  std::vector<Scalar> at;
  std::vector<std::int64_t> start;
  for (std::size_t i = 0; i < box.size(); ++i) {
    const std::int64_t size = whole[i].constant().value_or(0);
    const std::int64_t begin = std::max<std::int64_t>(0, update.start[i]);
    const std::int64_t end = std::min(size, update.start[i] + from.shape[i].constant().value_or(0));
    if (begin >= end) return std::optional<lower::Group>();
    box[i].extent = Dim(end - begin);
    at.push_back(Scalar(box[i]) + Scalar(begin - update.start[i]));
    start.push_back(begin);
  }
  lower::Group group{.stages = {{.operands = {from},
                                 .output = {.name = "to",
                                            .dtype = layout.whole_dtype,
                                            .axes = each(box),
                                            .value = from(at)},
                                 .sizes = {}}},
                     .results = {"to"},
                     .weights = {},
                     .box = lower::OutputBox{}};
  for (const int axis : layout.whole) {
    const auto i = static_cast<std::size_t>(axis);
    group.box->whole.push_back(whole[i].constant().value_or(0));
    group.box->start.push_back(start[i]);
  }
  TESSERA_TRY(group.stages, lower::reordered(std::move(group.stages), "from", layout.update));
  TESSERA_TRY(group.stages, lower::reordered(std::move(group.stages), "to", layout.whole));
  return std::optional(std::move(group));
}

}  // namespace tessera::program
