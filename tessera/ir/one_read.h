#pragma once

#include <optional>
#include <vector>

#include "tessera/ir/infer.h"

namespace tessera {

/// An operator whose one result consists of elements of an operand, each read or cast as a whole.
struct OneRead {
  Definition definition;
  const node::Read* read = nullptr;  // of the definition
  std::size_t operand = 0;           // which input of the node it is

  const Output& output() const { return definition.outputs[0]; }
};

/// Nothing for an operator of another kind, or where the definition is not known on these inputs.
std::optional<OneRead> one_read(const OpDef& op, const Attrs& attrs,
                                const std::vector<Known>& inputs);

}  // namespace tessera
