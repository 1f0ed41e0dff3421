#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

/// Labels of a control-flow operator's subgraphs: `then` and `else`, or `body`.
std::span<const std::string_view> subgraph_labels(const OpDef& op);

/// Types of the inputs of each subgraph, from the types of the operator's own inputs (unknown for
/// one that is omitted). Attributes are complete; the number of inputs is checked.
Expected<std::vector<Type>> subgraph_inputs(const OpDef& op, const Attrs& attrs,
                                            const std::vector<Type>& inputs);

/// Checks the subgraphs against the operator and its inputs, and infers the types of the results; a
/// size that differs between runs is `Dim::undefined()`.
Expected<std::vector<Type>> control_results(
    const OpDef& op, const Attrs& attrs, const std::vector<Type>& inputs,
    std::span<const std::shared_ptr<const Graph>> subgraphs);

/// Whether one value could have both types, as far as they are known.
bool compatible(const Type& a, const Type& b);

}  // namespace tessera
