#pragma once

#include <span>

#include "tessera/codegen/llvm/math.h"

namespace tessera::codegen::ptx {

/// As codegen::emit_map, with what the hardware has for it: exponentials of f32 by its own unit and
/// a correction of the argument's rounding, 3 ulp at most; what would be subnormal is 0. erf is
/// of 1.1 ulp. Where they may be fast, so are sigmoid, of 6 ulp, and tanh, of 4; what is subnormal
/// is 0.
Pieces emit_function(llvm::IRBuilderBase& ir, tile::Function function, DType dtype,
                     std::span<const Pieces> operands, Precision precision);

/// As codegen::emit_cast; f32 becomes f16 and bf16 two at a time.
Pieces emit_conversion(llvm::IRBuilderBase& ir, const Pieces& x, DType from, DType to);

/// 1 + erf(scale · x) of f32, within 2e-7 and at half the cost of its parts: what the sum rounds
/// away of erf is not computed, for where functions may be fast. The scale is positive and near 1.
Pieces one_plus_erf(llvm::IRBuilderBase& ir, const Pieces& x, double scale);

/// factor · (1 + erf(scale · x)), of a factor with the sign of x: no sign is asked for.
Pieces times_one_plus_erf(llvm::IRBuilderBase& ir, const Pieces& factor, const Pieces& x,
                          double scale);

}  // namespace tessera::codegen::ptx
