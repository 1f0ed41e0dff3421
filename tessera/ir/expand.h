#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/ir/infer.h"

namespace tessera {

/// Body of a composite operator on these inputs, as a graph of its own. Its inputs are those that
/// are present, then those named by symbolic float attributes; its outputs are the first `outputs`
/// results; one that the composite does not have on these inputs is a diagnostic. The attributes
/// are complete.
Expected<Graph> body_of(const OpDef& op, const Attrs& attrs, const std::vector<ValueInfo>& inputs,
                        int outputs);

bool is_composite(const OpDef& op);

/// Replaces composites by their bodies, in subgraphs too:  y = softmax(x)  =>  the operators that
/// softmax is made of.
///
/// Needs:  the shapes that the bodies ask for; a diagnostic if they are not known.
/// Keeps:  the meaning and the names of the results, inputs and outputs, all other nodes.
/// A core operator that `which` chooses is replaced as well if it has a body, the form in which it
/// is exported.
///
/// Leaves: no composite that `which` chooses, also not out of another's body; with `Keep`, those
///         whose bodies depend on values that are known at run time alone.
enum class NeedsValue : std::uint8_t { Fail, Keep };
Expected<Graph> expand(const Graph& graph, const std::function<bool(const OpDef&)>& which,
                       NeedsValue needs_value = NeedsValue::Fail);

}  // namespace tessera
