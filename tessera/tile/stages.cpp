#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tessera/expr/walk.h"
#include "tessera/tile/schedule.h"

namespace tessera::tile {

Expected<Stages> stages_of(const Definition& definition, const std::vector<Shape>& inputs) {
  TESSERA_TRY(const Sizes sizes, solve_sizes(definition, inputs));
  return stages_of(definition, sizes);
}

Expected<Stages> stages_of(const Definition& definition, const Sizes& sizes) {
  Stages stages;
  for (const Output& output : definition.outputs)
    stages.push_back({.operands = definition.inputs, .output = output, .sizes = sizes});
  return stages;
}

Expected<Stages> then(Stages stages, const Definition& definition,
                      const std::vector<tessera::Operand>& inputs) {
  std::vector<Shape> shapes;
  for (const tessera::Operand& operand : definition.inputs) {
    std::optional<Shape> shape;
    for (const tessera::Operand& input : inputs)
      if (input.name == operand.name) shape = input.shape;
    for (const Stage& stage : stages)
      if (stage.name() == operand.name) {
        shape.emplace();
        for (const Dim& dim : stage.output.shape()) shape->push_back(resolved(dim, stage.sizes));
      }
    if (!shape)
      return Diagnostic{.id = "schedule-stage",
                        .message = fmt::format("nothing is called {}", operand.name)};
    shapes.push_back(std::move(*shape));
  }
  TESSERA_TRY(Stages more, stages_of(definition, shapes));
  for (Stage& stage : more) {
    if (std::ranges::any_of(stages, [&](const Stage& s) { return s.name() == stage.name(); }))
      return Diagnostic{.id = "schedule-stage",
                        .message = fmt::format("two stages are called {}", stage.name())};
    stages.push_back(std::move(stage));
  }
  return stages;
}

std::optional<std::int64_t> number_of_size(const Scalar& extent, const Sizes& sizes) {
  if (const auto integer = extent.integer()) return integer;
  if (const auto* size = std::get_if<node::Size>(&extent.node()))
    return resolved(size->dim, sizes).constant();
  return std::nullopt;
}

namespace {

void collect_folds(const Scalar& scalar, std::set<const void*>& seen,
                   std::vector<std::shared_ptr<const Fold>>& folds) {
  if (!seen.insert(shared_id(scalar)).second) return;
  if (const auto* component = std::get_if<node::Component>(&scalar.node())) {
    folds.push_back(component->fold);
    return;
  }
  for_each_part(scalar, [&](const Scalar& part) { collect_folds(part, seen, folds); });
}

}  // namespace

std::shared_ptr<const Fold> main_fold(const Stage& stage) {
  std::set<const void*> seen;
  std::vector<std::shared_ptr<const Fold>> folds;
  collect_folds(stage.output.value, seen, folds);
  if (folds.size() != 1) return nullptr;
  std::set<std::string> names;
  for (const MergedAxis& merged : stage.output.axes)
    for (const tessera::Axis& axis : merged.parts) names.insert(axis.name);
  for (const tessera::Bound& bound : folds[0]->bounds)
    if (!number_of_size(bound.extent, stage.sizes) || !names.insert(bound.axis).second)
      return nullptr;
  return folds[0];
}

std::optional<std::pair<Scalar, Scalar>> product_of(const Fold& fold, Sort sort) {
  if (fold.simple() != Fn::Add || fold.lift[0].sort() != sort) return std::nullopt;
  const auto* product = std::get_if<node::Apply>(&fold.lift[0].node());
  if (product == nullptr || product->fn != Fn::Mul) return std::nullopt;
  if (!is_zero(fold.init[0])) return std::nullopt;
  return std::pair{product->args[0], product->args[1]};
}

std::vector<std::string> loops_of(const Nest& nest, const Scalar& scalar) {
  std::set<std::string> loops;
  for (const std::string& name : axes_in(scalar)) {
    const auto axis = std::ranges::find(nest.axes, name, &Nest::Axis::name);
    if (axis == nest.axes.end())
      loops.insert(name);  // of a fold within
    else
      loops.merge(axes_in(axis->at));
  }
  return {loops.begin(), loops.end()};
}

}  // namespace tessera::tile
