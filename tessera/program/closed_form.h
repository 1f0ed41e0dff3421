#pragma once

#include <optional>
#include <vector>

#include "tessera/expr/scalar.h"
#include "tessera/support/tensor.h"

namespace tessera::program {

/// Element of a constant at these indices as an expression of them alone, where there is one:
///
///   integers that are affine in their indices     positions, token types: 3 + 2 * i
///   two values on the two sides of a diagonal     causal masks: select(j <= i + 1, 0, -inf)
///   two values, one of them between diagonals     sliding windows
///
/// Kernels then read no memory for it, and know more: which keys a causal mask hides.
std::optional<Scalar> closed_form(const Tensor& constant, const std::vector<Scalar>& at);

}  // namespace tessera::program
