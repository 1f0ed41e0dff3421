#include "tessera/program/group_builder.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "tessera/program/classify.h"

namespace tessera::program {

GroupBuilder::GroupBuilder(const Graph& graph) : graph_(graph) {
  const auto nodes = graph.nodes();
  group_of_.resize(nodes.size());
  users_.resize(graph.value_count());
  node_of_.resize(graph.value_count());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    NodeClass node = classify(graph, nodes[n]);
    out_.kinds.push_back(node.kind);
    out_.stages.push_back(std::move(node.stages));
    out_.sources.push_back(node.source);
    out_.why_host.push_back(std::move(node.why));
    for (const ValueId input : graph.inputs(nodes[n]))
      if (input.present()) users_[input.index].push_back(n);
    for (const ValueId output : graph.outputs(nodes[n])) node_of_[output.index] = n;
  }
  for (const ValueId output : graph.outputs()) users_[output.index].push_back(nodes.size());
}

void GroupBuilder::collect_needs(std::size_t n, std::set<std::size_t>& needs) const {
  for_each_source(n, [&](ValueId, std::size_t from) {
    if (group_of_[from])
      needs.insert(current(*group_of_[from]));
    else
      collect_needs(from, needs);
  });
}

std::size_t GroupBuilder::current(std::size_t g) const {
  while (moved_.contains(g)) g = moved_.at(g);
  return g;
}

bool GroupBuilder::depends(std::size_t g, std::size_t on) const {
  std::set<std::size_t> seen;
  const std::function<bool(std::size_t)> walk = [&](std::size_t at) {
    at = current(at);
    if (at == on) return true;
    if (!seen.insert(at).second) return false;
    return std::ranges::any_of(open_groups_[at].needs, walk);
  };
  return walk(g);
}

std::size_t GroupBuilder::start(std::size_t n) {
  OpenGroup made;
  made.group.kind = out_.kinds[n];
  made.group.why = out_.why_host[n];
  made.group.spatial =
      (made.group.kind == NodeKind::Contraction || made.group.kind == NodeKind::Window) &&
      is_image(n);
  made.group.filters = made.group.spatial && is_filter(out_.stages[n][0]);
  open_groups_.push_back(std::move(made));
  join(n, open_groups_.size() - 1);
  return open_groups_.size() - 1;
}

bool GroupBuilder::is_image(std::size_t n) const {
  return graph_.type(result(n)).shape->size() >= 3 && is_windowed(out_.stages[n][0]);
}

void GroupBuilder::join(std::size_t n, std::size_t g) {
  open_groups_[g].group.nodes.push_back(n);
  collect_needs(n, open_groups_[g].needs);
  group_of_[n] = g;
  open_groups_[g].needs.erase(g);
}

/// Whether a node reads a group through views or moves that do not join along
/// with it: they read what is there when the group has been computed, or
/// elements other than the node's own.
bool GroupBuilder::reads_finished(std::size_t n, std::size_t g,
                                  const std::vector<std::size_t>& joining) const {
  bool finished = false;
  for_each_source(n, [&](ValueId, std::size_t from) {
    if (finished || group_of_[from]) return;
    if (std::ranges::find(joining, from) != joining.end()) {
      finished = reads_finished(from, g, joining);
    } else {
      std::set<std::size_t> needs;
      collect_needs(from, needs);
      finished = needs.contains(g);
    }
  });
  return finished;
}

bool GroupBuilder::may_join(std::size_t n, std::size_t g,
                            const std::vector<std::size_t>& views) const {
  if (open_groups_[g].group.nodes.size() >= kMostNodes || reads_finished(n, g, views)) return false;
  std::set<std::size_t> needs;
  collect_needs(n, needs);
  return std::ranges::none_of(needs,
                              [&](std::size_t other) { return other != g && depends(other, g); });
}

std::vector<ValueId> GroupBuilder::results_of(std::size_t g) const {
  const auto& nodes = open_groups_[g].group.nodes;
  std::vector<ValueId> results;
  for (const std::size_t n : nodes)
    for (const ValueId output : graph_.outputs(graph_.nodes()[n]))
      if (std::ranges::any_of(users_[output.index], [&](std::size_t user) {
            return std::ranges::find(nodes, user) == nodes.end();
          }))
        results.push_back(output);
  return results;
}

void GroupBuilder::merge(std::size_t from, std::size_t into) {
  OpenGroup& source = open_groups_[from];
  OpenGroup& target = open_groups_[into];
  target.group.nodes.insert(target.group.nodes.end(), source.group.nodes.begin(),
                            source.group.nodes.end());
  std::ranges::sort(target.group.nodes);
  target.needs.insert(source.needs.begin(), source.needs.end());
  source.gone = true;
  moved_.emplace(from, into);
  target.needs.erase(from);
  target.needs.erase(into);
}

void GroupBuilder::dissolve(std::size_t g) {
  OpenGroup& source = open_groups_[g];
  for (const std::size_t n : source.group.nodes) {
    out_.kinds[n] = NodeKind::Move;
    group_of_[n].reset();
  }
  source.gone = true;
  for (std::size_t other = 0; other < open_groups_.size(); ++other) {
    std::set<std::size_t>& needs = open_groups_[other].needs;
    const auto is_this = [&](std::size_t need) { return current(need) == g; };
    if (open_groups_[other].gone || std::erase_if(needs, is_this) == 0) continue;
    needs.insert(source.needs.begin(), source.needs.end());
  }
}

Grouping GroupBuilder::finished() {
  // In the order of their last nodes, as far as they do not need each other.
  std::vector<int> waiting(open_groups_.size(), 0);
  std::vector<std::vector<std::size_t>> next(open_groups_.size());
  for (std::size_t g = 0; g < open_groups_.size(); ++g) {
    if (open_groups_[g].gone) continue;
    std::set<std::size_t> needs;
    for (const std::size_t other : open_groups_[g].needs)
      if (current(other) != g) needs.insert(current(other));
    waiting[g] = static_cast<int>(needs.size());
    for (const std::size_t other : needs) next[other].push_back(g);
  }
  using Entry = std::pair<std::size_t, std::size_t>;  // last node, group
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](std::size_t g) { ready.emplace(open_groups_[g].group.nodes.back(), g); };
  for (std::size_t g = 0; g < open_groups_.size(); ++g) {
    if (open_groups_[g].gone) continue;
    std::ranges::sort(open_groups_[g].group.nodes);
    if (waiting[g] == 0) push(g);
  }
  while (!ready.empty()) {
    const std::size_t g = ready.top().second;
    ready.pop();
    open_groups_[g].group.results = results_of(g);
    for (NodeGroup& part : open_groups_[g].group.parts) {
      std::ranges::sort(part.nodes);
      part.results = {result(part.nodes.back())};
    }
    out_.groups.push_back(open_groups_[g].group);
    for (const std::size_t other : next[g])
      if (--waiting[other] == 0) push(other);
  }
  return std::move(out_);
}

}  // namespace tessera::program
