#pragma once

#include "tessera/codegen/llvm/lanes.h"

namespace tessera::codegen {

// Math functions of f32 and f64 that CPUs have no instruction for. Within 2 ulp, except where the
// precision is Fast: that applies to f32, and f64 stays exact.

Lanes exp(const Lanes& x, Precision precision, Sign sign = Sign::Any);
Lanes exp2(const Lanes& x, Precision precision, Sign sign = Sign::Any);
Lanes sigmoid(const Lanes& x, Precision precision);
Lanes tanh(const Lanes& x, Precision precision);
Lanes erf(const Lanes& x, Precision precision);

/// 2^(high + low), where |high| is below twice the largest exponent and low is a correction of less
/// than an ulp of high.
Lanes exp2_of_sum(const Lanes& high, const Lanes& low);

Lanes log(const Lanes& x);
Lanes log2(const Lanes& x);
Lanes pow(const Lanes& x, const Lanes& y);

Lanes sin(const Lanes& x);
Lanes cos(const Lanes& x);

/// Remainder of x / y with the sign of x, exact. Leaves the builder in another basic block.
Lanes rem(const Lanes& x, const Lanes& y);

/// Map function on integers or bools. Nothing traps and nothing is poison.
Lanes map_integers(tile::Function function, bool is_signed, std::span<const Lanes> in);

/// Conversion with the semantics of Code::Cast.
Lanes cast(const Lanes& x, DType from, DType to);

}  // namespace tessera::codegen
