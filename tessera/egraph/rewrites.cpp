#include "tessera/egraph/rewrites.h"

#include <algorithm>

#include "tessera/rules/apply.h"
#include "tessera/rules/fit.h"
#include "tessera/support/hash.h"

namespace tessera::egraph {

/// One search for a pattern below a class: nodes of the source one after the other, each with every
/// member of its class that it can be.
class Matching {
 public:
  Matching(const Rewrite& rewrite, EGraph& graph,
           const std::function<bool(const Rewrite::Match&)>& found)
      : rewrite_(rewrite),
        source_(rewrite.rule().source),
        graph_(graph),
        found_(found),
        match_{.values = std::vector<ClassId>(source_.value_count()),
               .nodes = std::vector<const Application*>(source_.nodes().size()),
               .premises = {}} {}

  void at(ClassId root) {
    if (bind(source_.outputs()[0], root)) step(0);
  }

 private:
  void step(std::size_t index) {
    if (index == rewrite_.steps_.size()) {
      done_ = !found_(match_);
      return;
    }
    const Rewrite::Step& step = rewrite_.steps_[index];
    if (step.anywhere) {
      for (const NodeId id : graph_.nodes_of(*source_.nodes()[step.node].op)) {
        if (done_) return;
        if (graph_.is_live(id)) choose(index, id);
      }
      return;
    }
    const ClassId at = match_.values[step.at.index];
    for (const Member& member : graph_.at(at).members) {
      if (done_) return;
      if (member.output == step.output) choose(index, member.node);
    }
  }

  /// Goes on with a node for a node of the source, operands in either order where they commute.
  void choose(std::size_t index, NodeId id) {
    const Rewrite::Step& step = rewrite_.steps_[index];
    const GraphNode& pattern = source_.nodes()[step.node];
    const ENode& node = graph_.node(id);
    const auto results = source_.outputs(pattern), operands = source_.inputs(pattern);
    if (&node.op() != pattern.op || node.inputs.size() != operands.size() ||
        node.outputs.size() != results.size() || !node.subgraphs.empty())
      return;
    if (pattern.attrs->symbolic() == nullptr &&
        !graph_.analysis().means(*node.application, *pattern.attrs))
      return;
    const bool commutes =
        node.application->commutes && !graph_.equal(node.inputs[0], node.inputs[1]);
    for (const bool crossed : {false, true}) {
      if (done_ || (crossed && !commutes)) return;
      const std::size_t bound = trail_.size(), premises = match_.premises.size();
      bool fits = true;
      for (std::size_t i = 0; fits && i < results.size(); ++i)
        fits = bind(results[i], node.outputs[i]);
      for (std::size_t i = 0; fits && i < operands.size(); ++i)
        fits = bind(operands[i], node.inputs[crossed ? 1 - i : i]);
      if (fits) {
        match_.nodes[step.node] = node.application;
        this->step(index + 1);
        match_.nodes[step.node] = nullptr;
      }
      for (; trail_.size() > bound; trail_.pop_back()) match_.values[trail_.back()] = {};
      match_.premises.resize(premises);
    }
  }

  bool bind(ValueId pattern, ClassId found) {
    if (!pattern.present() || !found.present()) return pattern.present() == found.present();
    ClassId& bound = match_.values[pattern.index];
    if (bound.present()) {
      if (!graph_.equal(bound, found)) return false;
      if (bound != found) match_.premises.emplace_back(bound, found);
      return true;
    }
    if (!may_be(pattern, graph_.at(found))) return false;
    bound = found;
    trail_.push_back(pattern.index);
    return true;
  }

  /// Cheap filter, by which most classes fail.
  bool may_be(ValueId pattern, const EClass& found) const {
    const Type &type = source_.type(pattern), &is = *found.type;
    if (!type.is_ranked_tensor() || !is.is_ranked_tensor()) return false;
    if (is_float(type.dtype) != is_float(is.dtype)) return false;
    if (source_.constant(pattern) != nullptr) return found.constant != nullptr;
    if (type.shape->size() != is.shape->size()) return false;
    if (rewrite_.is_sizes(pattern)) return found.constant != nullptr;
    return !rewrite_.constant_[pattern.index] || found.from_constants;
  }

  const Rewrite& rewrite_;
  const Graph& source_;
  EGraph& graph_;
  const std::function<bool(const Rewrite::Match&)>& found_;
  Rewrite::Match match_;
  std::vector<std::uint32_t> trail_;  // values in the order in which they were bound
  bool done_ = false;
};

Rewrite::Rewrite(std::shared_ptr<const rules::Pattern> pattern)
    : pattern_(std::move(pattern)), constant_(rule().source.value_count()) {
  const Graph& source = rule().source;
  for (const ValueId id : source.inputs())
    constant_[id.index] =
        std::ranges::find(rule().constants, source.name(id)) != rule().constants.end();
  std::vector<bool> planned(source.nodes().size());
  for (const ValueId output : source.outputs()) {
    const std::size_t before = steps_.size();
    plan(output, planned);
    if (before != 0 && before != steps_.size()) steps_[before].anywhere = true;
  }
}

const OpDef& Rewrite::root() const {
  return *rule().source.producer(rule().source.outputs()[0])->op;
}

/// Sizes that the source computes are numbers in an e-graph.
bool Rewrite::is_sizes(ValueId value) const {
  return pattern_->known[value.index].value && rule().source.producer(value) != nullptr;
}

void Rewrite::plan(ValueId value, std::vector<bool>& planned) {
  const Graph& source = rule().source;
  const GraphNode* node = value.present() ? source.producer(value) : nullptr;
  if (node == nullptr || is_sizes(value)) return;
  const auto index = static_cast<std::size_t>(node - source.nodes().data());
  if (planned[index]) return;
  planned[index] = true;
  const auto results = source.outputs(*node);
  steps_.push_back(
      {.node = index,
       .at = value,
       .output = static_cast<std::size_t>(std::ranges::find(results, value) - results.begin())});
  for (const ValueId operand : source.inputs(*node)) plan(operand, planned);
}

void Rewrite::match(EGraph& graph, ClassId root,
                    const std::function<bool(const Match&)>& found) const {
  Matching(*this, graph, found).at(root);
}

Rewrite::Target Rewrite::target_on(EGraph& graph, const Match& match) const {
  const Graph& source = rule().source;
  rules::Fit fit(*pattern_);
  const auto found = [&](ValueId id) -> const EClass* {
    const ClassId value = id.present() ? match.values[id.index] : ClassId{};
    return value.present() ? &graph.at(value) : nullptr;
  };
  for (std::uint32_t i = 0; i < source.value_count(); ++i)
    if (const EClass* is = found(ValueId{i}))
      if (!fit.take_type(source.type(ValueId{i}), *is->type)) return std::nullopt;
  for (std::size_t n = 0; n < source.nodes().size(); ++n)
    if (const Application* node = match.nodes[n])
      if (!fit.take_attrs(source.nodes()[n], *node->attrs, node->inputs)) return std::nullopt;
  for (std::uint32_t i = 0; i < source.value_count(); ++i) {
    const ValueId id{i};
    const EClass* is = found(id);
    if (is == nullptr) continue;
    if (const Tensor* number = source.constant(id);
        number && !fit.is_constant(*number, *is->constant))
      return std::nullopt;
    if (is_sizes(id) && !fit.take_sizes(*pattern_->known[i].value, *is->constant))
      return std::nullopt;
  }
  const auto shown_type = [&](ValueId id) -> const Type* {
    const EClass* is = found(id);
    return is == nullptr || is_sizes(id) ? nullptr : is->type;
  };
  if (!fit.complete(shown_type)) return std::nullopt;

  std::vector<ValueInfo> inputs;
  std::vector<bool> told;
  for (const ValueId id : source.inputs()) {
    const EClass* is = found(id);
    told.push_back(is != nullptr);
    if (is == nullptr)
      inputs.push_back({.present = false});
    else
      inputs.push_back(is->constant != nullptr ? constant_info(*is->constant)
                                               : ValueInfo{.type = *is->type});
  }
  if (!fit.tells_target()) return std::nullopt;
  auto target = rules::target_of(rule(), inputs, fit.binding());
  if (!target || !graph.analysis().is_told(*target, told)) return std::nullopt;
  for (std::size_t i = 0; i < source.outputs().size(); ++i) {
    const EClass* is = found(source.outputs()[i]);
    if (is == nullptr || is->type != &target->type(target->outputs()[i])) return std::nullopt;
  }
  return *std::move(target);
}

std::size_t Rewrite::Hash::operator()(const std::vector<const void*>& words) const {
  Hasher hasher;
  for (const void* word : words) hasher.add(reinterpret_cast<std::uintptr_t>(word));
  return hasher.value();
}

bool Rewrite::apply(EGraph& graph, const Match& match, std::uint32_t origin) {
  const Graph& source = rule().source;
  std::vector<const void*> key;
  for (const ClassId id : match.values) {
    key.push_back(id.present() ? graph.at(id).type : nullptr);
    key.push_back(id.present() ? graph.at(id).constant : nullptr);
  }
  for (const Application* node : match.nodes) key.push_back(node ? node->attrs : nullptr);
  const auto [it, added] = targets_.try_emplace(std::move(key));
  if (added) it->second = target_on(graph, match);
  if (!it->second) return false;

  const Graph& target = *it->second;
  std::vector<ClassId> inputs;
  for (std::size_t i = 0; i < source.inputs().size(); ++i) {
    const ClassId found = match.values[source.inputs()[i].index];
    inputs.push_back(found.present() ? found : graph.like(target, target.inputs()[i]));
  }
  Reason reason{.origin = origin, .premises = match.premises};
  const std::vector<ClassId> values = graph.add(target, inputs, origin, reason.premises);
  for (std::size_t i = 0; i < source.outputs().size(); ++i)
    graph.unite(match.values[source.outputs()[i].index], values[target.outputs()[i].index], reason);
  return true;
}

bool Rewrites::add(const rules::Rule& rule) {
  bool any = false;
  for (const rules::Rule& instance : instances(rule)) {
    any |= add_one_way(instance);
    if (rule.both_ways) any |= add_one_way(reversed(instance));
  }
  return any;
}

bool Rewrites::add_one_way(const rules::Rule& rule) {
  if (rule.source.producer(rule.source.outputs()[0]) == nullptr) return false;
  all_.push_back(
      std::make_unique<Rewrite>(std::make_shared<const rules::Pattern>(rules::pattern_of(rule))));
  return true;
}

}  // namespace tessera::egraph
