#pragma once

#include <optional>
#include <vector>

#include "tessera/ir/infer.h"

namespace tessera {

/// Data movement operator in index notation: its one result consists of elements of one operand,
/// each read unchanged or cast.
struct DataMovement {
  Definition definition;
  const node::Read* read = nullptr;  // the only access in the definition
  std::size_t operand = 0;           // number of the node's input that it reads

  const Output& output() const { return definition.outputs[0]; }
};

/// Recognizes a data movement operator; nothing for other operators, or where the definition is not
/// known on these inputs.
std::optional<DataMovement> data_movement(const OpDef& op, const Attrs& attrs,
                                          const std::vector<ValueInfo>& inputs);

}  // namespace tessera
