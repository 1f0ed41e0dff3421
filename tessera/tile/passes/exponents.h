#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Exponentials of differences from a row, as in a softmax, by one multiply-add per element:
///
///   exp(x * c - row)      exp2(fma(x, c * log2(e), -row * log2(e)))
///   max of x * c          (max of x) * c, for c > 0
///
/// `row` is broadcast along an axis at least, so that what is computed of it is computed once.
/// The exponential rounds differently, by about as much as the product row * log2(e).
///
/// Needs:  a simplified kernel.
/// Leaves: the rest as it is.
Kernel fuse_exponents(const Kernel& kernel);

/// Identities of the reals that floats round differently:
///
///   x + 0          x, also where x is -0
///   1 / sqrt(x)    rsqrt(x)
///
/// Needs:  a simplified kernel.
/// Leaves: the rest as it is.
Kernel simplify_reals(const Kernel& kernel);

}  // namespace tessera::tile
