#pragma once

#include "tessera/codegen/llvm/lanes.h"

/// NVPTX instructions on f32.
namespace tessera::codegen::nvptx {

/// Whether the target is an NVIDIA GPU and x is f32.
bool takes(const Lanes& x);

/// Division a / b without branches, for b from 1 to 2^100, where the reciprocal is a normal number;
/// slightly more than half an ulp. A general division calls a function for operands of very
/// different magnitude, which costs registers in the code around it.
Lanes quotient(const Lanes& a, const Lanes& b);

}  // namespace tessera::codegen::nvptx
