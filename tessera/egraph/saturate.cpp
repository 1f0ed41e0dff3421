#include "tessera/egraph/saturate.h"

#include <algorithm>
#include <unordered_set>

#include "tessera/support/hash.h"
#include "tessera/support/stopwatch.h"

namespace tessera::egraph {
namespace {

class Saturator {
 public:
  Saturator(EGraph& graph, Rewrites& rewrites, const Limits& limits,
            const SaturationOptions& options)
      : graph_(graph), limits_(limits), options_(options) {
    for (const auto& rewrite : rewrites.all())
      if (!options.may_use || options.may_use(rewrite->rule())) used_.push_back(rewrite.get());
  }

  Saturation run() {
    graph_.rebuild();
    for (;; ++result_.iterations) {
      if (options_.goal && options_.goal(graph_)) return stopped(StopReason::Goal);
      if (result_.iterations == limits_.iterations) return stopped(StopReason::Iterations);
      const std::size_t nodes = graph_.node_count(), classes = graph_.class_count();
      const std::optional<StopReason> reached = iteration();
      graph_.rebuild();
      if (reached) {
        ++result_.iterations;
        return stopped(options_.goal && options_.goal(graph_) ? StopReason::Goal : *reached);
      }
      if (graph_.node_count() == nodes && graph_.class_count() == classes && !cut_)
        return stopped(StopReason::Saturated);
    }
  }

 private:
  struct Found {
    Rewrite* rewrite;
    Rewrite::Match match;
  };

  Saturation stopped(StopReason why) {
    result_.why = why;
    return result_;
  }

  /// Finds all matches, then applies them, so that all see the same e-graph.
  std::optional<StopReason> iteration() {
    cut_ = false;
    roots_.clear();
    std::vector<Found> found;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (const auto reached = out_of_time()) return reached;
      find(i, found);
    }
    for (const Found& f : found) {
      if (graph_.node_count() >= limits_.nodes) return StopReason::Nodes;
      if (const auto reached = out_of_time()) return reached;
      if (f.rewrite->apply(graph_, f.match, graph_.origin(f.rewrite->rule().name)))
        ++result_.applied;
    }
    return std::nullopt;
  }

  void find(std::size_t index, std::vector<Found>& found) {
    std::size_t count = 0;
    const auto take = [&](const Rewrite::Match& match) {
      if (!is_new(index, match)) return true;
      if (count == limits_.matches) {
        cut_ = true;
        return false;
      }
      ++count;
      found.push_back({used_[index], match});
      return true;
    };
    for (const ClassId root : classes_with(used_[index]->root())) {
      used_[index]->match(graph_, root, take);
      if (count == limits_.matches && cut_) return;
    }
  }

  /// Whether a match was not applied before. The effect of a match is determined by the classes of
  /// its inputs and outputs and by attributes; a hash collision loses a match, and is never
  /// unsound.
  bool is_new(std::size_t index, const Rewrite::Match& match) {
    const Graph& source = used_[index]->rule().source;
    Hasher hasher;
    hasher.add(index);
    for (const auto ids : {source.inputs(), source.outputs()})
      for (const ValueId id : ids) hasher.add(graph_.find(match.values[id.index]).index);
    for (const ENode* node : match.nodes)
      hasher.add(reinterpret_cast<std::uintptr_t>(node ? &node->attrs() : nullptr));
    return seen_.insert(hasher.value()).second;
  }

  const std::vector<ClassId>& classes_with(const OpDef& op) {
    const auto [it, added] = roots_.try_emplace(&op);
    if (!added) return it->second;
    std::vector<ClassId>& all = it->second;
    for (const NodeId id : graph_.nodes_of(op))
      if (graph_.is_live(id))
        for (const ClassId output : graph_.node(id).outputs) all.push_back(graph_.find(output));
    std::ranges::sort(all);
    const auto repeated = std::ranges::unique(all);
    all.erase(repeated.begin(), repeated.end());
    return all;
  }

  std::optional<StopReason> out_of_time() const {
    if (limits_.stop != nullptr && limits_.stop->load(std::memory_order_relaxed))
      return StopReason::Stopped;
    if (limits_.seconds == std::numeric_limits<double>::infinity()) return std::nullopt;
    return watch_.seconds() > limits_.seconds ? std::optional(StopReason::Seconds) : std::nullopt;
  }

  EGraph& graph_;
  const Limits& limits_;
  const SaturationOptions& options_;
  std::vector<Rewrite*> used_;
  std::unordered_map<const OpDef*, std::vector<ClassId>> roots_;  // in this iteration
  std::unordered_set<std::uint64_t> seen_;
  bool cut_ = false;  // matches were left for the next iteration
  Saturation result_;
  Stopwatch watch_;
};

}  // namespace

std::string_view to_string(StopReason stop) {
  switch (stop) {
    case StopReason::Saturated: return "saturated";
    case StopReason::Goal: return "goal";
    case StopReason::Nodes: return "nodes";
    case StopReason::Iterations: return "iterations";
    case StopReason::Seconds: return "seconds";
    case StopReason::Stopped: return "stopped";
  }
  return "";
}

Saturation saturate(EGraph& graph, Rewrites& rewrites, const Limits& limits,
                    const SaturationOptions& options) {
  return Saturator(graph, rewrites, limits, options).run();
}

}  // namespace tessera::egraph
