#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tessera/program/places.h"

namespace tessera::program {

/// Values for the results of nodes. An output of the graph is written where the caller wants it, if
/// it is computed row by row; otherwise it is copied there at the end.
class Outputs {
 public:
  Outputs(const Graph& graph, DraftBuilder& out);

  /// A value for a result: with the caller if it can be, else in the arena as this dtype.
  runtime::ValueIndex add_result(ValueId result, const Order& order,
                                 std::optional<DType> dtype = std::nullopt);
  /// The results are computed in another way than the one that values were added for.
  void withdraw(const std::vector<ValueId>& results);

  /// Lists the outputs of the program and appends the copies that are left.
  Expected<Done> finish(Places& places, Boundary boundary);

 private:
  const Graph& graph_;
  DraftBuilder& out_;
  std::set<std::uint32_t> outputs_;                         // values of the graph
  std::map<std::uint32_t, runtime::ValueIndex> of_caller_;  // by value of the graph
};

}  // namespace tessera::program
