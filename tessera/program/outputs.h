#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tessera/program/places.h"

namespace tessera::program {

/// Result buffers of nodes. An output of the graph is written directly to the caller's memory if it
/// is computed in row-major order, as a view of a result too; otherwise it is copied there at the
/// end.
class Outputs {
 public:
  Outputs(const Graph& graph, DraftBuilder& out);

  /// Adds the buffer of a result: in the caller's memory if possible, else in the arena, in this
  /// dtype.
  runtime::ValueIndex add_result(ValueId result, const AxisOrder& order,
                                 std::optional<DType> dtype = std::nullopt);
  /// Discards the buffers of results that will be computed in another way.
  void withdraw(const std::vector<ValueId>& results);

  /// Sets the outputs of the program and appends the copies that are needed.
  Expected<Done> finish(Places& places, Boundary boundary);

 private:
  /// Whether a value may lie in the caller's memory, in another shape: host steps read shapes.
  bool is_movable(runtime::ValueIndex value) const;

  const Graph& graph_;
  DraftBuilder& out_;
  std::set<std::uint32_t> outputs_;                         // values of the graph
  std::map<std::uint32_t, runtime::ValueIndex> of_caller_;  // by value of the graph
};

}  // namespace tessera::program
