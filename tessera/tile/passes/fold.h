#pragma once

#include <optional>

#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {

/// Appends an operation to the result, simplified: returns an existing value where one already
/// equals it.
ValueId make(Rewrite& out, Operation op, Type type);

/// Simplification of one operation by identities: the equal existing value, if there is one. For
/// operations of one result: `fold_shape` handles data movement, `fold_number` arithmetic,
/// `fold_memory` pointers and views.
std::optional<ValueId> fold_shape(Rewrite& out, const Operation& op, const Type& type);
std::optional<ValueId> fold_number(Rewrite& out, const Operation& op, const Type& type);
std::optional<ValueId> fold_memory(Rewrite& out, const Operation& op, const Type& type);

}  // namespace tessera::tile
