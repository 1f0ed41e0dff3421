#include "tessera/superopt/prune/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tessera/egraph/egraph.h"

namespace tessera::superopt {
namespace {

using egraph::ClassId;
using egraph::EGraph;
using rules::Rule;

/// Both sides of a rule in one e-graph, where common subterms are one class.
class Sides {
 public:
  explicit Sides(const Rule& rule) : rule_(rule) {
    for (const ValueId id : rule.source.inputs()) {
      inputs_.push_back(graph_.add_input(rule.source, id));
      names_[inputs_.back()] = rule.source.name(id);
    }
    source_ = added(rule.source);
    target_ = added(rule.target);
  }

  bool are_equal() const { return source_ == target_; }

  std::optional<Rule> without_common() {
    const bool stripped = strip();
    std::set<ClassId> left, right;
    for (const ClassId id : source_) reach(id, left);
    for (const ClassId id : target_) reach(id, right);
    for (const ClassId id : left)
      if (right.contains(id)) shared_.insert(id);
    if (!stripped && shared_.empty()) return std::nullopt;
    if (std::ranges::any_of(source_, [&](ClassId id) { return shared_.contains(id); }))
      return std::nullopt;
    return rebuilt();
  }

 private:
  std::vector<ClassId> added(const Graph& side) {
    egraph::Premises premises;
    const auto values = graph_.add(side, inputs_, 0, premises);
    std::vector<ClassId> outputs;
    for (const ValueId id : side.outputs()) outputs.push_back(values[id.index]);
    return outputs;
  }

  /// The only node of a class; null for inputs and constants.
  const egraph::ENode* by(ClassId id) const {
    const auto& members = graph_.at(id).members;
    return members.empty() ? nullptr : &graph_.node(members[0].node);
  }

  /// Removes the root of both sides while it is the same operator and all operands but one are
  /// equal.
  bool strip() {
    bool any = false;
    while (source_.size() == 1) {
      const egraph::ENode *a = by(source_[0]), *b = by(target_[0]);
      if (a == nullptr || b == nullptr || &a->op() != &b->op() || &a->attrs() != &b->attrs() ||
          a->inputs.size() != b->inputs.size() || a->outputs.size() != 1)
        return any;
      std::vector<ClassId> x = a->inputs, y = b->inputs;
      if (a->application->commutes && (x[0] == y[1] || x[1] == y[0])) std::swap(y[0], y[1]);
      std::vector<std::size_t> different;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i] != y[i]) different.push_back(i);
      if (different.size() != 1 || !x[different[0]].present() || !y[different[0]].present())
        return any;
      source_ = {x[different[0]]};
      target_ = {y[different[0]]};
      if (graph_.at(source_[0]).type != graph_.at(target_[0]).type) return false;
      any = true;
    }
    return any;
  }

  /// What an output is computed by, as far as it may stand for an input.
  void reach(ClassId id, std::set<ClassId>& seen) const {
    const egraph::ENode* node = id.present() ? by(id) : nullptr;
    if (node == nullptr || seen.contains(id)) return;
    const Type& type = *graph_.at(id).type;
    if (type.is_ranked_tensor() && is_float(type.dtype)) seen.insert(id);
    for (const ClassId input : node->inputs) reach(input, seen);
  }

  std::optional<Rule> rebuilt() {
    Rule made = rule_;
    std::vector<ClassId> inputs;
    for (const auto* side : {&source_, &target_})
      for (const ClassId id : *side) collect_inputs(id, inputs);
    const auto source = graph_over(inputs, source_), target = graph_over(inputs, target_);
    if (!source || !target) return std::nullopt;
    made.source = *source;
    made.target = *target;
    std::erase_if(made.constants, [&](const std::string& name) {
      return std::ranges::none_of(inputs, [&](ClassId id) { return name_of(id) == name; });
    });
    if (!check(made)) return std::nullopt;
    return made;
  }

  std::string name_of(ClassId id) const {
    const auto it = names_.find(id);
    return it == names_.end() ? fmt::format("common.{}", id.index) : it->second;
  }

  void collect_inputs(ClassId id, std::vector<ClassId>& into) const {
    if (!id.present() || std::ranges::find(into, id) != into.end()) return;
    const egraph::ENode* node = by(id);
    if (shared_.contains(id) || graph_.at(id).input)
      into.push_back(id);
    else if (node != nullptr)
      for (const ClassId input : node->inputs) collect_inputs(input, into);
  }

  /// Nothing where a class is a type alone: which input stood for it is forgotten.
  std::optional<Graph> graph_over(const std::vector<ClassId>& inputs,
                                  const std::vector<ClassId>& outputs) const {
    Graph made;
    std::map<ClassId, ValueId> values;
    for (const ClassId id : inputs) values[id] = made.add_input(*graph_.at(id).type, name_of(id));
    std::vector<ValueId> results;
    for (const ClassId id : outputs) {
      if (!place(id, made, values)) return std::nullopt;
      results.push_back(values.at(id));
    }
    made.set_outputs(std::move(results));
    return made;
  }

  bool place(ClassId id, Graph& made, std::map<ClassId, ValueId>& values) const {
    if (!id.present() || values.contains(id)) return true;
    if (const Tensor* constant = graph_.at(id).constant) {
      values[id] = made.add_constant(*constant, {});
      return true;
    }
    const egraph::ENode* node = by(id);
    if (node == nullptr) return false;
    Graph::NewNode copy{.op = &node->op(), .attrs = node->attrs()};
    for (const ClassId input : node->inputs) {
      if (!place(input, made, values)) return false;
      copy.inputs.push_back(input.present() ? values.at(input) : ValueId{});
    }
    for (const ClassId output : node->outputs) copy.outputs.push_back(*graph_.at(output).type);
    const std::vector<ValueId> results = made.add_node(std::move(copy));
    for (std::size_t i = 0; i < results.size(); ++i) values[node->outputs[i]] = results[i];
    return true;
  }

  const Rule& rule_;
  EGraph graph_;
  std::vector<ClassId> inputs_, source_, target_;
  std::map<ClassId, std::string> names_;
  std::set<ClassId> shared_;
};

}  // namespace

bool is_trivial(const Rule& rule) {
  return Sides(rule).are_equal();
}

std::optional<Rule> without_common(const Rule& rule) {
  return Sides(rule).without_common();
}

}  // namespace tessera::superopt
