#pragma once

#include "tessera/program/group_builder.h"

namespace tessera::program {

/// Rematerialization of elementwise operators: groups of few cheap ones whose operands take no more
/// memory traffic than their result are dissolved where only other elementwise operators and
/// reductions read it. Each of these groups computes them again (GroupingOptions::recomputes_maps).
class RecomputedMaps : protected GroupBuilder {
 protected:
  explicit RecomputedMaps(const Graph& graph) : GroupBuilder(graph) {}

  void dissolve_recomputed();

 private:
  bool is_cheap(std::size_t n) const;
  std::int64_t bytes_of(ValueId value) const;
  std::optional<std::int64_t> bytes_read(std::size_t g) const;
  bool is_recomputed(std::size_t g) const;
};

}  // namespace tessera::program
