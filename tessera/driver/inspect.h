#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tessera/ir/graph.h"

namespace tessera {

/// What is in a graph, its subgraphs included.
struct Inventory {
  std::map<std::string, std::int64_t> operators;  // name -> how many
  std::int64_t nodes = 0;
  std::int64_t parameters = 0;  // elements of constants
  std::int64_t parameter_bytes = 0;
  Dim multiply_adds = 0;       // over symbolic sizes where there are any
  std::int64_t uncounted = 0;  // nodes whose work or size is not known before a run
  /// The most bytes of results alive at one time when each is freed after its last use; unknown
  /// where a size is.
  std::optional<std::int64_t> activation_bytes;
};

Inventory inspect(const Graph& graph);

}  // namespace tessera
