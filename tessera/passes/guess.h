#pragma once

#include <vector>

#include "tessera/ir/builder.h"
#include "tessera/passes/cone.h"

namespace tessera::passes {

/// What a composite may be on the inputs of a cone: graphs to be compared with it.
using Guesses = std::vector<Graph>;

/// A graph over the inputs of a cone, built by hand.
template <class Build>
void guess(const Graph& cone, Guesses& into, const Build& build) {
  GraphBuilder out;
  Vals inputs;
  for (const ValueId id : cone.inputs()) inputs.push_back(out.input({}, {.type = cone.type(id)}));
  auto graph = out.finish(Vals{build(out, inputs)});
  if (graph && graph->type(graph->outputs()[0]) == cone.type(cone.outputs()[0]))
    into.push_back(*std::move(graph));
}

/// softmax(scale * q k^T + mask) v, by the shapes of what goes in: each number that the cone has
/// may be the scale, and a mask is added or chooses.
Guesses attention(const Cone& cone, const Graph& graph);

/// x * cos + turned(x) * sin, where the halves of the last axis change places, or its neighbours;
/// the angles are there for every element or for every pair.
Guesses rotary_embedding(const Cone& cone, const Graph& graph);

}  // namespace tessera::passes
