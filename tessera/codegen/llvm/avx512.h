#pragma once

#include "tessera/codegen/llvm/lanes.h"

/// Instructions of AVX-512 for which LLVM has no other name, on whole vectors of f32 or f64.
namespace tessera::codegen::avx512 {

/// Whether the processor has them for x.
bool takes(const Lanes& x);

/// x less the nearest integer, exactly; 0 of an infinity.
Lanes fraction(const Lanes& x);

/// x · 2^n for an integer n or an infinity, rounded once, whatever n is.
Lanes scaled(const Lanes& x, const Lanes& n);

}  // namespace tessera::codegen::avx512
