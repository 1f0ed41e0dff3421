#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "tessera/expr/definition.h"

/// Constant folding over symbolic sizes. Every function returns nothing where the result would
/// depend on the values of the symbols.
namespace tessera::symbolic {

/// Whether a < b holds for all sizes, or for none.
std::optional<bool> decided_less(const Dim& a, const Dim& b);

/// Value known at compile time: an integer or boolean (0 or 1) as a Dim; a float as a number, or as
/// a Dim if it is a whole number that contains symbols.
using SymbolicValue = std::variant<Dim, double>;
using MaybeSymbolicValue = std::optional<SymbolicValue>;

MaybeSymbolicValue known(const Dim& dim);
std::optional<std::int64_t> integer(const SymbolicValue& known);
/// The value as a Dim if it is a whole number.
std::optional<Dim> whole(const SymbolicValue& known);

/// Converts a value to the common sort of an operation's arguments.
MaybeSymbolicValue joined(const SymbolicValue& known, Sort to);
/// Converts a value to a dtype. A size is assumed to fit into 32 bits.
MaybeSymbolicValue converted(const SymbolicValue& known, DType to);

/// Applies a scalar function to arguments of one sort (except Select, whose arguments have
/// several).
MaybeSymbolicValue applied(Fn fn, Sort sort, const std::vector<SymbolicValue>& args);

/// Element at a row-major position, if it is known.
MaybeSymbolicValue element(const Argument& argument, std::int64_t position);

}  // namespace tessera::symbolic
