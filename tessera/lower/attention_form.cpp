#include "tessera/lower/attention_form.h"

#include <algorithm>
#include <functional>
#include <set>

#include "tessera/expr/walk.h"
#include "tessera/lower/lower.h"
#include "tessera/lower/product.h"

namespace tessera::lower {
namespace {

using tile::Stage;

bool uses(const Scalar& scalar, const std::string& variable) {
  return axes_in(scalar).contains(variable);
}

/// Every index variable of a stage and how far it runs; nothing where that is no number.
std::optional<std::map<std::string, std::int64_t>> variables(const Stage& stage, const Fold* fold) {
  std::map<std::string, std::int64_t> result;
  for (const MergedAxis& merged : stage.output.axes)
    for (const Axis& axis : merged.parts) {
      const auto extent = resolved(axis.size(), stage.sizes).constant();
      if (!extent || !result.emplace(axis.name, *extent).second) return std::nullopt;
    }
  if (fold == nullptr) return result;
  for (const Bound& bound : fold->bounds) {
    const auto extent = tile::number_of_size(bound.extent, stage.sizes);
    if (!extent || !result.emplace(bound.axis, *extent).second) return std::nullopt;
  }
  return result;
}

/// The terms of a sum over one axis, as a product.
std::optional<ScalarProduct> terms_of(const AttentionStage& of, bool exact) {
  if (of.fold == nullptr || of.fold->bounds.size() != 1 || of.fold->simple() != Fn::Add)
    return std::nullopt;
  const Scalar& lift = of.fold->lift[0];
  const auto* init = std::get_if<node::Constant>(&of.fold->init[0].node());
  if (lift.sort() != Sort::Value || has_fold(lift) || init == nullptr || init->number != 0)
    return std::nullopt;
  return ScalarProduct::of(lift, exact ? 1 : ScalarProduct::kDepth);
}

class Recognition {
 public:
  Recognition(const Group& group, bool exact) : group_(group), exact_(exact) {}

  std::optional<AttentionForm> run() {
    const tile::Stages& stages = group_.stages;
    if (stages.size() < 3 || group_.results != std::vector{stages.back().name()})
      return std::nullopt;
    for (const Stage& stage : stages) {
      const bool last = &stage == &stages.back();
      if (stage.output.forward || is_wide(stage) || (!last && stage.output.dtype != DType::F32))
        return std::nullopt;
    }
    if (!begin(stages.front())) return std::nullopt;
    for (std::size_t i = 1; i + 1 < stages.size(); ++i)
      if (!between(stages[i])) return std::nullopt;
    if (!end(stages.back()) || !first_product()) return std::nullopt;
    return std::move(form_);
  }

 private:
  /// The axes of the scores are the loops.
  bool begin(const Stage& stage) {
    form_.scores = {.stage = &stage, .fold = main_fold(stage)};
    const auto found = variables(stage, nullptr);
    if (!found) return false;
    for (const MergedAxis& merged : stage.output.axes) {
      if (merged.parts.size() != 1) return false;
      add_loop(form_.scores, merged.parts[0].name, found->at(merged.parts[0].name));
    }
    parts_.emplace(stage.name(), form_.scores);
    return true;
  }

  int add_loop(AttentionStage& of, const std::string& variable, std::int64_t extent) {
    const auto loop = static_cast<int>(form_.extents.size());
    form_.extents.push_back(extent);
    if (extent > 1) of.loop_of.emplace(variable, loop);
    return loop;
  }

  /// Follows what a stage reads of those before it to the loops that its variables are: every one
  /// of them reads at its own position.
  std::optional<AttentionStage> followed(const Stage& stage) {
    AttentionStage result{.stage = &stage, .fold = main_fold(stage)};
    if (result.fold == nullptr && has_fold(stage.output.value)) return std::nullopt;
    const auto found = variables(stage, result.fold.get());
    bool all = found.has_value(), any = false;
    for_each_within(stage.output.value, [&](const Scalar& part) {
      const auto* read = std::get_if<node::Read>(&part.node());
      const auto from = read == nullptr ? parts_.end() : parts_.find(read->operand);
      if (!all || from == parts_.end()) return;
      any = true;
      all = read->otherwise == nullptr;
      const std::vector<MergedAxis>& axes = from->second.stage->output.axes;
      for (std::size_t i = 0; all && i < axes.size(); ++i) {
        const auto loop = from->second.loop_of.find(axes[i].parts[0].name);
        if (loop == from->second.loop_of.end()) continue;
        const auto* index = std::get_if<node::Index>(&read->at[i].node());
        const auto variable = index == nullptr ? found->end() : found->find(index->axis);
        all = variable != found->end() &&
              variable->second == form_.extents[static_cast<std::size_t>(loop->second)] &&
              result.loop_of.emplace(index->axis, loop->second).first->second == loop->second;
      }
    });
    std::set<int> loops;
    for (const auto& [variable, loop] : result.loop_of) all = all && loops.insert(loop).second;
    if (!all || !any) return std::nullopt;
    variables_ = *found;
    return result;
  }

  std::optional<int> fold_loop(const AttentionStage& of) const {
    if (of.fold == nullptr || of.fold->bounds.size() != 1 || has_fold(of.fold->lift[0]))
      return std::nullopt;
    const auto it = of.loop_of.find(of.fold->bounds[0].axis);
    return it == of.loop_of.end() ? std::nullopt : std::optional(it->second);
  }

  /// A fold over the keys. Those without are computed where they are read.
  bool between(const Stage& stage) {
    const auto part = followed(stage);
    const auto loop = part ? fold_loop(*part) : std::nullopt;
    if (!loop || (form_.key >= 0 && form_.key != *loop)) return false;
    form_.key = *loop;
    for (const auto& [variable, extent] : variables_)
      if (extent > 1 && !part->loop_of.contains(variable)) return false;
    for (const MergedAxis& merged : stage.output.axes)
      if (merged.parts.size() != 1) return false;
    form_.between.push_back(*part);
    parts_.emplace(stage.name(), *part);
    return true;
  }

  bool end(const Stage& stage) {
    auto part = followed(stage);
    const auto loop = part ? fold_loop(*part) : std::nullopt;
    if (!loop || form_.key != *loop) return false;
    const std::string& key = part->fold->bounds[0].axis;
    std::string width;
    for (const auto& [variable, extent] : variables_) {
      if (extent <= 1 || part->loop_of.contains(variable)) continue;
      if (!width.empty()) return false;
      width = variable;
    }
    if (width.empty()) return false;
    auto product = terms_of(*part, exact_);
    if (!product) return false;
    const auto values = product->take([&](const Scalar& f) { return uses(f, width); });
    if (!exact_) form_.outside = product->take([&](const Scalar& f) { return !uses(f, key); });
    const auto weights = product->take([](const Scalar&) { return true; });
    if (!values || !weights) return false;
    form_.values = *values;
    form_.weights = *weights;
    form_.inner = static_cast<int>(form_.extents.size());
    form_.extents.push_back(1);
    form_.width = add_loop(*part, width, variables_.at(width));
    form_.result = *std::move(part);
    return true;
  }

  /// Queries and keys: what the axis of the keys runs through tells them apart. Rows are what the
  /// keys do not vary with.
  bool first_product() {
    AttentionStage& scores = form_.scores;
    auto product = terms_of(scores, exact_);
    const auto variable_of = [](const AttentionStage& stage, int loop) {
      for (const auto& [variable, l] : stage.loop_of)
        if (l == loop) return variable;
      return std::string();
    };
    const std::string key = variable_of(scores, form_.key);
    const auto found = variables(*scores.stage, scores.fold.get());
    if (!product || !found) return false;
    const Bound& inner = scores.fold->bounds[0];
    form_.extents[static_cast<std::size_t>(form_.inner)] = found->at(inner.axis);
    if (found->at(inner.axis) > 1) scores.loop_of.emplace(inner.axis, form_.inner);
    const auto keys = product->take([&](const Scalar& f) { return uses(f, key); });
    const auto queries = product->take([](const Scalar&) { return true; });
    if (!keys || !queries) return false;
    form_.keys = *keys;
    form_.queries = *queries;
    const auto extent = [&](int loop) { return form_.extents[static_cast<std::size_t>(loop)]; };
    for (const auto& [variable, loop] : scores.loop_of) {
      if (loop == form_.key || loop == form_.inner || uses(*keys, variable)) continue;
      const std::string same = variable_of(form_.result, loop);
      if (uses(form_.values, same)) continue;
      if (form_.row < 0 || extent(loop) > extent(form_.row)) form_.row = loop;
    }
    return true;
  }

  const Group& group_;
  const bool exact_;
  AttentionForm form_;
  std::map<std::string, AttentionStage, std::less<>> parts_;  // by the name of the stage
  std::map<std::string, std::int64_t> variables_;             // of the stage that was followed
};

}  // namespace

std::optional<AttentionForm> attention_form(const Group& group, bool exact) {
  return Recognition(group, exact).run();
}

}  // namespace tessera::lower
