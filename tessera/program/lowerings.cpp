#include "tessera/program/lowerings.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tessera/expr/function.h"
#include "tessera/expr/text.h"
#include "tessera/expr/walk.h"
#include "tessera/support/digest.h"
#include "tessera/tile/fingerprint.h"

namespace tessera::program {
namespace {

/// Estimated cost of a function, in additions.
double cost_of(Fn fn) {
  return info_of(fn).is_transcendental ? 12 : 1;
}

/// Operations of a stage: those of an element, for every element, and within folds for every term.
double operations_of(const tile::Stage& stage) {
  const auto number = [&](const Scalar& size) {
    return static_cast<double>(tile::number_of_size(size, stage.sizes).value_or(1));
  };
  double total = 0;
  std::set<const void*> seen;
  const std::function<void(const Scalar&, double)> walk = [&](const Scalar& scalar, double times) {
    if (!seen.insert(shared_id(scalar)).second) return;
    if (const auto* apply = std::get_if<node::Apply>(&scalar.node()))
      total += times * cost_of(apply->fn);
    else if (std::holds_alternative<node::Read>(scalar.node()))
      total += times;
    const auto* component = std::get_if<node::Component>(&scalar.node());
    double inner = times;
    if (component != nullptr)
      for (const Bound& bound : component->fold->bounds) inner *= number(bound.extent);
    // Positions are reckoned once per row, not per element.
    if (std::holds_alternative<node::Read>(scalar.node())) {
      const auto& read = std::get<node::Read>(scalar.node());
      if (read.otherwise != nullptr) walk(*read.otherwise, inner);
      return;
    }
    for_each_part(scalar, [&](const Scalar& part) { walk(part, inner); });
  };
  double elements = 1;
  for (const Dim& dim : stage.output.shape())
    elements *= static_cast<double>(dim.constant().value_or(1));
  walk(stage.output.value, elements);
  return total;
}

}  // namespace

void Lowerings::lower_by_book(const CanonicalGroup& group, Lowering& lowering) const {
  if (schedules_ != nullptr)
    if (const auto it = schedules_->entries.find(lowering.key); it != schedules_->entries.end()) {
      lower::GroupOptions options = options_;
      options.schedule = it->second.schedule;
      lowering.made = lower::lower_group(group.group, machine_, options);
      lowering.is_scheduled = static_cast<bool>(lowering.made);
      if (lowering.is_scheduled) return;
      lowering.illegal = lowering.made.error();
    }
  lowering.made = lower::lower_group(group.group, machine_, options_);
}

std::shared_ptr<const Lowering> Lowerings::of(const CanonicalGroup& group) {
  if (const auto it = made_.find(group.key); it != made_.end()) return it->second;
  auto lowering = std::make_shared<Lowering>(Lowering{
      .key = digest(fmt::format("exact {} products {}\n{}", options_.exact,
                                options_.tf32 ? "tf32" : to_string(options_.contraction_dtype),
                                group.key)),
      .code = {},
      .made = lower::GroupCode{},
      .group = std::make_shared<const CanonicalGroup>(group)});
  lower_by_book(group, *lowering);
  if (lowering->made) {
    std::string all;
    for (const lower::Lowered& lowered : lowering->made->kernels) {
      lowering->fingerprints.push_back(tile::fingerprint(lowered.kernel));
      all += fmt::format("{} {} {} {} {}:", lowered.grid[0], lowered.grid[1], lowered.grid[2],
                         fmt::join(lowered.offsets, ","), lowering->fingerprints.back().size());
      all += lowering->fingerprints.back();
      lowering->launches += std::ranges::count(lowered.grid, 0) == 0 ? 1 : 0;
    }
    for (const lower::Packing& packing : lowering->made->packings)
      lowering->packings.push_back(to_text(packing.definition));
    lowering->code = digest(all);
  }
  for (const tile::Stage& stage : group.group.stages) lowering->operations += operations_of(stage);
  return made_.emplace(group.key, std::move(lowering)).first->second;
}

}  // namespace tessera::program
