#include "tessera/search/saturate.h"

#include <algorithm>
#include <set>

#include "tessera/expr/work.h"
#include "tessera/ir/infer.h"
#include "tessera/ir/same_graph.h"
#include "tessera/ir/verify.h"
#include "tessera/search/extract.h"

namespace tessera::search {
namespace {

using egraph::ClassId;
using egraph::NodeId;

/// Size limit of a region's e-graph.
constexpr std::size_t kMostNodes = 1500;
constexpr int kMostIterations = 5;

double bytes_of(const Type& type) {
  if (!type.is_ranked_tensor()) return 0;
  const auto count = product(*type.shape).constant();
  return count ? static_cast<double>(*count * byte_width(type.dtype)) : 0;
}

double multiply_adds_of(const egraph::Application& applied) {
  const auto signature = signature_of(applied.inputs);
  if (!signature || !applied.op->define) return 0;
  const auto definition = applied.op->define(*applied.attrs, *signature);
  const auto sizes = definition ? solve_sizes(*definition, shapes_of(*signature))
                                : Expected<Sizes>(definition.error());
  if (!sizes) return 0;
  double sum = 0;
  for (const Output& output : definition->outputs)
    sum += static_cast<double>(multiply_adds(output, *sizes).constant().value_or(0));
  return sum;
}

/// Rough cost of a single node, independent of the machine: ranks graphs before the cost model is
/// queried.
double weight_of(const egraph::EGraph& graph, const egraph::ENode& node) {
  constexpr double kPerMultiplyAdd = 2.0 / 50e9, kPerByte = 1.0 / 20e9, kPerNode = 1e-6;
  const auto is_known = [&](ClassId id) {
    return !id.present() || graph.at(id).from_constants || graph.at(id).constant != nullptr;
  };
  // Work on weights is free (folded at compile time); still, less of it is better.
  if (std::ranges::all_of(node.inputs, is_known)) return 1e-12;
  double bytes = 0;
  for (const ClassId id : node.inputs)
    if (!is_known(id)) bytes += bytes_of(*graph.at(id).type);
  for (const ClassId id : node.outputs) bytes += bytes_of(*graph.at(id).type);
  return kPerNode + kPerByte * bytes + kPerMultiplyAdd * multiply_adds_of(*node.application);
}

/// Local search over extraction choices.
class LocalSearch {
 public:
  LocalSearch(const RewriteMoves& moves, cost::Model& model, const Limits& limits,
              const Graph& from, const egraph::EGraph& egraph, const std::vector<ClassId>& values)
      : moves_(moves),
        model_(model),
        limits_(limits),
        from_(from),
        egraph_(egraph),
        values_(values),
        extraction_(egraph, from, values,
                    [&](const egraph::ENode& node) { return weight_of(egraph, node); }) {}

  Expected<SearchOutcome> run() {
    TESSERA_TRY(const cost::Estimate start, model_.estimate(from_, cost::Boundary::Inside));
    outcome_.best.push_back({from_, start.seconds, {}});
    std::optional<NodeChoice> chosen = extraction_.least();
    if (chosen && may_go_on() && try_out(*chosen)) improve(*std::move(chosen));
    if (found_) outcome_.best.push_back(*std::move(found_));
    std::ranges::stable_sort(outcome_.best, {}, &State::seconds);
    return std::move(outcome_);
  }

 private:
  bool may_go_on() {
    if (limits_.is_stopped()) return outcome_.why = StopReason::Stopped, false;
    if (outcome_.steps >= limits_.steps) return outcome_.why = StopReason::Steps, false;
    if (limits_.is_late()) return outcome_.why = StopReason::Time, false;
    return true;
  }

  void improve(NodeChoice chosen) {
    for (bool better = true; better;) {
      better = false;
      const NodeChoice now = chosen;
      for (const auto& [id, used] : now)
        for (const NodeId node : extraction_.alternatives(id)) {
          if (!chosen.contains(id) || chosen.at(id) == node) continue;
          if (!may_go_on()) return;
          const std::optional<NodeChoice> other = extraction_.with(chosen, id, node);
          if (!other || !try_out(*other)) continue;
          chosen = *other;
          better = true;
        }
    }
  }

  /// Evaluates a choice; true if it is the best so far.
  bool try_out(const NodeChoice& chosen) {
    const std::optional<Graph> graph = extraction_.graph(chosen);
    if (!graph || !verify(*graph)) return false;
    RuleApplication by;
    auto normal_form = moves_.normalized(*graph, by.also);
    if (!normal_form || !seen_.insert(normal_form->hash()).second) return false;
    ++outcome_.steps;
    const auto cost = model_.estimate(*normal_form, cost::Boundary::Inside);
    if (!cost || (found_ && cost->seconds >= found_->seconds)) return false;
    found_ = State{*std::move(normal_form), cost->seconds, path_of(chosen, cost->seconds)};
    return true;
  }

  /// Rules that created the chosen nodes, each with the value that it rewrites.
  std::vector<RuleApplication> path_of(const NodeChoice& chosen, double seconds) const {
    std::map<std::string, std::string> places;
    for (const auto& [id, node] : chosen)
      if (const std::uint32_t origin = egraph_.node(node).origin; origin != 0)
        places.emplace(egraph_.origin_name(origin), place_of(id));
    std::vector<RuleApplication> path;
    for (const auto& [rule, where] : places)
      path.push_back({.rule = rule,
                      .where = where,
                      .before = outcome_.best.front().seconds,
                      .after = seconds});
    return path;
  }

  std::string place_of(ClassId id) const {
    for (const GraphNode& node : from_.nodes())
      for (const ValueId value : from_.outputs(node))
        if (values_[value.index].present() && egraph_.equal(values_[value.index], id))
          return from_.name(value);
    return "a value that is new";
  }

  const RewriteMoves& moves_;
  cost::Model& model_;
  const Limits& limits_;
  const Graph& from_;
  const egraph::EGraph& egraph_;
  const std::vector<ClassId>& values_;
  Extraction extraction_;
  SearchOutcome outcome_;
  std::optional<State> found_;
  std::set<std::uint64_t> seen_;
};

}  // namespace

SaturationSearch::SaturationSearch(const RewriteMoves& moves) : moves_(moves) {
  for (const rules::Rule& rule : moves.rules())
    if (!moves.exact() || rule.numerics.kind == rules::Numerics::Kind::Exact) rewrites_.add(rule);
}

Expected<SearchOutcome> SaturationSearch::run(const Graph& from, cost::Model& model,
                                              const Limits& limits) {
  egraph::EGraph egraph(rewrites_.analysis());
  const std::vector<ClassId> values = egraph.add(from);
  egraph::Limits how{.nodes = std::max(kMostNodes, 4 * from.nodes().size()),
                     .iterations = kMostIterations,
                     .stop = limits.stop};
  if (limits.deadline != Clock::time_point::max())
    how.seconds = std::chrono::duration<double>(limits.deadline - Clock::now()).count() / 2;
  egraph::saturate(egraph, rewrites_, how);
  return LocalSearch(moves_, model, limits, from, egraph, values).run();
}

}  // namespace tessera::search
