#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

/// What the subgraphs of a control-flow operator are called: `then` and `else`, or `body`.
std::span<const std::string_view> subgraph_labels(const OpDef& op);

/// The types of what the operator gives to each of its subgraphs, from the types of its own inputs
/// (unknown for one that is left out). Attributes are complete; the number of inputs is checked.
Expected<std::vector<Type>> subgraph_inputs(const OpDef& op, const Attrs& attrs,
                                            const std::vector<Type>& inputs);

/// Checks that the subgraphs fit the operator and its inputs, and tells the types of the results; a
/// size that differs between runs is `Dim::undefined()`.
Expected<std::vector<Type>> control_results(
    const OpDef& op, const Attrs& attrs, const std::vector<Type>& inputs,
    std::span<const std::shared_ptr<const Graph>> subgraphs);

/// Whether a value could be of both types, as far as they are known.
bool compatible(const Type& a, const Type& b);

}  // namespace tessera
