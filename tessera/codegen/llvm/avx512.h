#pragma once

#include "tessera/codegen/llvm/lanes.h"

/// AVX-512 instructions that LLVM exposes as target intrinsics only, on whole vectors of f32 or
/// f64.
namespace tessera::codegen::avx512 {

/// Whether the target CPU has them for the type of x.
bool takes(const Lanes& x);

/// Fraction: x minus the nearest integer, exactly; 0 for infinities.
Lanes fraction(const Lanes& x);

/// Scaling: x · 2^n for an integer n of any size or an infinity, rounded once.
Lanes scaled(const Lanes& x, const Lanes& n);
/// The same where `kept` (bools) is true, else 0.
Lanes scaled_or_zero(const Lanes& x, const Lanes& n, const Lanes& kept);

/// Quotient of f32 within 2 ulp, for a divisor from 1 to 2^126: a division blocks a port for 16
/// cycles, an approximate reciprocal of 14 bits and one iteration of Newton's method for 4.
Lanes quotient(const Lanes& a, const Lanes& b);

}  // namespace tessera::codegen::avx512
