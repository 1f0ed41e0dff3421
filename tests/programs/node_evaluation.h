#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/support/datum.h"

namespace tessera::testing {

/// A node with the content of its operands; one that is left out is nothing.
struct NodeCall {
  Graph::NewNode node;  // its inputs are not looked at
  std::span<const Datum> operands;
};

/// What the interpreter makes of one node; nothing if it fails. `T` is the type of numbers within
/// an operator: float overflows sooner than double.
template <class T>
std::optional<std::vector<Datum>> evaluate(NodeCall call);

}  // namespace tessera::testing
