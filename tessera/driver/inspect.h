#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tessera/ir/graph.h"

namespace tessera {

/// Statistics of a graph, including its subgraphs.
struct Inventory {
  std::map<std::string, std::int64_t> operators;  // number of nodes by operator name
  std::int64_t nodes = 0;
  std::int64_t parameters = 0;  // elements of constants
  std::int64_t parameter_bytes = 0;
  Dim multiply_adds = 0;       // symbolic if sizes are
  std::int64_t uncounted = 0;  // nodes whose work or size is unknown before run time
  /// Peak bytes of live results if each is freed after its last use; unknown where a size is.
  std::optional<std::int64_t> activation_bytes;
};

Inventory inspect(const Graph& graph);

}  // namespace tessera
