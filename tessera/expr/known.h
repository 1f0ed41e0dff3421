#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "tessera/expr/definition.h"

/// Arithmetic on what can be told while sizes are symbols. Every function declines with nothing
/// where the answer would depend on what the symbols are.
namespace tessera::symbolic {

/// Whether a < b, if it is one of the two for all sizes.
std::optional<bool> decided_less(const Dim& a, const Dim& b);

/// An integer or truth value (0 or 1) as a Dim; a value as a number, or as a Dim if it is a whole
/// number that has symbols in it.
using Known = std::variant<Dim, double>;
using MaybeKnown = std::optional<Known>;

MaybeKnown known(const Dim& dim);
std::optional<std::int64_t> integer(const Known& known);
/// As a Dim, if it is a whole number.
std::optional<Dim> whole(const Known& known);

/// As another sort, before it meets a scalar of that sort.
MaybeKnown joined(const Known& known, Sort to);
/// As an element of that dtype. A size is taken to fit into 32 bits.
MaybeKnown converted(const Known& known, DType to);

/// A function of arguments that are all of one sort (all but Select, whose arguments are not).
MaybeKnown applied(Fn fn, Sort sort, const std::vector<Known>& args);

/// The element at a row-major position, if it is known.
MaybeKnown element(const Argument& argument, std::int64_t position);

}  // namespace tessera::symbolic
