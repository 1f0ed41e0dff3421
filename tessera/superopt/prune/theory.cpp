#include "tessera/superopt/prune/theory.h"

#include <algorithm>

#include "tessera/ir/bind.h"
#include "tessera/prove/draw.h"
#include "tessera/superopt/prune/canonical.h"

namespace tessera::superopt {
namespace {

using egraph::ClassId;
using egraph::EGraph;
using rules::Rule;

/// One side of a rule specialized to sizes; integers that follow from them become constants.
Expected<Graph> sized(const Graph& side, const SizeValues& sizes) {
  const Binding binding(sizes);
  GraphBuilder out;
  Vals inputs;
  for (const ValueId id : side.inputs())
    inputs.push_back(out.input({}, {.type = binding.type(side.type(id))}));
  TESSERA_TRY(const Vals outputs, placed(out, side, inputs, binding, KnownSizes::Constant));
  return out.finish(outputs);
}

Expected<prove::SizeRelations> relations_of(const Rule& rule) {
  TESSERA_TRY(prove::SizeRelations sizes, prove::relate_sizes(rule.source));
  TESSERA_TRY(sizes, prove::relate_sizes(rule.guard, sizes));
  TESSERA_TRY(sizes, prove::relate_sizes(rule.target, sizes));
  return prove::relate_outputs(rule.source, rule.target, sizes);
}

/// Both sides of a rule on one draw of sizes.
struct SizedRule {
  EGraph graph;
  std::vector<ClassId> source = {}, target = {};

  static std::optional<SizedRule> of(const Rule& rule, const SizeValues& sizes,
                                     const std::shared_ptr<egraph::OperatorAnalysis>& facts) {
    const auto source = sized(rule.source, sizes), target = sized(rule.target, sizes);
    if (!source || !target) return std::nullopt;
    SizedRule made{.graph = EGraph(facts)};
    std::vector<ClassId> inputs;
    for (std::size_t i = 0; i < source->inputs().size(); ++i) {
      const std::string name = rule.source.name(rule.source.inputs()[i]);
      const bool constant = std::ranges::find(rule.constants, name) != rule.constants.end();
      inputs.push_back(made.graph.add_input(*source, source->inputs()[i], {.constant = constant}));
    }
    const auto outputs = [&](const Graph& side) {
      egraph::Premises premises;
      const auto values = made.graph.add(side, inputs, 0, premises);
      std::vector<ClassId> classes;
      for (const ValueId id : side.outputs()) classes.push_back(values[id.index]);
      return classes;
    };
    made.source = outputs(*source);
    made.target = outputs(*target);
    return made;
  }

  bool met(const EGraph& in) const {
    return std::ranges::equal(source, target, [&](ClassId a, ClassId b) { return in.equal(a, b); });
  }
};

}  // namespace

Expected<Done> Theory::add(const Rule& rule) {
  for (const Rule& instance : instances(rule)) {
    TESSERA_TRY(Rule plain, resolved(instance));
    plain.both_ways = true;
    rewrites_.add(plain);
  }
  return Done{};
}

std::optional<std::vector<std::string>> Theory::derivation(const Rule& rule) {
  std::vector<std::string> by;
  const std::vector<Rule> all = instances(rule);
  if (all.empty()) return std::nullopt;
  for (const Rule& instance : all)
    if (!derive(instance, by)) return std::nullopt;
  return by;
}

bool Theory::derive(const Rule& instance, std::vector<std::string>& by) {
  const auto relations = relations_of(instance);
  if (!relations) return false;
  const auto may_use = [&](const Rule& rule) {
    return rule.numerics.kind <= instance.numerics.kind;
  };
  Rng rng(options_.seed);
  for (int draw = 0; draw < options_.draws; ++draw) {
    constexpr prove::Spread kSpreads[] = {prove::Spread::Up, prove::Spread::Down};
    const auto sizes =
        prove::draw_apart(*relations, draw < 2 ? kSpreads[draw] : prove::Spread::Any, rng);
    auto sides = sizes ? SizedRule::of(instance, *sizes, rewrites_.analysis()) : std::nullopt;
    if (!sides) return false;
    saturate(sides->graph, rewrites_, options_.limits,
             {.goal = [&](const EGraph& graph) { return sides->met(graph); }, .may_use = may_use});
    if (!sides->met(sides->graph)) return false;
    for (std::size_t i = 0; i < sides->source.size(); ++i)
      for (std::string& name : sides->graph.explain(sides->source[i], sides->target[i]))
        if (std::ranges::find(by, name) == by.end()) by.push_back(std::move(name));
  }
  return true;
}

}  // namespace tessera::superopt
