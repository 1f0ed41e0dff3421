#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Types of the operands of an operation under construction; none for operands that are untyped
/// numbers.
using KnownTypes = std::vector<std::optional<Type>>;

/// Type of the untyped number at operand `i`, where it follows from the other operands or from the
/// declared type of the result.
std::optional<Type> operand_type(const Operation& op, const KnownTypes& known, std::size_t i,
                                 const std::optional<Type>& declared);

}  // namespace tessera::tile
