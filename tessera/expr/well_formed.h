#pragma once

#include <string>

#include "tessera/expr/definition.h"

namespace tessera {

/// Type error at the root of an expression, whose operands are well typed; empty if there is none.
/// Indices and bounds are integers, conditions booleans, bitwise functions do not take floats, and
/// a fold combines into the sorts that it starts from.
std::string sort_error(const Scalar& scalar);

/// Scope error of a definition; empty if there is none. Every index is an axis in scope, every
/// partial belongs to a fold, no axis has two sizes in one place, and the operands determine all
/// sizes.
std::string scope_error(const Definition& definition);

}  // namespace tessera
