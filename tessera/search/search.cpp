#include "tessera/search/search.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/ir/same_graph.h"
#include "tessera/passes/dce.h"
#include "tessera/passes/pipeline.h"
#include "tessera/search/saturate.h"

namespace tessera::search {
namespace {

constexpr std::size_t kMeasured = 4;      // graphs of a region
constexpr double kLeastGain = 0.005;      // of a region, to be worth a change
constexpr std::int64_t kLeastSteps = 20;  // of a region
constexpr double kSaturating = 4;         // one part in so many of the time or steps

/// Regions with equal skeletons.
struct Form {
  std::vector<std::size_t> places = {};  // regions; the first stands for all
  double seconds = 0;                    // of one
  double share() const { return seconds * static_cast<double>(places.size()); }
};

/// Rules for both search methods.
struct Rules {
  explicit Rules(RewriteMoves rules) : moves(std::move(rules)), saturation(moves) {}
  Rules(const Rules&) = delete;
  RewriteMoves moves;
  SaturationSearch saturation;
};

class Search {
 public:
  Search(RewriteMoves moves, cost::Model& model, const Options& options)
      : few_(std::move(moves)), model_(model), options_(options) {}

  Expected<SearchResult> run(const Graph& graph) {
    SearchResult found{.graph = graph};
    TESSERA_TRY(const Graph seed, normalized(graph, found.normalization));
    regions_ = regions_of(seed, options_.cut);
    std::vector<Graph> chosen;
    for (const Region& region : regions_) chosen.push_back(region.graph);
    TESSERA_TRY(const std::vector<Form> forms, forms_of_regions());
    found.regions = regions_.size();
    found.distinct = forms.size();

    TESSERA_TRY(double now, seconds_of(seed));
    const double all = std::max(now, 1e-12);
    double left = 0;
    for (const Form& form : forms) left += form.share();
    for (std::size_t f = 0; f < forms.size(); ++f) {
      if (options_.progress) options_.progress({f, forms.size(), now / all});
      const Form& form = forms[f];
      TESSERA_TRY(std::optional<ImprovedRegion> better,
                  better_form(form, left > 0 ? form.share() / left : 1, found));
      left -= form.share();
      if (!better) continue;
      for (const RuleApplication& step : better->choice.rules) paid_.insert(step.rule);
      for (const std::size_t place : form.places)
        chosen[place] =
            with_weights_of(better->graph, regions_[form.places[0]].graph, regions_[place].graph);
      now -=
          (better->choice.before - better->choice.after) * static_cast<double>(form.places.size());
      found.choices.push_back(std::move(better->choice));
    }
    TESSERA_TRY(const Graph whole, with_regions_replaced(seed, regions_, chosen));
    TESSERA_TRY(Graph made, finished(whole));
    TESSERA_TRY(found.before, seconds_of(graph));  // with what is measured by now
    TESSERA_TRY(found.after, seconds_of(made));
    std::ranges::stable_sort(found.choices, std::greater<>(), [](const Choice& choice) {
      return (choice.before - choice.after) * static_cast<double>(choice.places);
    });
    found.better = found.after < found.before && !same_graph(made, graph);
    if (found.better) found.graph = std::move(made);
    return found;
  }

 private:
  struct ImprovedRegion {
    Graph graph;
    Choice choice;
  };

  /// Applies the normalization rules to the whole graph, including weights.
  Expected<Graph> normalized(const Graph& graph, std::vector<std::string>& applied) const {
    TESSERA_TRY(passes::Optimized made,
                passes::optimize(graph, {.exact = options_.exact, .disabled = {"recognize"}}));
    for (const passes::Record& record : made.log)
      if (record.pass == "algebra")
        for (const passes::Change& change : record.changes) applied.push_back(change.what);
    return std::move(made.graph);
  }

  Expected<double> seconds_of(const Graph& graph) {
    TESSERA_TRY(const cost::Estimate estimate, model_.estimate(graph));
    return estimate.seconds;
  }

  /// Distinct regions, the most expensive first. Those that keep their rounding stay as they are.
  Expected<std::vector<Form>> forms_of_regions() {
    std::map<std::string, std::size_t> known;
    std::vector<Form> forms;
    for (std::size_t r = 0; r < regions_.size(); ++r) {
      if (regions_[r].keeps_rounding && !options_.exact) continue;
      const auto [it, is_new] = known.emplace(skeleton(regions_[r].graph), forms.size());
      if (is_new) {
        forms.emplace_back();
        const auto cost = model_.estimate(regions_[r].graph, cost::Boundary::Inside);
        if (cost) forms.back().seconds = cost->seconds;
      }
      forms[it->second].places.push_back(r);
    }
    std::ranges::stable_sort(forms, std::greater<>(), &Form::share);
    return forms;
  }

  /// Improved form of a region, within a share of the remaining budget. Where costs can be
  /// measured, the best few are, and the search restarts with the refined costs.
  Expected<std::optional<ImprovedRegion>> better_form(const Form& form, double share,
                                                      SearchResult& found) {
    const Graph& given = regions_[form.places[0]].graph;
    const bool measures = !options_.steps && model_.can_measure();
    std::vector<Candidate> candidates = {{.state = {.graph = given}}};
    const int rounds = measures ? 2 : 1;
    for (int round = 0; round < rounds; ++round) {
      TESSERA_TRY(SearchOutcome outcome, explore(given, share / (rounds - round), found));
      found.why = std::max(found.why, outcome.why);
      for (State& state : outcome.best) add(candidates, std::move(state));
      if (measures && candidates.size() > 1) {
        TESSERA_TRY_DONE(measure(candidates));
      }
      if (outcome.why == StopReason::Stopped) break;
    }
    if (measures) std::erase_if(candidates, [](const Candidate& one) { return !one.measured; });
    if (candidates.size() < 2) return std::optional<ImprovedRegion>();
    const double before = candidates[0].state.seconds;  // what was given
    Candidate& best = *std::ranges::min_element(
        candidates, {}, [](const Candidate& one) { return one.state.seconds; });
    if (best.state.path.empty() || best.state.seconds > (1 - kLeastGain) * before)
      return std::optional<ImprovedRegion>();
    return std::optional(ImprovedRegion{std::move(best.state.graph),
                                        {.nodes = given.nodes().size(),
                                         .places = form.places.size(),
                                         .rules = std::move(best.state.path),
                                         .before = before,
                                         .after = best.state.seconds,
                                         .measured = best.measured}});
  }

  /// Searches with the hand-written rules; where these lead no further, with all rules for about as
  /// long again.
  Expected<SearchOutcome> explore(const Graph& given, double share, SearchResult& found) {
    TESSERA_TRY(SearchOutcome outcome, explore(given, {}, few_, [&](double part) {
                  return limits_of(part * share, found.steps);
                }));
    found.steps += outcome.steps;
    if (outcome.why != StopReason::Exhausted || options_.more.empty()) return outcome;
    if (!all_) {
      std::vector<rules::Rule> rules = few_.moves.rules();
      rules.insert(rules.end(), options_.more.begin(), options_.more.end());
      TESSERA_TRY(RewriteMoves moves, RewriteMoves::make(rules, options_.exact));
      all_.emplace(std::move(moves));
    }
    const auto most = static_cast<double>(2 * (kLeastSteps + outcome.steps));
    TESSERA_TRY(SearchOutcome further,
                explore(given, std::move(outcome.best), *all_, [&](double part) {
                  Limits limits = limits_of(part * share, found.steps);
                  limits.steps = std::min(limits.steps, static_cast<std::int64_t>(part * most));
                  return limits;
                }));
    found.steps += further.steps;
    // Their own share of steps is not the caller's limit.
    if (further.why == StopReason::Steps && limits_of(1, found.steps).steps > 0)
      further.why = StopReason::Exhausted;
    return further;
  }

  /// Backtracking starts from the results of saturation and of earlier searches.
  Expected<SearchOutcome> explore(const Graph& given, std::vector<State> from, Rules& rules,
                                  const std::function<Limits(double part)>& limits_of_part) {
    TESSERA_TRY(SearchOutcome seeds,
                rules.saturation.run(given, model_, limits_of_part(1 / kSaturating)));
    std::ranges::move(seeds.best, std::back_inserter(from));
    Limits limits = limits_of_part(1);
    limits.steps -= std::min(limits.steps, seeds.steps);
    TESSERA_TRY(SearchOutcome outcome, backtrack(from, rules.moves, model_, limits, kMeasured));
    outcome.steps += seeds.steps;
    std::ranges::move(from, std::back_inserter(outcome.best));
    return outcome;
  }

  /// Candidate for a region; the original has no path.
  struct Candidate {
    State state;
    bool measured = false;
  };

  static void add(std::vector<Candidate>& candidates, State state) {
    const auto same = std::ranges::find_if(
        candidates, [&](const Candidate& one) { return same_graph(one.state.graph, state.graph); });
    if (same == candidates.end())
      candidates.push_back({std::move(state)});
    else if (!same->measured)
      same->state.seconds = state.seconds;
  }

  Limits limits_of(double share, std::int64_t spent) const {
    Limits limits{.alpha = options_.alpha, .stop = options_.stop, .first = paid_};
    if (options_.steps) {
      const std::int64_t left = std::max<std::int64_t>(0, *options_.steps - spent);
      const auto part = static_cast<std::int64_t>(share * static_cast<double>(left));
      limits.steps = std::min(left, std::max(kLeastSteps, part));
    } else {
      limits.deadline = deadline_of(share);
    }
    return limits;
  }

  Clock::time_point deadline_of(double share) const {
    const auto now = Clock::now();
    if (now >= end_) return now;
    return now + std::chrono::duration_cast<Clock::duration>((end_ - now) * std::min(1.0, share));
  }

  /// Measures the candidates instead of estimating them, the original first.
  Expected<Done> measure(std::vector<Candidate>& candidates) {
    for (Candidate& one : candidates) {
      if (one.measured) continue;
      if (options_.stop != nullptr && *options_.stop) break;
      TESSERA_TRY(const cost::Estimate estimate,
                  model_.measure(one.state.graph, cost::Boundary::Inside));
      one.state.seconds = estimate.seconds;
      one.measured = estimate.measured;
      if (Clock::now() >= end_) break;
    }
    return Done{};
  }

  /// Final cleanup: common subexpressions and dead code are removed. Work on weights stays: the
  /// compiler folds it, as other runtimes do, and a proof sees where weights come from.
  Expected<Graph> finished(const Graph& graph) const {
    std::vector<std::string> applied;
    TESSERA_TRY(const Graph made, few_.moves.normalized(graph, applied));
    return passes::without_dead(made);
  }

  Rules few_;
  std::optional<Rules> all_;  // with those that come later
  cost::Model& model_;
  const Options& options_;
  const Clock::time_point end_ =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(std::min(options_.seconds, 1e8)));
  std::set<std::string> paid_;  // rules that made a region better
  std::vector<Region> regions_;
};

}  // namespace

Expected<SearchResult> optimize(const Graph& graph, const std::vector<rules::Rule>& rules,
                                cost::Model& model, const Options& options) {
  TESSERA_TRY(RewriteMoves moves, RewriteMoves::make(rules, options.exact));
  return Search(std::move(moves), model, options).run(graph);
}

}  // namespace tessera::search
