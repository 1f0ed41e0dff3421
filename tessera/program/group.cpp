#include "tessera/program/group.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>

#include "tessera/program/classify.h"
#include "tessera/program/stage.h"

namespace tessera::program {
namespace {

constexpr std::size_t kMostNodes = 48;  // of a group

using Extents = std::vector<std::int64_t>;

class Grouper {
 public:
  explicit Grouper(const Graph& graph) : graph_(graph) {
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

  Grouping run() {
    for (std::size_t n = 0; n < out_.kinds.size(); ++n) {
      if (group_of_[n]) continue;  // of a bundle
      switch (out_.kinds[n]) {
        case NodeKind::View:
        case NodeKind::Transpose:
        case NodeKind::Move: break;
        case NodeKind::Map: map(n); break;
        case NodeKind::Reduction: reduction(n); break;
        case NodeKind::Contraction:
          if (!attention(n)) take_maps(start(n), n);
          break;
        case NodeKind::Alone:
        case NodeKind::Scatter:
        case NodeKind::Window:
        case NodeKind::Host: start(n); break;
      }
    }
    finish();
    return std::move(out_);
  }

 private:
  /// A group that is being made.
  struct Growing {
    NodeGroup group;
    std::set<std::size_t> needs = {};    // groups whose results it reads
    std::optional<Extents> domain = {};  // of its reductions
    std::vector<bool> folded = {};       // axes of the domain
    bool gone = false;                   // it has become a part of another
  };

  Extents shape(ValueId value) const { return *static_shape(graph_.type(value)); }
  ValueId result(std::size_t n) const { return graph_.outputs(graph_.nodes()[n])[0]; }

  /// The node that computes what is read: behind moves, whose elements are computed where they are
  /// read. Nothing for inputs, constants and what is behind a view.
  template <class Visit>
  void for_each_source(std::size_t n, const Visit& visit) const {
    for (const ValueId input : graph_.inputs(graph_.nodes()[n])) {
      if (!input.present()) continue;
      const auto from = node_of_[input.index];
      if (!from) continue;
      visit(input, *from);
    }
  }

  /// The groups that a node needs, through views and moves.
  void collect_needs(std::size_t n, std::set<std::size_t>& needs) const {
    for_each_source(n, [&](ValueId, std::size_t from) {
      if (group_of_[from])
        needs.insert(current(*group_of_[from]));
      else
        collect_needs(from, needs);
    });
  }

  std::size_t current(std::size_t g) const {
    while (moved_.contains(g)) g = moved_.at(g);
    return g;
  }

  bool depends(std::size_t g, std::size_t on) const {
    std::set<std::size_t> seen;
    const std::function<bool(std::size_t)> walk = [&](std::size_t at) {
      at = current(at);
      if (at == on) return true;
      if (!seen.insert(at).second) return false;
      return std::ranges::any_of(growing_[at].needs, walk);
    };
    return walk(g);
  }

  std::size_t start(std::size_t n) {
    Growing made;
    made.group.kind = out_.kinds[n];
    made.group.why = out_.why_host[n];
    made.group.spatial =
        (made.group.kind == NodeKind::Contraction || made.group.kind == NodeKind::Window) &&
        is_image(n);
    growing_.push_back(std::move(made));
    join(n, growing_.size() - 1);
    return growing_.size() - 1;
  }

  /// Windows that move over the axes behind the first two.
  bool is_image(std::size_t n) const {
    return graph_.type(result(n)).shape->size() >= 3 && is_windowed(out_.stages[n][0]);
  }

  void join(std::size_t n, std::size_t g) {
    growing_[g].group.nodes.push_back(n);
    collect_needs(n, growing_[g].needs);
    group_of_[n] = g;
    growing_[g].needs.erase(g);
  }

  /// Whether a node reads a group through views or moves that do not join along with it: they read
  /// what is there when the group has been computed, or elements other than the node's own.
  bool reads_finished(std::size_t n, std::size_t g, const std::vector<std::size_t>& joining) const {
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

  /// Whether a node may become a part of a group, along with views before it.
  bool may_join(std::size_t n, std::size_t g, const std::vector<std::size_t>& views = {}) const {
    if (growing_[g].group.nodes.size() >= kMostNodes || reads_finished(n, g, views)) return false;
    std::set<std::size_t> needs;
    collect_needs(n, needs);
    return std::ranges::none_of(needs,
                                [&](std::size_t other) { return other != g && depends(other, g); });
  }

  static Extents without_ones(Extents shape) {
    std::erase(shape, 1);
    return shape;
  }

  /// A view that only adds or takes away axes of one position.
  bool is_thin(std::size_t n) const {
    return out_.kinds[n] == NodeKind::View && !out_.stages[n].empty();
  }

  bool is_single_use(ValueId value) const { return users_[value.index].size() == 1; }

  void map(std::size_t n) {
    const Extents own = shape(result(n));
    std::optional<std::size_t> best;
    const auto rank = [&](std::size_t g) {
      switch (growing_[g].group.kind) {
        case NodeKind::Contraction: return 3;
        case NodeKind::Reduction: return 2;
        case NodeKind::Window: return 2;
        default: return 1;
      }
    };
    std::vector<std::size_t> views, best_views;
    for_each_source(n, [&](ValueId input, std::size_t from) {
      views.clear();
      while (is_thin(from) && is_single_use(input) && node_of_[out_.sources[from].index]) {
        views.push_back(from);
        input = out_.sources[from];
        from = *node_of_[input.index];
      }
      if (!group_of_[from]) return;
      const std::size_t g = current(*group_of_[from]);
      const bool reduces = growing_[g].group.kind == NodeKind::Reduction;
      if ((reduces && !views.empty()) || !takes_map(g, input, own) || !may_join(n, g, views))
        return;
      if (best && (rank(g) < rank(*best) || (rank(g) == rank(*best) && g <= *best))) return;
      best = g;
      best_views = views;
    });
    if (!best) {
      if (!bundle(n)) start(n);
      return;
    }
    for (const std::size_t view : best_views) join(view, *best);
    join(n, *best);
    // Other maps that only this node reads are computed along with it.
    for_each_source(n, [&](ValueId input, std::size_t from) {
      if (!group_of_[from]) return;
      const std::size_t g = current(*group_of_[from]);
      if (g != *best && growing_[g].group.kind == NodeKind::Map && is_single_use(input) &&
          shape(input) == own && growing_[g].group.nodes.size() + 1 < kMostNodes &&
          results_of(g).size() == 1 && !depends(g, *best) &&
          growing_[*best].group.kind != NodeKind::Contraction)
        merge(g, *best);
    });
  }

  /// Maps of a result that several of them read, up to the one that all end in: they join the group
  /// of the result as a whole. The first of them is n.
  bool bundle(std::size_t n) {
    for (const ValueId input : graph_.inputs(graph_.nodes()[n])) {
      if (!input.present() || !node_of_[input.index]) continue;
      std::size_t from = *node_of_[input.index];
      std::vector<std::size_t> views;
      for (ValueId made = input; is_thin(from);) {
        made = out_.sources[from];
        if (!is_single_use(made) || !node_of_[made.index]) break;
        views.push_back(from);
        from = *node_of_[made.index];
      }
      if (!group_of_[from]) continue;
      const std::size_t g = current(*group_of_[from]);
      const NodeKind kind = growing_[g].group.kind;
      if ((kind != NodeKind::Contraction && kind != NodeKind::Window) ||
          results_of(g).size() != 1 || !may_join(n, g, views))
        continue;
      const std::vector<std::size_t> nodes = bundle_of(input, n);
      if (nodes.empty() || growing_[g].group.nodes.size() + nodes.size() > kMostNodes) continue;
      for (const auto& joined : {views, nodes})
        for (const std::size_t node : joined) join(node, g);
      return true;
    }
    return false;
  }

  std::vector<std::size_t> bundle_of(ValueId value, std::size_t first) const {
    constexpr std::size_t reach = 24;
    std::vector<std::size_t> nodes;
    const auto is_inside = [&](std::size_t n) {
      return std::ranges::find(nodes, n) != nodes.end();
    };
    const auto all_users_inside = [&](ValueId v) {
      return std::ranges::all_of(users_[v.index], is_inside);
    };
    for (std::size_t n = first; n < std::min(first + reach, out_.kinds.size()); ++n) {
      if (out_.kinds[n] != NodeKind::Map || group_of_[n] || shape(result(n)) != shape(value))
        continue;
      bool reads = false, available = true;
      for (const ValueId input : graph_.inputs(graph_.nodes()[n])) {
        if (!input.present()) continue;
        const auto from = node_of_[input.index];
        const bool inside = input == value || (from && is_inside(*from));
        reads = reads || inside;
        available = available && (inside || !from || *from < first);
      }
      if (!reads || !available) continue;
      nodes.push_back(n);
      const bool closed = all_users_inside(value) &&
                          std::all_of(nodes.begin(), nodes.end() - 1, [&](std::size_t inner) {
                            return all_users_inside(result(inner));
                          });
      if (closed) return nodes;
    }
    return {};
  }

  bool takes_map(std::size_t g, ValueId input, const Extents& own) const {
    const Growing& growing = growing_[g];
    switch (growing.group.kind) {
      case NodeKind::Map:
      case NodeKind::Window:
      case NodeKind::Contraction:
        return is_single_use(input) && without_ones(shape(input)) == without_ones(own);
      case NodeKind::Reduction:
        return own == *growing.domain || own == reduced(growing, own.size());
      default: return false;
    }
  }

  /// The domain with its folded axes of size 1, or without them.
  static Extents reduced(const Growing& growing, std::size_t rank) {
    Extents result;
    for (std::size_t i = 0; i < growing.domain->size(); ++i) {
      if (!growing.folded[i])
        result.push_back((*growing.domain)[i]);
      else if (rank == growing.domain->size())
        result.push_back(1);
    }
    return result;
  }

  void reduction(std::size_t n) {
    const auto how = reduction_of(out_.stages[n][0]);
    std::optional<std::size_t> source;
    std::optional<Extents> domain;
    for_each_source(n, [&](ValueId input, std::size_t from) {
      if (tensor_name(input) != how->operand) return;
      domain = shape(input);
      if (group_of_[from]) source = current(*group_of_[from]);
    });
    if (!domain)  // an input or a constant
      for (const ValueId input : graph_.inputs(graph_.nodes()[n]))
        if (input.present() && tensor_name(input) == how->operand) domain = shape(input);
    if (source && may_join(n, *source)) {
      Growing& g = growing_[*source];
      const bool same =
          g.group.kind == NodeKind::Reduction && g.domain == domain && g.folded == how->folded;
      if (same || g.group.kind == NodeKind::Map) {
        g.group.kind = NodeKind::Reduction;
        g.domain = domain;
        g.folded = how->folded;
        join(n, *source);
        return;
      }
    }
    // Those that fold the same tensor in the same way belong together.
    for (std::size_t g = growing_.size(); g-- > 0;)
      if (!growing_[g].gone && growing_[g].group.kind == NodeKind::Reduction &&
          growing_[g].domain == domain && growing_[g].folded == how->folded &&
          reads_tensor(g, how->operand) && may_join(n, g)) {
        join(n, g);
        return;
      }
    const std::size_t g = start(n);
    growing_[g].domain = domain;
    growing_[g].folded = how->folded;
  }

  bool reads_tensor(std::size_t g, const std::string& name) const {
    for (const std::size_t n : growing_[g].group.nodes)
      for (const ValueId input : graph_.inputs(graph_.nodes()[n]))
        if (input.present() && tensor_name(input) == name) return true;
    return false;
  }

  std::vector<ValueId> results_of(std::size_t g) const {
    const auto& nodes = growing_[g].group.nodes;
    std::vector<ValueId> results;
    for (const std::size_t n : nodes)
      for (const ValueId output : graph_.outputs(graph_.nodes()[n]))
        if (std::ranges::any_of(users_[output.index], [&](std::size_t user) {
              return std::ranges::find(nodes, user) == nodes.end();
            }))
          results.push_back(output);
    return results;
  }

  void merge(std::size_t from, std::size_t into) {
    Growing& source = growing_[from];
    Growing& target = growing_[into];
    target.group.nodes.insert(target.group.nodes.end(), source.group.nodes.begin(),
                              source.group.nodes.end());
    std::ranges::sort(target.group.nodes);
    target.needs.insert(source.needs.begin(), source.needs.end());
    source.gone = true;
    moved_.emplace(from, into);
    target.needs.erase(from);
    target.needs.erase(into);
  }

  /// Maps that only this contraction reads are computed along with it, if that computes their
  /// elements about once: each is read for one row, and there are few columns.
  void take_maps(std::size_t g, std::size_t n) {
    constexpr std::int64_t most_columns = 512;
    for_each_source(n, [&](ValueId input, std::size_t from) {
      if (!group_of_[from] || !is_single_use(input)) return;
      const std::size_t map = current(*group_of_[from]);
      const auto columns = columns_of(out_.stages[n][0], tensor_name(input));
      if (growing_[map].group.kind == NodeKind::Map && results_of(map).size() == 1 && columns &&
          *columns <= most_columns && !reads_beyond(out_.stages[n][0], tensor_name(input)))
        merge(map, g);
    });
  }

  bool has_weights(std::size_t n) const {
    return std::ranges::any_of(graph_.inputs(graph_.nodes()[n]), [&](ValueId input) {
      return input.present() && graph_.constant(input) != nullptr;
    });
  }

  /// Whether a maximum is among what a group folds, as in a softmax.
  bool has_maximum(std::size_t g) const {
    return std::ranges::any_of(growing_[g].group.nodes, [&](std::size_t n) {
      if (out_.kinds[n] != NodeKind::Reduction) return false;
      const auto fold = tile::main_fold(out_.stages[n][0]);
      return fold != nullptr && fold->simple() == Fn::Max;
    });
  }

  /// A product of what a softmax makes of another product, if nobody else sees these.
  bool attention(std::size_t n) {
    if (is_image(n) || has_weights(n)) return false;
    std::optional<std::size_t> rows;
    for_each_source(n, [&](ValueId input, std::size_t from) {
      if (!group_of_[from] || !is_single_use(input)) return;
      const std::size_t g = current(*group_of_[from]);
      if (growing_[g].group.kind == NodeKind::Reduction && results_of(g).size() == 1 &&
          growing_[g].domain == shape(input) && growing_[g].folded.back() &&
          std::ranges::count(growing_[g].folded, true) == 1 && has_maximum(g))
        rows = g;
    });
    if (!rows) return false;
    std::optional<std::size_t> scores;
    std::vector<std::size_t> views;  // between scores and rows
    for (const std::size_t g : growing_[*rows].needs) {
      const Growing& before = growing_[current(g)];
      if (before.group.kind != NodeKind::Contraction || before.group.spatial ||
          !before.group.parts.empty())
        continue;
      if (std::ranges::any_of(before.group.nodes, [&](std::size_t node) {
            return out_.kinds[node] == NodeKind::Contraction && has_weights(node);
          }))
        continue;
      const auto made = results_of(current(g));
      if (made.size() != 1) continue;
      ValueId seen = made[0];
      std::vector<std::size_t> thin;
      while (is_single_use(seen) && users_[seen.index][0] < n && is_thin(users_[seen.index][0])) {
        thin.push_back(users_[seen.index][0]);
        seen = result(thin.back());
      }
      const auto& nodes = growing_[*rows].group.nodes;
      const bool only_here = shape(seen) == *growing_[*rows].domain &&
                             std::ranges::all_of(users_[seen.index], [&](std::size_t user) {
                               return std::ranges::find(nodes, user) != nodes.end();
                             });
      if (!only_here) continue;
      scores = current(g);
      views = std::move(thin);
    }
    if (!scores || !may_join(n, *rows)) return false;
    std::set<std::size_t> needs;
    collect_needs(n, needs);
    for (const std::size_t other : needs)
      if (other != *rows && depends(other, *scores)) return false;
    const std::size_t whole = start(n);
    std::vector<NodeGroup> parts{growing_[*scores].group, growing_[*rows].group,
                                 growing_[whole].group};
    merge(*scores, whole);
    merge(*rows, whole);
    for (const std::size_t view : views)
      if (!group_of_[view]) join(view, whole);
    growing_[whole].group.parts = std::move(parts);
    return true;
  }

  void finish() {
    // In the order of their last nodes, as far as they do not need each other.
    std::vector<int> waiting(growing_.size(), 0);
    std::vector<std::vector<std::size_t>> next(growing_.size());
    for (std::size_t g = 0; g < growing_.size(); ++g) {
      if (growing_[g].gone) continue;
      std::set<std::size_t> needs;
      for (const std::size_t other : growing_[g].needs)
        if (current(other) != g) needs.insert(current(other));
      waiting[g] = static_cast<int>(needs.size());
      for (const std::size_t other : needs) next[other].push_back(g);
    }
    using Entry = std::pair<std::size_t, std::size_t>;  // last node, group
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    const auto push = [&](std::size_t g) { ready.emplace(growing_[g].group.nodes.back(), g); };
    for (std::size_t g = 0; g < growing_.size(); ++g) {
      if (growing_[g].gone) continue;
      std::ranges::sort(growing_[g].group.nodes);
      if (waiting[g] == 0) push(g);
    }
    while (!ready.empty()) {
      const std::size_t g = ready.top().second;
      ready.pop();
      growing_[g].group.results = results_of(g);
      for (NodeGroup& part : growing_[g].group.parts) {
        std::ranges::sort(part.nodes);
        part.results = {result(part.nodes.back())};
      }
      out_.groups.push_back(growing_[g].group);
      for (const std::size_t other : next[g])
        if (--waiting[other] == 0) push(other);
    }
  }

  const Graph& graph_;
  Grouping out_;
  std::vector<Growing> growing_;
  std::vector<std::optional<std::size_t>> group_of_;  // by node
  std::map<std::size_t, std::size_t> moved_;
  std::vector<std::vector<std::size_t>> users_;      // by value; nodes().size(): the caller
  std::vector<std::optional<std::size_t>> node_of_;  // by value
};

}  // namespace

Grouping group_nodes(const Graph& graph) {
  return Grouper(graph).run();
}

}  // namespace tessera::program
