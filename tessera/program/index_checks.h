#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "tessera/program/backend.h"
#include "tessera/program/index_uses.h"
#include "tessera/program/places.h"

namespace tessera::program {

/// Bounds check of the indices of a node, before it is computed.
struct IndexCheck {
  std::size_t node = 0;
  IndexUse use = {};
  runtime::step::CheckIndices step = {};
};

/// Bounds checks of indices (gather, scatter) that programs need at run time, without duplicates.
/// Constant indices are checked at compile time.
class IndexChecks {
 public:
  IndexChecks(const Graph& graph, const Decisions& decisions, const CompileOptions& options)
      : graph_(graph),
        decisions_(decisions),
        checks_computed_(backend_of(options.machine).checks_computed_indices) {}

  /// Whether a group computes indices that need a check before a node of the same group uses them.
  bool are_computed_in(const NodeGroup& group) const;
  /// Checks of a group that are not emitted yet.
  Expected<std::vector<IndexCheck>> of(const NodeGroup& group, Places& places) const;
  void add(const std::vector<IndexCheck>& checks, DraftBuilder& out);

 private:
  bool is_of_caller(ValueId value) const;

  const Graph& graph_;
  const Decisions& decisions_;
  const bool checks_computed_;
  std::set<IndexUse> checked_;
};

}  // namespace tessera::program
