#pragma once

#include <vector>

#include "tessera/ir/builder.h"
#include "tessera/passes/cone.h"

namespace tessera::passes {

/// Candidate graphs: instances of a composite on the inputs of a cone, to be proved equal to it.
using Candidates = std::vector<Graph>;

/// Adds the graph that `build` makes over the inputs of the cone, if its result has the right type.
template <class Build>
void add_candidate(const Graph& cone, Candidates& into, const Build& build) {
  GraphBuilder out;
  Vals inputs;
  for (const ValueId id : cone.inputs()) inputs.push_back(out.input({}, {.type = cone.type(id)}));
  auto graph = out.finish(Vals{build(out, inputs)});
  if (graph && graph->type(graph->outputs()[0]) == cone.type(cone.outputs()[0]))
    into.push_back(*std::move(graph));
}

/// Candidates of attention, softmax(scale * q k^T + mask) v: q, k, v and the mask are assigned by
/// shape, the scale is derived from the constants of the cone, and the mask is additive or boolean.
Candidates attention_candidates(const Cone& cone, const Graph& graph);

/// Candidates of rotary embedding, x * cos + rotate(x) * sin: pairs are the halves of the last axis
/// or interleaved, and angles are given per element or per pair.
Candidates rotary_candidates(const Cone& cone, const Graph& graph);

}  // namespace tessera::passes
