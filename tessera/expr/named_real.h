#pragma once

#include <optional>
#include <string>

#include "tessera/expr/algebra.h"

namespace tessera::algebra {

/// A real that a rounded constant of a file may stand for.
struct NamedReal {
  std::string name;  // "1/sqrt(2)"
  Sum value;
};

/// The number of few decimal digits that rounds to it (0.044715), a fraction 1/n, a root of a small
/// integer or its inverse, or one of pi's that functions are defined with: the first that lies
/// within 2 units in the last place of a float. Nothing if it is none of them, or a plain binary
/// fraction, which stands for itself.
std::optional<NamedReal> named_real(Names& names, double constant);

}  // namespace tessera::algebra
