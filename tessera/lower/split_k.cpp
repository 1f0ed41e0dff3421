#include <algorithm>
#include <set>

#include "tessera/expr/transform.h"
#include "tessera/expr/walk.h"
#include "tessera/lower/contraction.h"

namespace tessera::lower {

using tile::Stage;

tile::Stages split_k(const Contraction& c, const SplitK& cut) {
  const Stage& stage = *c.stage;
  const std::int64_t parts = cut.parts;
  const Axis part{"part", Dim(parts)};
  const std::string along = cut.axis;
  const std::int64_t rest = cut.length;
  const bool goes_past = rest * parts > std::ranges::find(c.sums, along, &IndexAxis::name)->extent;
  Transform inner;
  inner.index = [&](const std::string& axis) -> std::optional<Scalar> {
    if (axis != along) return std::nullopt;
    return Scalar(part) * Scalar(rest) + index_of(along);
  };
  inner.read = [&](const node::Read& read) -> std::optional<Scalar> {
    const auto is_along = [&](const Scalar& index) { return axes_in(index).contains(along); };
    if (!goes_past || read.otherwise != nullptr || std::ranges::none_of(read.at, is_along))
      return std::nullopt;
    node::Read bounded = read;
    bounded.otherwise = std::make_shared<const Scalar>(0.0);
    return Scalar(Node{std::move(bounded)});
  };
  std::vector<Bound> bounds = c.fold->bounds;
  for (Bound& bound : bounds)
    if (bound.axis == along) bound.extent = Scalar(rest);
  Stage sums = stage;
  sums.output.name += ".parts";
  sums.output.dtype = DType::F32;
  sums.output.axes.insert(sums.output.axes.begin(), MergedAxis{{part}});
  sums.output.value = sum(bounds, inner(c.fold->lift[0]));

  Operand read{sums.name(), DType::F32, {Dim(parts)}};
  std::vector<Scalar> at = {Scalar(std::int64_t{0})};
  for (const MergedAxis& merged : stage.output.axes) {
    read.shape.push_back(Dim(merged));
    at.push_back(Scalar(merged));
  }
  // Written out, so that all parts are read at once.
  Scalar total = read(at);
  for (std::int64_t i = 1; i < parts; ++i) {
    at[0] = Scalar(i);
    total = total + read(at);
  }
  Stage whole = stage;
  whole.operands.push_back(read);
  Transform of_parts;
  of_parts.component = [&](const node::Component& component) {
    return component.fold == c.fold ? std::optional(total) : std::nullopt;
  };
  whole.output.value = of_parts(stage.output.value);
  tile::Stages stages = {std::move(sums), std::move(whole)};
  for (Stage& one : stages) {
    std::set<std::string> names;
    for_each_read(one.output.value, [&](const node::Read& r) { names.insert(r.operand); });
    std::erase_if(one.operands, [&](const Operand& o) { return !names.contains(o.name); });
  }
  return stages;
}

}  // namespace tessera::lower
