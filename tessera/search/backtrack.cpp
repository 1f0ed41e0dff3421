#include "tessera/search/backtrack.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "tessera/ir/same_graph.h"

namespace tessera::search {
namespace {

class Backtracking {
 public:
  Backtracking(const RewriteMoves& moves, cost::Model& model, const Limits& limits,
               std::size_t keep)
      : moves_(moves), model_(model), limits_(limits), keep_(keep) {}

  SearchOutcome run(std::vector<State> from) {
    best_ = std::numeric_limits<double>::infinity();
    for (State& state : from) {
      if (!is_new(state.graph)) continue;
      most_nodes_ = std::max(most_nodes_, 2 * state.graph.nodes().size() + 8);
      best_ = std::min(best_, state.seconds);
      add(std::move(state));
    }
    while (!open_.empty()) {
      const auto [seconds, number] = *open_.begin();
      open_.erase(open_.begin());
      if (seconds > limits_.alpha * best_) break;  // so are all that are left
      if (!expand(number)) break;
    }
    SearchOutcome outcome{.why = why_, .steps = steps_};
    for (const std::size_t number : ranked()) outcome.best.push_back(std::move(states_[number]));
    return outcome;
  }

 private:
  /// Expands a state; false when the search is over.
  bool expand(std::size_t number) {
    const State from = states_[number];
    bool goes_on = true;
    moves_.from(from.graph, limits_.first, [&](Neighbour next) {
      goes_on = goes_on && may_go_on();
      if (!goes_on) return false;
      consider(from, std::move(next));
      return true;
    });
    return goes_on && may_go_on();
  }

  bool may_go_on() {
    if (limits_.is_stopped()) return why_ = StopReason::Stopped, false;
    if (steps_ >= limits_.steps) return why_ = StopReason::Steps, false;
    if (limits_.is_late()) return why_ = StopReason::Time, false;
    return true;
  }

  void consider(const State& from, Neighbour next) {
    if (next.graph.nodes().size() > most_nodes_ || !is_new(next.graph)) return;
    ++steps_;
    const auto cost = model_.estimate(next.graph, cost::Boundary::Inside);
    if (!cost || cost->seconds > limits_.alpha * best_) return;
    next.by.before = from.seconds;
    next.by.after = cost->seconds;
    std::vector<RuleApplication> path = from.path;
    path.push_back(std::move(next.by));
    best_ = std::min(best_, cost->seconds);
    add({std::move(next.graph), cost->seconds, std::move(path)});
  }

  void add(State state) {
    open_.emplace(state.seconds, states_.size());
    states_.push_back(std::move(state));
    if (open_.size() <= limits_.most_states) return;
    states_[std::prev(open_.end())->second].graph = {};
    open_.erase(std::prev(open_.end()));
  }

  bool is_new(const Graph& graph) {
    std::vector<Graph>& like = seen_[graph.hash()];
    if (std::ranges::any_of(like, [&](const Graph& g) { return same_graph(g, graph); }))
      return false;
    like.push_back(graph);
    return true;
  }

  std::vector<std::size_t> ranked() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (!states_[i].graph.outputs().empty()) all.push_back(i);
    std::ranges::stable_sort(all, {}, [&](std::size_t i) { return states_[i].seconds; });
    all.resize(std::min(all.size(), keep_));
    return all;
  }

  const RewriteMoves& moves_;
  cost::Model& model_;
  const Limits& limits_;
  std::size_t keep_;
  std::vector<State> states_;
  std::set<std::pair<double, std::size_t>> open_;               // cost, number
  std::unordered_map<std::uint64_t, std::vector<Graph>> seen_;  // looked up only
  std::size_t most_nodes_ = 0;
  double best_ = 0;
  std::int64_t steps_ = 0;
  StopReason why_ = StopReason::Exhausted;
};

}  // namespace

std::string_view to_string(StopReason stop) {
  switch (stop) {
    case StopReason::Exhausted: return "all reachable graphs were visited";
    case StopReason::Steps: return "the step budget is used up";
    case StopReason::Time: return "the time budget is used up";
    case StopReason::Stopped: return "stopped";
  }
  return {};
}

Expected<SearchOutcome> backtrack(std::vector<State> from, const RewriteMoves& moves,
                                  cost::Model& model, const Limits& limits, std::size_t keep) {
  return Backtracking(moves, model, limits, keep).run(std::move(from));
}

}  // namespace tessera::search
