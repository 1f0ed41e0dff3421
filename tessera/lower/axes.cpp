#include "tessera/lower/axes.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "tessera/expr/walk.h"

namespace tessera::lower {

using tile::Stage;
using tile::Stages;

namespace {

class Classifier {
 public:
  explicit Classifier(const Stages& stages) : stages_(stages) {}

  std::optional<AxisClasses> run() {
    for (const Stage& stage : stages_) add(stage);
    if (failed_) return std::nullopt;
    AxisClasses result = finish();
    if (failed_) return std::nullopt;
    return result;
  }

 private:
  using Node = std::size_t;  // of the forest

  Node root(Node n) const {
    while (parent_[n] != n) n = parent_[n];
    return n;
  }
  void join(Node a, Node b) { parent_[root(b)] = root(a); }
  Node node(std::int64_t extent) {
    parent_.push_back(parent_.size());
    extents_.push_back(extent);
    plain_.push_back(true);
    return parent_.size() - 1;
  }
  std::vector<std::optional<Node>>& tensor(const std::string& name, std::size_t rank) {
    auto& axes = tensors_[name];
    axes.resize(rank);
    return axes;
  }
  void join_axis(const std::string& name, std::size_t rank, std::size_t axis, Node variable) {
    auto& at = tensor(name, rank)[axis];
    if (at)
      join(*at, variable);
    else
      at = variable;
  }

  Node variable(const std::string& name, std::optional<std::int64_t> extent) {
    auto& variables = variables_.back();
    if (const auto it = variables.find(name); it != variables.end()) {
      failed_ = failed_ || !extent || extents_[it->second] != *extent;
      return it->second;
    }
    failed_ = failed_ || !extent;
    return variables.emplace(name, node(extent.value_or(1))).first->second;
  }

  void add(const Stage& stage) {
    variables_.emplace_back();
    kept_.emplace_back();
    reduced_.emplace_back();
    const auto& axes = stage.output.axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      std::vector<Node> parts;
      for (const Axis& part : axes[i].parts) {
        const auto extent = resolved(part.size(), stage.sizes).constant();
        const Node n = variable(part.name, extent);
        kept_.back().push_back(n);
        if (extent != 1) parts.push_back(n);
      }
      tensor(stage.name(), axes.size());
      if (parts.size() == 1) join_axis(stage.name(), axes.size(), i, parts[0]);
      if (parts.size() > 1)
        for (const Node n : parts) plain_[n] = false;
    }
    if (stage.output.forward) failed_ = true;
    // Folds first, so that their variables are known where they are read.
    for (const auto& fold : folds_of(stage.output.value))
      for (const Bound& bound : fold->bounds)
        reduced_.back().push_back(
            variable(bound.axis, tile::number_of_size(bound.extent, stage.sizes)));
    std::set<const void*> seen;
    visit(stage, stage.output.value, seen);
  }

  void visit(const Stage& stage, const Scalar& scalar, std::set<const void*>& seen) {
    if (failed_ || !seen.insert(scalar.id()).second) return;
    if (const auto* index = std::get_if<node::Index>(&scalar.node())) {
      // Reached in another way than as a whole index of a read.
      const auto it = variables_.back().find(index->axis);
      if (it == variables_.back().end())
        failed_ = true;
      else
        plain_[it->second] = false;
      return;
    }
    const auto* read = std::get_if<node::Read>(&scalar.node());
    if (read == nullptr) {
      for_each_part(scalar, [&](const Scalar& part) { visit(stage, part, seen); });
      return;
    }
    tensor(read->operand, read->at.size());
    for (std::size_t i = 0; i < read->at.size(); ++i) {
      const auto* index = std::get_if<node::Index>(&read->at[i].node());
      const auto it =
          index == nullptr ? variables_.back().end() : variables_.back().find(index->axis);
      if (it == variables_.back().end()) {
        visit(stage, read->at[i], seen);
        continue;
      }
      // A variable that runs through a part of an axis is no axis of the tensor.
      if (extent_of(stage, read->operand, i) == extents_[it->second])
        join_axis(read->operand, read->at.size(), i, it->second);
      else
        plain_[it->second] = false;
    }
    if (read->otherwise != nullptr) visit(stage, *read->otherwise, seen);
  }

  static std::optional<std::int64_t> extent_of(const Stage& stage, const std::string& tensor,
                                               std::size_t axis) {
    const auto operand = std::ranges::find(stage.operands, tensor, &Operand::name);
    if (operand == stage.operands.end()) return std::nullopt;
    return resolved(operand->shape[axis], stage.sizes).constant();
  }

  AxisClasses finish() {
    AxisClasses result;
    std::map<Node, int> number;
    const auto class_of = [&](Node n) {
      const auto [it, is_new] = number.try_emplace(root(n), static_cast<int>(number.size()));
      if (is_new) result.classes.push_back({.extent = extents_[n]});
      return it->second;
    };
    for (const auto& variables : variables_) {
      auto& of = result.of.emplace_back();
      for (const auto& [name, n] : variables) of.emplace(name, class_of(n));
    }
    const auto of = [&](Node n) -> AxisClass& {
      return result.classes[static_cast<std::size_t>(class_of(n))];
    };
    for (Node n = 0; n < parent_.size(); ++n) {
      AxisClass& c = of(n);
      c.plain = c.plain && plain_[n];
      failed_ = failed_ || c.extent != extents_[n];
    }
    for (const auto& nodes : kept_)
      for (const Node n : nodes) of(n).kept = true;
    for (const auto& nodes : reduced_)
      for (const Node n : nodes) of(n).reduced = true;
    for (const auto& [name, axes] : tensors_)
      for (const auto& axis : axes) result.tensors[name].push_back(axis ? class_of(*axis) : -1);
    return result;
  }

  const Stages& stages_;
  std::vector<Node> parent_;
  std::vector<std::int64_t> extents_;
  std::vector<bool> plain_;
  std::vector<std::map<std::string, Node>> variables_;
  std::vector<std::vector<Node>> kept_, reduced_;
  std::map<std::string, std::vector<std::optional<Node>>> tensors_;
  bool failed_ = false;
};

}  // namespace

std::optional<AxisClasses> axis_classes(const Stages& stages) {
  return Classifier(stages).run();
}

std::set<std::string> free_variables(const Scalar& scalar) {
  std::unordered_map<const void*, std::set<std::string>> known;
  const std::function<const std::set<std::string>&(const Scalar&)> visit =
      [&](const Scalar& s) -> const std::set<std::string>& {
    if (const auto it = known.find(s.id()); it != known.end()) return it->second;
    std::set<std::string> result;
    if (const auto* index = std::get_if<node::Index>(&s.node())) result.insert(index->axis);
    for_each_part(s, [&](const Scalar& part) {
      const std::set<std::string>& inner = visit(part);
      result.insert(inner.begin(), inner.end());
    });
    if (const auto* component = std::get_if<node::Component>(&s.node()))
      for (const Bound& bound : component->fold->bounds) result.erase(bound.axis);
    return known.emplace(s.id(), std::move(result)).first->second;
  };
  return visit(scalar);
}

std::vector<std::shared_ptr<const Fold>> folds_of(const Scalar& scalar) {
  std::vector<std::shared_ptr<const Fold>> result;
  std::set<const void*> seen;
  const std::function<void(const Scalar&)> visit = [&](const Scalar& s) {
    if (!seen.insert(s.id()).second) return;
    for_each_part(s, visit);
    if (const auto* component = std::get_if<node::Component>(&s.node());
        component != nullptr && seen.insert(component->fold.get()).second)
      result.push_back(component->fold);
  };
  visit(scalar);
  return result;
}

bool classes_are_apart(const Stages& stages, const AxisClasses& axes) {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    std::set<int> output;
    for (const MergedAxis& merged : stages[i].output.axes)
      for (const Axis& part : merged.parts)
        if (!output.insert(axes.of[i].at(part.name)).second) return false;
    for (const auto& fold : folds_of(stages[i].output.value)) {
      std::set<int> own;
      for (const Bound& bound : fold->bounds)
        if (!own.insert(axes.of[i].at(bound.axis)).second) return false;
      for (const Scalar& lift : fold->lift)
        for (const std::string& name : free_variables(lift)) {
          const bool is_own =
              std::ranges::find(fold->bounds, name, &Bound::axis) != fold->bounds.end();
          if (!is_own && own.contains(axes.of[i].at(name))) return false;
        }
    }
  }
  return true;
}

}  // namespace tessera::lower
