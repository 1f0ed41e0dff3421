#pragma once

#include <optional>
#include <string>

#include "tessera/expr/algebra.h"

namespace tessera::algebra {

/// Real number that a rounded constant of a model file may denote.
struct NamedReal {
  std::string name;  // "1/sqrt(2)"
  Sum value;
};

/// Recognizes a rounded constant: a number of few decimal digits (0.044715), a fraction 1/n or the
/// square of a rounded 1/sqrt(n), a root of a small integer or its inverse, or a multiple of pi
/// that functions are defined with; the first that lies within 2 units in the last place of a
/// float. Nothing if it is none of them, or a short binary fraction, which denotes itself.
std::optional<NamedReal> named_real(Names& names, double constant);

}  // namespace tessera::algebra
