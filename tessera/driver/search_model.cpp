#include "tessera/driver/search_model.h"

#include <algorithm>
#include <functional>

#include "tessera/expr/condition.h"
#include "tessera/rules/explain.h"
#include "tessera/rules/shipped.h"
#include "tessera/rules/text.h"
#include "tessera/support/stopwatch.h"

namespace tessera {
namespace {

/// Corrected region of a mutant, in words; empty for other rules.
std::string region_of(const rules::Rule& rule) {
  return rule.mutant ? rules::in_words(rule.mutant->wrong) : "";
}

/// Descriptions of the applied rules.
std::map<std::string, RuleNote> notes_on(
    const search::SearchResult& found,
    std::initializer_list<std::reference_wrapper<const std::vector<rules::Rule>>> known) {
  std::map<std::string, RuleNote> notes;
  const auto note = [&](const std::string& name) {
    for (const std::vector<rules::Rule>& rules : known)
      if (const auto rule = std::ranges::find(rules, name, &rules::Rule::name); rule != rules.end())
        notes[name] = {rule->about, rules::in_words(rule->guard), rules::to_text(rule->numerics),
                       region_of(*rule)};
  };
  for (const std::string& name : found.normalization) note(name);
  for (const search::Choice& choice : found.choices)
    for (const search::RuleApplication& step : choice.rules) {
      note(step.rule);
      for (const std::string& name : step.also) note(name);
    }
  return notes;
}

/// Whether the target GPU is not one of this computer: the graph is chosen by the cost model alone.
bool is_absent(const Diagnostic& why) {
  return why.id == "cuda-missing" || why.id == "cuda-architecture";
}

/// Number of timing blocks that fit into the remaining time.
int timing_blocks(double seconds_left, const search::SearchResult& found) {
  constexpr int kLeast = 7, kMost = 30;
  const double one = std::max(1e-6, found.before + found.after);
  return static_cast<int>(std::clamp(0.7 * seconds_left / one, double{kLeast}, double{kMost}));
}

}  // namespace

Expected<SearchedGraph> search_graph(const Graph& graph, const program::CompileOptions& code,
                                     const SearchOptions& options) {
  constexpr double kSearching = 0.5;  // of the time; the rest is for the comparison
  constexpr double kTrials = 0.25;    // of the time, on top of it
  const Stopwatch watch;
  TESSERA_TRY(std::vector<rules::Rule> rules, rules::shipped_by_hand());
  std::vector<rules::Rule> mutants;
  if (options.mutants) {
    TESSERA_TRY(mutants, rules::shipped_mutants());
    rules.insert(rules.end(), mutants.begin(), mutants.end());
  }
  TESSERA_TRY(const std::vector<rules::Rule> more, rules::shipped_by_enumeration());
  TESSERA_TRY(const std::unique_ptr<cost::Model> model,
              cost::open_model({.code = code, .store = options.store, .target = options.target}));
  TESSERA_TRY(search::SearchResult found, search::optimize(graph, rules, *model,
                                                           {.alpha = options.alpha,
                                                            .steps = options.steps,
                                                            .seconds = kSearching * options.seconds,
                                                            .exact = options.exact,
                                                            .more = more,
                                                            .stop = options.stop,
                                                            .progress = options.progress}));
  SearchedGraph result{.graph = graph, .report = {.kept = found.better}};
  SearchReport& report = result.report;
  const bool stopped = options.stop != nullptr && *options.stop;
  // On a GPU, kernels are estimated, and whole graphs are timed where it is the one of this
  // computer.
  const bool is_gpu = code.machine.is_gpu();
  if (found.better && !options.steps && !stopped && (model->can_measure() || is_gpu)) {
    cost::CompareOptions how{.code = code, .stop = options.stop};
    how.blocks = timing_blocks(options.seconds - watch.seconds(), found);
    auto comparison = cost::compare(graph, found.graph, how);
    if (comparison) {
      report.kept = comparison->high < 1;
      report.comparison = *std::move(comparison);
    } else if (comparison.error().id != "stopped" && !(is_gpu && is_absent(comparison.error()))) {
      return std::move(comparison).error();
    }
  }
  if (options.trials && options.mutants) {
    std::vector<rules::Rule> exposing = rules;
    std::erase_if(exposing,
                  [](const rules::Rule& rule) { return rule.helps != rules::Helps::WithMutant; });
    search::TrialOptions trials{.seconds = kTrials * options.seconds, .stop = options.stop};
    if (is_gpu)
      trials.time_graph = [&](const Graph& part) {
        return cost::time_program(part, {.code = code, .blocks = 5, .stop = options.stop});
      };
    TESSERA_TRY(report.trials, search::try_mutants(graph, mutants, exposing, *model, trials));
  }
  if (options.stop != nullptr) *options.stop = false;
  if (report.kept) result.graph = found.graph;
  report.rules = notes_on(found, {rules, more});
  report.found = std::move(found);
  report.found.graph = {};
  report.seconds = watch.seconds();
  return result;
}

}  // namespace tessera
