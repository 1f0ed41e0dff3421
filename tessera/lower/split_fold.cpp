#include "tessera/lower/split_fold.h"

#include <algorithm>

#include "tessera/expr/transform.h"
#include "tessera/expr/walk.h"
#include "tessera/lower/lower.h"

namespace tessera::lower {

using tile::Stage;

namespace {

/// The reduction with other bounds, of other elements.
Scalar fold_like(const Fold& fold, std::vector<Bound> bounds, const Scalar& lift) {
  return Scalar(Node(node::Component{
      std::make_shared<const Fold>(Fold{std::move(bounds), fold.init, {lift}, fold.combine}), 0}));
}

/// Partial results: positions along the axis are those of a part.
Stage partial_results(const Stage& stage, const FoldSplit& split) {
  const Axis part{"part", Dim(split.parts)};
  Transform inner;
  inner.index = [&](const std::string& axis) -> std::optional<Scalar> {
    if (axis != split.axis) return std::nullopt;
    return Scalar(part) * Scalar(split.length) + index_of(split.axis);
  };
  inner.read = [&](const node::Read& read) -> std::optional<Scalar> {
    const auto is_along = [&](const Scalar& index) { return axes_in(index).contains(split.axis); };
    if (!split.goes_past || read.otherwise != nullptr || std::ranges::none_of(read.at, is_along))
      return std::nullopt;
    node::Read bounded = read;
    bounded.otherwise = std::make_shared<const Scalar>(0.0);
    return Scalar(Node{std::move(bounded)});
  };
  std::vector<Bound> bounds = split.fold->bounds;
  for (Bound& bound : bounds)
    if (bound.axis == split.axis) bound.extent = Scalar(split.length);
  Stage made = stage;
  made.output.name += ".parts";
  made.output.dtype = DType::F32;
  made.output.axes.insert(made.output.axes.begin(), MergedAxis{{part}});
  made.output.value = fold_like(*split.fold, std::move(bounds), inner(split.fold->lift[0]));
  return made;
}

/// All parts of an element, combined.
Scalar combined(const Stage& stage, const FoldSplit& split, const Operand& parts) {
  std::vector<Scalar> at = {Scalar(std::int64_t{0})};
  for (const MergedAxis& merged : stage.output.axes) at.push_back(Scalar(merged));
  if (!split.unrolled) {
    at[0] = index_of("part");
    return fold_like(*split.fold, {Bound{"part", Scalar(split.parts)}}, parts(at));
  }
  Scalar total = parts(at);
  for (std::int64_t i = 1; i < split.parts; ++i) {
    at[0] = Scalar(i);
    total = total + parts(at);
  }
  return total;
}

}  // namespace

tile::Stages split_fold(const Stage& stage, const FoldSplit& split) {
  Stage partial = partial_results(stage, split);
  Operand parts{partial.name(), DType::F32, {Dim(split.parts)}};
  for (const MergedAxis& merged : stage.output.axes) parts.shape.push_back(Dim(merged));
  const Scalar total = combined(stage, split, parts);
  Stage whole = stage;
  whole.operands.push_back(parts);
  Transform of_parts;
  of_parts.component = [&](const node::Component& component) {
    return component.fold == split.fold ? std::optional(total) : std::nullopt;
  };
  whole.output.value = of_parts(stage.output.value);
  tile::Stages stages = {std::move(partial), std::move(whole)};
  for (Stage& one : stages) erase_unread_operands(one);
  return stages;
}

}  // namespace tessera::lower
