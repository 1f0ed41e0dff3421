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

/// Groups of nodes that are being made, and which of them need results of
/// others. None needs itself through others, so that there is an order in which
/// they can be computed.
class GrowingGroups {
 public:
  explicit GrowingGroups(const Graph& graph);

  static constexpr std::size_t kMostNodes = 48;  // of a group

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
  bool is_single_use(ValueId value) const { return users_[value.index].size() == 1; }
  /// Windows that move over the axes behind the first two.
  bool is_image(std::size_t n) const;

  /// The inputs of a node that other nodes compute, and these nodes.
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
  void collect_needs(std::size_t n, std::set<std::size_t>& needs) const;
  /// What a group has become a part of, or itself.
  std::size_t current(std::size_t g) const;
  bool depends(std::size_t g, std::size_t on) const;

  /// A new group of one node.
  std::size_t start(std::size_t n);
  void join(std::size_t n, std::size_t g);
  /// Whether a node may become a part of a group, along with views before it.
  bool may_join(std::size_t n, std::size_t g, const std::vector<std::size_t>& views = {}) const;
  void merge(std::size_t from, std::size_t into);

  /// What others than its nodes use of a group.
  std::vector<ValueId> results_of(std::size_t g) const;

  /// The groups, in an order in which they can be computed.
  Grouping finished();

 protected:
  const Graph& graph_;
  Grouping out_;
  std::vector<Growing> growing_;
  std::vector<std::optional<std::size_t>> group_of_;  // by node
  std::vector<std::vector<std::size_t>> users_;       // by value; nodes().size(): the caller
  std::vector<std::optional<std::size_t>> node_of_;   // by value

 private:
  bool reads_finished(std::size_t n, std::size_t g, const std::vector<std::size_t>& joining) const;

  std::map<std::size_t, std::size_t> moved_;
};

}  // namespace tessera::program
