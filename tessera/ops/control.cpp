#include "tessera/ops/opdef.h"

// Control flow: the meaning is in the subgraphs. A subgraph is closed; what it uses of the outer
// graph (`captures`) is passed to the node last and to each subgraph last.

namespace tessera::define {

OpDef if_else() {
  return {
      .name = "if_else",
      .summary = "the results of the first subgraph where the condition holds, else of the second",
      .inputs = {"condition", "captures*"},
      .outputs = {"out*"},
      .control = OpDef::Control::If};
}

OpDef loop() {
  return {.name = "loop",
          .summary =
              "repeats its subgraph (step, condition, states, captures) -> (condition, states, "
              "results) while the condition holds; results are stacked up",
          .inputs = {"trips?", "condition?", "values*"},
          .outputs = {"out*"},
          .attrs = {required_attr("states", 0)},
          .control = OpDef::Control::Loop};
}

OpDef scan() {
  return {.name = "scan",
          .summary =
              "runs its subgraph (states, slices, captures) -> (states, results) along an axis of "
              "each of its elements; results are stacked up",
          .inputs = {"values*"},
          .outputs = {"out*"},
          .attrs = {required_attr("states", 0),
                    required_attr("elements", 0),
                    {"input_axes", Ints{}},
                    {"input_directions", Ints{}},
                    {"output_axes", Ints{}},
                    {"output_directions", Ints{}}},
          .control = OpDef::Control::Scan};
}

}  // namespace tessera::define
