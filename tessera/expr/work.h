#pragma once

#include "tessera/expr/definition.h"
#include "tessera/expr/shape.h"

namespace tessera {

/// Number of multiply-adds of an output: for every sum of products, one for each term whose
/// condition holds. A bound that is computed from data counts as one iteration.
Dim multiply_adds(const Output& output, const Sizes& sizes);

}  // namespace tessera
