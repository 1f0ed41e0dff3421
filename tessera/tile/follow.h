#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// The types of the operands that are values; none for those that are numbers.
using KnownTypes = std::vector<std::optional<Type>>;

/// The type of the number that is operand `i`, where the other operands or the declared type of the
/// result say it.
std::optional<Type> following_type(const Operation& op, const KnownTypes& known, std::size_t i,
                                   const std::optional<Type>& declared);

}  // namespace tessera::tile
