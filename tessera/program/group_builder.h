#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tessera/program/group.h"

namespace tessera::program {

using Extents = std::vector<std::int64_t>;

/// Fusion groups under construction and their dependences, which are kept acyclic.
class GroupBuilder {
 public:
  explicit GroupBuilder(const Graph& graph);

  static constexpr std::size_t kMostNodes = 48;  // of a group

  /// A group under construction.
  struct OpenGroup {
    NodeGroup group;
    std::set<std::size_t> needs = {};    // groups that it depends on
    std::optional<Extents> domain = {};  // of its reductions
    std::vector<bool> folded = {};       // axes of the domain
    bool gone = false;                   // merged into another
  };

  Extents shape(ValueId value) const { return *static_shape(graph_.type(value)); }
  ValueId result(std::size_t n) const { return graph_.outputs(graph_.nodes()[n])[0]; }
  bool is_single_use(ValueId value) const { return users_[value.index].size() == 1; }
  /// Whether the node is a window operator over spatial axes (NCHW).
  bool is_image(std::size_t n) const;

  /// Visits the inputs of a node that other nodes compute, with these nodes.
  template <class Visit>
  void for_each_source(std::size_t n, const Visit& visit) const {
    for (const ValueId input : graph_.inputs(graph_.nodes()[n])) {
      if (!input.present()) continue;
      const auto from = node_of_[input.index];
      if (!from) continue;
      visit(input, *from);
    }
  }

  /// Groups that a node depends on, directly or through views and moves.
  void collect_needs(std::size_t n, std::set<std::size_t>& needs) const;
  /// The group that this one was merged into, or itself.
  std::size_t current(std::size_t g) const;
  bool depends(std::size_t g, std::size_t on) const;

  /// A new group of one node.
  std::size_t start(std::size_t n);
  void join(std::size_t n, std::size_t g);
  /// Whether a node, with the views before it, can join a group without a cycle.
  bool may_join(std::size_t n, std::size_t g, const std::vector<std::size_t>& views = {}) const;
  void merge(std::size_t from, std::size_t into);
  /// Takes the nodes of a group out of all groups: those that read them compute them, as moves.
  void dissolve(std::size_t g);

  /// Values of a group with uses outside.
  std::vector<ValueId> results_of(std::size_t g) const;

  /// The groups, in topological order.
  Grouping finished();

 protected:
  const Graph& graph_;
  Grouping out_;
  std::vector<OpenGroup> open_groups_;
  std::vector<std::optional<std::size_t>> group_of_;  // by node
  std::vector<std::vector<std::size_t>> users_;       // by value; nodes().size(): the caller
  std::vector<std::optional<std::size_t>> node_of_;   // by value

 private:
  bool reads_finished(std::size_t n, std::size_t g, const std::vector<std::size_t>& joining) const;

  std::map<std::size_t, std::size_t> moved_;
};

}  // namespace tessera::program
