#include "tessera/search/mutant_trials.h"

#include <algorithm>
#include <map>

#include "tessera/ir/bind.h"
#include "tessera/rules/apply.h"
#include "tessera/rules/explain.h"
#include "tessera/search/regions.h"
#include "tessera/support/stopwatch.h"

namespace tessera::search {
namespace {

using rules::Rule;

/// The graphs of one place: what is replaced, the mutant, and the corrected mutant.
struct TrialGraphs {
  std::string rule, where, region;
  Graph before, mutant, after;
  std::size_t places = 1;
  double ratio = 1;  // of the corrected mutant to what it replaces, by the cost model
};

/// One side of a rule where it matches, with the constants of the graph.
Expected<Graph> side_of(const Graph& graph, const rules::Match& match, const Graph& side) {
  Rule rule = match.rule();
  rule.target = side;
  std::vector<ValueInfo> known;
  std::vector<const Tensor*> constants;
  for (const ValueId input : rule.source.inputs()) {
    const ValueId value = match.values[input.index];
    constants.push_back(value.present() ? graph.constant(value) : nullptr);
    known.push_back(value.present() ? ValueInfo{.type = graph.type(value)}
                                    : ValueInfo{.present = false});
  }
  TESSERA_TRY(const Graph made, rules::target_of(rule, known, match.binding));
  GraphBuilder out;
  Vals inputs;
  for (std::size_t i = 0; i < constants.size(); ++i)
    inputs.push_back(constants[i] != nullptr
                         ? out.constant(*constants[i])
                         : out.input({}, {.type = made.type(made.inputs()[i])}));
  TESSERA_TRY(const Vals outputs, placed(out, made, inputs, {}, KnownSizes::Constant));
  return out.finish(outputs);
}

/// A graph in which the exposing rules were applied wherever they match.
Expected<Graph> exposed(const Graph& graph, const std::vector<Rule>& exposing) {
  std::vector<Rule> instances;
  for (const Rule& rule : exposing)
    for (Rule& instance : rules::instances(rule)) instances.push_back(std::move(instance));
  const rules::RuleSet set(instances);
  Graph current = graph;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const std::vector<rules::Match> matches = rules::matches(current, set);
    if (matches.empty()) break;
    TESSERA_TRY(current, rules::apply(current, matches[0]));
  }
  return current;
}

std::string name_of(const Graph& graph, ValueId value) {
  if (graph.is_named(value)) return graph.name(value);
  // The operand of an addition that a bias was taken out of.
  for (const GraphNode& node : graph.nodes())
    if (std::ranges::count(graph.inputs(node), value) > 0 && graph.is_named(graph.outputs(node)[0]))
      return graph.name(graph.outputs(node)[0]);
  return graph.name(value);
}

/// Adds the places of mutants in a graph; places that differ only in weights count as one.
void add_places(const Graph& graph, const std::vector<Rule>& mutants,
                std::map<std::string, TrialGraphs>& all) {
  std::vector<Rule> instances;
  for (const Rule& rule : mutants)
    for (Rule& instance : rules::instances(rule)) instances.push_back(std::move(instance));
  for (const rules::Match& match : rules::matches(graph, rules::RuleSet(instances))) {
    const Rule& rule = match.rule();
    auto before = side_of(graph, match, rule.source);
    if (!before) continue;
    const std::string key = rule.name + "\n" + skeleton(*before);
    if (const auto it = all.find(key); it != all.end()) {
      ++it->second.places;
      continue;
    }
    auto after = side_of(graph, match, rule.target);
    auto mutant = rule.mutant ? side_of(graph, match, rule.mutant->target) : after;
    if (!after || !mutant) continue;
    all.emplace(key,
                TrialGraphs{.rule = rule.name,
                            .where = name_of(graph, match.values[rule.source.outputs()[0].index]),
                            .region = rule.mutant ? rules::in_words(rule.mutant->wrong) : "",
                            .before = *std::move(before),
                            .mutant = *std::move(mutant),
                            .after = *std::move(after)});
  }
}

struct GraphTime {
  double seconds = 0;
  bool measured = false;
};

/// Time of a part of a graph: measured if asked, else by the cost model.
Expected<GraphTime> time_of(const Graph& graph, bool measures, cost::Model& model,
                            const TrialOptions& options) {
  if (measures && !model.can_measure() && options.time_graph)
    if (const auto seconds = options.time_graph(graph)) return GraphTime{*seconds, true};
  TESSERA_TRY(const cost::Estimate cost, measures ? model.measure(graph, cost::Boundary::Inside)
                                                  : model.estimate(graph, cost::Boundary::Inside));
  return GraphTime{cost.seconds, cost.measured};
}

}  // namespace

Expected<std::vector<MutantTrial>> try_mutants(const Graph& graph, const std::vector<Rule>& mutants,
                                               const std::vector<Rule>& exposing,
                                               cost::Model& model, const TrialOptions& options) {
  const Stopwatch watch;
  std::map<std::string, TrialGraphs> all;
  add_places(graph, mutants, all);
  TESSERA_TRY(const Graph open, exposed(graph, exposing));
  add_places(open, mutants, all);

  std::map<std::string, std::size_t> places;  // by rule
  std::vector<TrialGraphs*> ranked;
  for (auto& [key, trial] : all) {
    places[trial.rule] += trial.places;
    const auto before = model.estimate(trial.before, cost::Boundary::Inside),
               after = model.estimate(trial.after, cost::Boundary::Inside);
    if (!before || !after) continue;
    trial.ratio = after->seconds / std::max(before->seconds, 1e-12);
    ranked.push_back(&trial);
  }
  std::ranges::stable_sort(ranked, {}, &TrialGraphs::ratio);

  std::vector<MutantTrial> trials;
  for (const TrialGraphs* one : ranked) {
    if (std::ranges::find(trials, one->rule, &MutantTrial::rule) != trials.end()) continue;
    const bool stopped = options.stop != nullptr && *options.stop;
    const bool measures = !stopped && watch.seconds() < options.seconds;
    MutantTrial trial{.rule = one->rule,
                      .where = one->where,
                      .places = places[one->rule],
                      .measured = true,
                      .region = one->region};
    for (const auto& [side, seconds] : {std::pair{&one->before, &trial.before},
                                        {&one->mutant, &trial.mutant},
                                        {&one->after, &trial.after}}) {
      TESSERA_TRY(const GraphTime time, time_of(*side, measures, model, options));
      *seconds = time.seconds;
      trial.measured = trial.measured && time.measured;
    }
    trials.push_back(std::move(trial));
  }
  std::ranges::stable_sort(trials, {}, [](const MutantTrial& trial) {
    return trial.after / std::max(trial.before, 1e-12);
  });
  return trials;
}

}  // namespace tessera::search
