#pragma once

#include "tessera/expr/definition.h"
#include "tessera/expr/shape.h"

namespace tessera {

/// How many multiply-adds an output takes: for every sum of products, one for each term that its
/// condition lets count. A bound that is computed from data counts as one step.
Dim multiply_adds(const Output& output, const Sizes& sizes);

}  // namespace tessera
