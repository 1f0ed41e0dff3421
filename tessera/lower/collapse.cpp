#include <algorithm>
#include <functional>
#include <unordered_map>

#include "tessera/expr/walk.h"
#include "tessera/lower/affine.h"
#include "tessera/lower/axes.h"

namespace tessera::lower {

using tile::Stage;
using tile::Stages;

namespace {

std::int64_t number(const Dim& dim, const Sizes& sizes) {
  return resolved(dim, sizes).constant().value_or(-1);
}

/// Axes of a stage, and of the tensors that it reads, to remove or to merge.
struct CollapsePlan {
  std::set<std::string> ones;  // variables of extent 1
  std::map<std::string, std::pair<std::string, bool>>
      into;                                              // two variables -> one; is it the first
  std::map<std::string, std::set<std::size_t>> dropped;  // axes of tensors
  std::int64_t extent = 1;                               // of what two become
  AxisExtents plain = {};  // index variables; an index that is one of them is written as it
};

/// Rewrites an expression: removes or merges axes of its reads and reductions.
class Rewriting {
 public:
  explicit Rewriting(const CollapsePlan& change) : change_(change) {}

  Scalar operator()(const Scalar& s) {
    if (const auto it = made_.find(s.id()); it != made_.end()) return it->second;
    keep_.push_back(s);
    return made_.emplace(s.id(), made(s)).first->second;
  }

 private:
  std::vector<Scalar> all(const std::vector<Scalar>& scalars) {
    std::vector<Scalar> result;
    for (const Scalar& s : scalars) result.push_back((*this)(s));
    return result;
  }

  Scalar made(const Scalar& s) {
    if (const auto* index = std::get_if<node::Index>(&s.node())) {
      if (change_.ones.contains(index->axis)) return Scalar(0);
      const auto it = change_.into.find(index->axis);
      return it == change_.into.end() ? s : index_of(it->second.first);
    }
    if (const auto* read = std::get_if<node::Read>(&s.node())) {
      node::Read next{read->operand, read->sort, {}, read->otherwise};
      const auto dropped = change_.dropped.find(read->operand);
      for (std::size_t i = 0; i < read->at.size(); ++i)
        if (dropped == change_.dropped.end() || !dropped->second.contains(i))
          next.at.push_back(plain((*this)(read->at[i])));
      if (read->otherwise != nullptr)
        next.otherwise = std::make_shared<const Scalar>((*this)(*read->otherwise));
      return Scalar(Node(std::move(next)));
    }
    if (const auto* call = std::get_if<node::Apply>(&s.node()))
      return Scalar(Node(node::Apply{call->fn, all(call->args)}));
    if (const auto* cast = std::get_if<node::Cast>(&s.node()))
      return Scalar(
          Node(node::Cast{cast->to, std::make_shared<const Scalar>((*this)(*cast->arg))}));
    if (const auto* component = std::get_if<node::Component>(&s.node()))
      return Scalar(Node(node::Component{folded(component->fold), component->index}));
    return s;
  }

  /// An index variable or a number, where an index is equal to one: x + r with r below 1 is x.
  Scalar plain(const Scalar& index) const {
    if (change_.plain.empty() || !std::holds_alternative<node::Apply>(index.node())) return index;
    auto form = affine(index, change_.plain);
    if (!form) return index;
    *form = form->without([&](const std::string& axis) { return change_.plain.at(axis) == 1; });
    if (form->is_constant()) return Scalar(form->base);
    const bool is_one = form->base == 0 && form->terms.size() == 1 && form->terms[0].factor == 1;
    return is_one ? index_of(form->terms[0].variable) : index;
  }

  std::shared_ptr<const Fold> folded(const std::shared_ptr<const Fold>& fold) {
    auto& made = folds_[fold.get()];
    if (made != nullptr) return made;
    Fold next{{}, all(fold->init), all(fold->lift), all(fold->combine)};
    for (const Bound& bound : fold->bounds) {
      const bool is_last = &bound == &fold->bounds.back();
      if (change_.ones.contains(bound.axis) && !(is_last && next.bounds.empty())) continue;
      const auto it = change_.into.find(bound.axis);
      if (it == change_.into.end())
        next.bounds.push_back({bound.axis, (*this)(bound.extent)});
      else if (it->second.second)
        next.bounds.push_back({it->second.first, Scalar(change_.extent)});
    }
    return made = std::make_shared<const Fold>(std::move(next));
  }

  const CollapsePlan& change_;
  std::unordered_map<const void*, Scalar> made_;
  std::unordered_map<const void*, std::shared_ptr<const Fold>> folds_;
  std::vector<Scalar> keep_;
};

void apply(Stage& stage, const CollapsePlan& change, const std::map<std::string, Shape>& shapes) {
  stage.output.value = Rewriting(change)(stage.output.value);
  for (Operand& operand : stage.operands)
    if (const auto it = shapes.find(operand.name); it != shapes.end()) operand.shape = it->second;
  const auto dropped = change.dropped.find(stage.name());
  std::vector<MergedAxis> axes;
  for (std::size_t i = 0; i < stage.output.axes.size(); ++i) {
    if (dropped != change.dropped.end() && dropped->second.contains(i)) continue;
    MergedAxis next;
    for (const Axis& part : stage.output.axes[i].parts) {
      if (change.ones.contains(part.name) && stage.output.axes[i].parts.size() > 1) continue;
      const auto it = change.into.find(part.name);
      next.parts.push_back(it == change.into.end() ? part
                                                   : Axis{it->second.first, Dim(change.extent)});
    }
    if (next.parts.empty()) next.parts.push_back(stage.output.axes[i].parts.front());
    axes.push_back(std::move(next));
  }
  stage.output.axes = std::move(axes);
}

/// The shapes of all tensors, as numbers.
std::map<std::string, Shape> shapes_of(const Stages& stages) {
  std::map<std::string, Shape> shapes;
  for (const Stage& stage : stages) {
    const auto add = [&](const std::string& name, const Shape& shape) {
      Shape& numbers = shapes[name];
      numbers.clear();
      for (const Dim& dim : shape) numbers.push_back(Dim(number(dim, stage.sizes)));
    };
    for (const Operand& operand : stage.operands) add(operand.name, operand.shape);
    add(stage.name(), stage.output.shape());
  }
  return shapes;
}

/// Stages whose indices are written as index variables where they are equal to one: those of a
/// convolution with a window of one pixel.
Stages with_plain_indices(Stages stages) {
  for (Stage& stage : stages) {
    CollapsePlan change;
    for (const MergedAxis& axis : stage.output.axes)
      for (const Axis& part : axis.parts)
        if (const auto extent = resolved(part.size(), stage.sizes).constant())
          change.plain.emplace(part.name, *extent);
    for (const auto& fold : folds_of(stage.output.value))
      for (const Bound& bound : fold->bounds)
        if (const auto extent = tile::number_of_size(bound.extent, stage.sizes))
          change.plain.emplace(bound.axis, *extent);
    stage.output.value = Rewriting(change)(stage.output.value);
  }
  return stages;
}

/// The axes of tensors that hold one element and are read there alone, and the variables of one
/// position.
Stages without_ones(Stages stages, const AxisClasses& classes) {
  std::map<std::string, Shape> shapes = shapes_of(stages);
  std::map<std::string, std::set<std::size_t>> dropped;
  for (const auto& [name, shape] : shapes)
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (shape[i].is(1)) dropped[name].insert(i);
  std::vector<std::set<std::string>> ones;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    auto& here = ones.emplace_back();
    for (const auto& [name, c] : classes.of[i])
      if (classes.classes[static_cast<std::size_t>(c)].extent == 1) here.insert(name);
    for_each_read(stages[i].output.value, [&](const node::Read& read) {
      for (std::size_t at = 0; at < read.at.size(); ++at) {
        const auto* index = std::get_if<node::Index>(&read.at[at].node());
        const bool is_first =
            (index != nullptr && here.contains(index->axis)) || read.at[at].integer() == 0;
        if (!is_first) dropped[read.operand].erase(at);
      }
    });
  }
  for (auto& [name, axes] : dropped) {
    Shape& shape = shapes[name];
    if (axes.size() == shape.size() && !axes.empty()) axes.erase(shape.size() - 1);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*axis));
  }
  for (std::size_t i = 0; i < stages.size(); ++i)
    apply(stages[i], {.ones = ones[i], .into = {}, .dropped = dropped}, shapes);
  return stages;
}

/// Whether every read along these axes of a tensor is along both.
bool reads_both(const Stage& stage, const std::map<std::string, int>& of,
                const std::map<std::string, std::vector<int>>& tensors, int first, int second) {
  bool both = true;
  for_each_read(stage.output.value, [&](const node::Read& read) {
    const auto known = tensors.find(read.operand);
    if (known == tensors.end()) return;  // it has no axes
    const std::vector<int>& axes = known->second;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != first && axes[i] != second) continue;
      const auto* index = std::get_if<node::Index>(&read.at[i].node());
      const auto it = index == nullptr ? of.end() : of.find(index->axis);
      both = both && it != of.end() && it->second == axes[i];
    }
  });
  return both;
}

/// Whether wherever one class is, the other one follows.
bool go_together(const Stages& stages, const AxisClasses& axes, int first, int second) {
  for (const int c : {first, second})
    if (!axes.classes[static_cast<std::size_t>(c)].plain) return false;
  for (const auto& [name, of] : axes.tensors)
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (of[i] == first && (i + 1 == of.size() || of[i + 1] != second)) return false;
      if (of[i] == second && (i == 0 || of[i - 1] != first)) return false;
    }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (const auto& fold : folds_of(stages[i].output.value)) {
      int place = 0, at_first = -1, at_second = -1;
      for (const Bound& bound : fold->bounds) {
        const int c = axes.of[i].at(bound.axis);
        if (c == first) at_first = place;
        if (c == second) at_second = place;
        ++place;
      }
      if ((at_first < 0) != (at_second < 0)) return false;
      if (at_first >= 0 && at_second != at_first + 1 && !fold->simple()) return false;
    }
    // One variable of each, so that it is plain what goes with what.
    int a = 0, b = 0;
    for (const auto& [name, c] : axes.of[i]) {
      a += c == first ? 1 : 0;
      b += c == second ? 1 : 0;
    }
    if (a != b || a > 1) return false;
    if (!reads_both(stages[i], axes.of[i], axes.tensors, first, second)) return false;
  }
  return true;
}

Stages joined(Stages stages, const AxisClasses& axes, int first, int second) {
  std::map<std::string, Shape> shapes = shapes_of(stages);
  std::map<std::string, std::set<std::size_t>> dropped;
  const std::int64_t extent = axes.classes[static_cast<std::size_t>(first)].extent *
                              axes.classes[static_cast<std::size_t>(second)].extent;
  for (const auto& [name, of] : axes.tensors)
    for (std::size_t i = 0; i + 1 < of.size(); ++i) {
      if (of[i] != first) continue;
      dropped[name].insert(i + 1);
      Shape& shape = shapes[name];
      shape[i] = Dim(extent);
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    CollapsePlan change{.ones = {}, .into = {}, .dropped = dropped, .extent = extent};
    std::string a, b;
    for (const auto& [name, c] : axes.of[i]) {
      if (c == first) a = name;
      if (c == second) b = name;
    }
    if (!a.empty()) {
      change.into[a] = {a + "_" + b, true};
      change.into[b] = {a + "_" + b, false};
    }
    apply(stages[i], change, shapes);
  }
  return stages;
}

}  // namespace

Stages collapsed(Stages stages) {
  stages = with_plain_indices(std::move(stages));
  auto axes = axis_classes(stages);
  if (!axes) return stages;
  stages = without_ones(std::move(stages), *axes);
  for (;;) {
    axes = axis_classes(stages);
    if (!axes) return stages;
    std::optional<std::pair<int, int>> pair;
    for (const auto& [name, of] : axes->tensors)
      for (std::size_t i = 0; i + 1 < of.size() && !pair; ++i)
        if (of[i] >= 0 && of[i + 1] >= 0 && of[i] != of[i + 1] &&
            go_together(stages, *axes, of[i], of[i + 1]))
          pair = {of[i], of[i + 1]};
    if (!pair) return stages;
    stages = joined(std::move(stages), *axes, pair->first, pair->second);
  }
}

}  // namespace tessera::lower
