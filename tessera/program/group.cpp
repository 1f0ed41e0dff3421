#include "tessera/program/group.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tessera/program/classify.h"
#include "tessera/program/recomputed_maps.h"
#include "tessera/program/stage.h"

namespace tessera::program {
namespace {

/// Decides which nodes join which group.
class Grouper : private RecomputedMaps {
 public:
  Grouper(const Graph& graph, const GroupingOptions& options)
      : RecomputedMaps(graph), options_(options) {}

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
    if (options_.recomputes_maps) dissolve_recomputed();
    return finished();
  }

 private:
  static Extents without_ones(Extents shape) {
    std::erase(shape, 1);
    return shape;
  }

  /// A view that only adds or takes away axes of one position.
  bool is_thin(std::size_t n) const {
    return out_.kinds[n] == NodeKind::View && !out_.stages[n].empty();
  }

  void map(std::size_t n) {
    const Extents own = shape(result(n));
    std::optional<std::size_t> best;
    const auto rank = [&](std::size_t g) {
      switch (open_groups_[g].group.kind) {
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
      const bool reduces = open_groups_[g].group.kind == NodeKind::Reduction;
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
      if (g != *best && open_groups_[g].group.kind == NodeKind::Map && is_single_use(input) &&
          shape(input) == own && open_groups_[g].group.nodes.size() + 1 < kMostNodes &&
          results_of(g).size() == 1 && !depends(g, *best) &&
          open_groups_[*best].group.kind != NodeKind::Contraction)
        merge(g, *best);
    });
  }

  /// Maps of a result that several of them read, up to the one that all end in:
  /// they join the group of the result as a whole. The first of them is n.
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
      const NodeKind kind = open_groups_[g].group.kind;
      if ((kind != NodeKind::Contraction && kind != NodeKind::Window) ||
          results_of(g).size() != 1 || !may_join(n, g, views))
        continue;
      const std::vector<std::size_t> nodes = bundle_of(input, n);
      if (nodes.empty() || open_groups_[g].group.nodes.size() + nodes.size() > kMostNodes) continue;
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
    const OpenGroup& growing = open_groups_[g];
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
  static Extents reduced(const OpenGroup& growing, std::size_t rank) {
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
      OpenGroup& g = open_groups_[*source];
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
    for (std::size_t g = open_groups_.size(); g-- > 0;)
      if (!open_groups_[g].gone && open_groups_[g].group.kind == NodeKind::Reduction &&
          open_groups_[g].domain == domain && open_groups_[g].folded == how->folded &&
          reads_tensor(g, how->operand) && may_join(n, g)) {
        join(n, g);
        return;
      }
    const std::size_t g = start(n);
    open_groups_[g].domain = domain;
    open_groups_[g].folded = how->folded;
  }

  bool reads_tensor(std::size_t g, const std::string& name) const {
    for (const std::size_t n : open_groups_[g].group.nodes)
      for (const ValueId input : graph_.inputs(graph_.nodes()[n]))
        if (input.present() && tensor_name(input) == name) return true;
    return false;
  }

  /// Maps that only this contraction reads are computed along with it, if that
  /// computes their elements about once: each is read for one row, and there
  /// are few columns.
  void take_maps(std::size_t g, std::size_t n) {
    constexpr std::int64_t most_columns = 512;
    for_each_source(n, [&](ValueId input, std::size_t from) {
      if (!group_of_[from] || !is_single_use(input)) return;
      const std::size_t map = current(*group_of_[from]);
      const auto columns = columns_of(out_.stages[n][0], tensor_name(input));
      if (open_groups_[map].group.kind == NodeKind::Map && results_of(map).size() == 1 && columns &&
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
    return std::ranges::any_of(open_groups_[g].group.nodes, [&](std::size_t n) {
      if (out_.kinds[n] != NodeKind::Reduction) return false;
      const auto fold = tile::main_fold(out_.stages[n][0]);
      return fold != nullptr && fold->simple() == Fn::Max;
    });
  }

  /// A product of what a softmax makes of another product, if nobody else sees
  /// these.
  bool attention(std::size_t n) {
    if (is_image(n) || has_weights(n)) return false;
    std::optional<std::size_t> rows;
    for_each_source(n, [&](ValueId input, std::size_t from) {
      if (!group_of_[from] || !is_single_use(input)) return;
      const std::size_t g = current(*group_of_[from]);
      if (open_groups_[g].group.kind == NodeKind::Reduction && results_of(g).size() == 1 &&
          open_groups_[g].domain == shape(input) && open_groups_[g].folded.back() &&
          std::ranges::count(open_groups_[g].folded, true) == 1 && has_maximum(g))
        rows = g;
    });
    if (!rows) return false;
    std::optional<std::size_t> scores;
    std::vector<std::size_t> views;  // between scores and rows
    for (const std::size_t g : open_groups_[*rows].needs) {
      const OpenGroup& before = open_groups_[current(g)];
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
      const auto& nodes = open_groups_[*rows].group.nodes;
      const bool only_here = shape(seen) == *open_groups_[*rows].domain &&
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
    std::vector<NodeGroup> parts{open_groups_[*scores].group, open_groups_[*rows].group,
                                 open_groups_[whole].group};
    merge(*scores, whole);
    merge(*rows, whole);
    for (const std::size_t view : views)
      if (!group_of_[view]) join(view, whole);
    open_groups_[whole].group.parts = std::move(parts);
    take_cheap_maps(whole);
    return true;
  }

  /// Maps that only attention reads join it where recomputing them costs next to nothing: those of
  /// positions alone, such as causal masks, and scalings, which move to the queries.
  void take_cheap_maps(std::size_t whole) {
    const std::vector<std::size_t> nodes = open_groups_[whole].group.nodes;
    for (const std::size_t n : nodes)
      for_each_source(n, [&](ValueId input, std::size_t from) {
        if (!group_of_[from] || !is_single_use(input)) return;
        const std::size_t g = current(*group_of_[from]);
        if (g == whole || open_groups_[g].group.kind != NodeKind::Map ||
            results_of(g).size() != 1 || depends(g, whole) ||
            open_groups_[whole].group.nodes.size() + open_groups_[g].group.nodes.size() >
                kMostNodes)
          return;
        const bool product = out_.kinds[n] == NodeKind::Contraction;
        if (reads_positions(g) || (product && is_scaling(g))) merge(g, whole);
      });
  }

  /// Whether the nodes of a group read nothing but each other.
  bool reads_positions(std::size_t g) const {
    const auto& nodes = open_groups_[g].group.nodes;
    return std::ranges::all_of(nodes, [&](std::size_t n) {
      return std::ranges::all_of(out_.stages[n], [&](const tile::Stage& stage) {
        return std::ranges::all_of(stage.operands, [&](const Operand& operand) {
          return std::ranges::any_of(
              nodes, [&](std::size_t other) { return tensor_name(result(other)) == operand.name; });
        });
      });
    });
  }

  /// Whether a group is one tensor times a constant.
  bool is_scaling(std::size_t g) const {
    const auto& nodes = open_groups_[g].group.nodes;
    if (nodes.size() != 1 || out_.stages[nodes[0]].size() != 1) return false;
    const auto* apply = std::get_if<node::Apply>(&out_.stages[nodes[0]][0].output.value.node());
    return apply != nullptr && apply->fn == Fn::Mul &&
           std::ranges::any_of(apply->args, [](const Scalar& factor) {
             return std::holds_alternative<node::Constant>(factor.node());
           });
  }

  GroupingOptions options_;
};

}  // namespace

Grouping group_nodes(const Graph& graph, const GroupingOptions& options) {
  return Grouper(graph, options).run();
}

}  // namespace tessera::program
