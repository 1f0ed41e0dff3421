#include "tessera/egraph/rewrites.h"

#include "tessera/support/hash.h"

namespace tessera::egraph {

Rewrite::Target Rewrite::target_on(EGraph& graph, const Match& match) const {
  const EGraphView view(graph);
  const std::optional<rules::Fit> fit = rules::fit_of(*pattern_, view, match);
  if (!fit || !fit->tells_target()) return std::nullopt;
  auto target = rules::target_of(rule(), view, match.values, fit->binding());
  std::vector<bool> told;
  for (const ValueId id : rule().source.inputs()) told.push_back(match.values[id.index].present());
  if (!target || !graph.analysis().is_told(*target, told)) return std::nullopt;
  const auto outputs = rule().source.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (&view.type(match.values[outputs[i].index]) != &target->type(target->outputs()[i]))
      return std::nullopt;
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
  for (const ENode* node : match.nodes) key.push_back(node ? &node->attrs() : nullptr);
  const auto [it, added] = targets_.try_emplace(std::move(key));
  if (added) it->second = target_on(graph, match);
  if (!it->second) return false;

  const Graph& target = *it->second;
  std::vector<ClassId> inputs;
  for (std::size_t i = 0; i < source.inputs().size(); ++i) {
    const ClassId found = match.values[source.inputs()[i].index];
    inputs.push_back(found.present() ? found : graph.like(target, target.inputs()[i]));
  }
  Reason reason{.origin = origin, .premises = match.equalities};
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
