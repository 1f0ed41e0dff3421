#pragma once

#include "tessera/codegen/llvm/lanes.h"

/// Instructions of NVIDIA's GPUs, on f32.
namespace tessera::codegen::nvptx {

/// Whether code is for such a GPU, and x is f32.
bool takes(const Lanes& x);

/// a / b for b from 1 to 2^100, where the reciprocal is an ordinary number, within half an ulp and
/// a hair: no branches. A division of any numbers calls a function where they are far apart, which
/// costs registers in all that surrounds it.
Lanes quotient(const Lanes& a, const Lanes& b);

}  // namespace tessera::codegen::nvptx
