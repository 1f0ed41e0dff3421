#pragma once

#include <string>

#include "tessera/expr/definition.h"

namespace tessera {

/// Why an expression is not well sorted at its top, its parts being so; empty if it is: indices and
/// bounds are integers, conditions truth values, bits are not taken of values, and a fold combines
/// into the sorts that it starts from.
std::string sort_error(const Scalar& scalar);

/// Why a definition is not closed; empty if it is: every index is an axis around it, every partial
/// belongs to a fold, no axis has two sizes in one place, and the operands tell all sizes.
std::string scope_error(const Definition& definition);

}  // namespace tessera
