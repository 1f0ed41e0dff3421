#pragma once

#include <optional>

#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {

/// Appends an operation on values of the result, or finds a value that is already what it computes.
ValueId make(Rewrite& out, Operation op, Type type);

/// The value that an operation on values of the result need not compute, where an identity says so.
/// Operations of one result; `fold_shape` knows those that move elements, `fold_number` those that
/// compute with them, `fold_memory` those that speak of memory.
std::optional<ValueId> fold_shape(Rewrite& out, const Operation& op, const Type& type);
std::optional<ValueId> fold_number(Rewrite& out, const Operation& op, const Type& type);
std::optional<ValueId> fold_memory(Rewrite& out, const Operation& op, const Type& type);

}  // namespace tessera::tile
