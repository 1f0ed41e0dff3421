#pragma once

#include <span>

#include "tessera/codegen/llvm/math.h"

namespace tessera::codegen::ptx {

/// GPU version of codegen::emit_map by hardware instructions: exponentials of f32 by ex2.approx
/// with a correction of the argument's rounding, at most 3 ulp; subnormal results are 0. erf is
/// within 1.1 ulp. With fast precision, sigmoid is within 6 ulp and tanh within 4; subnormal
/// results are 0. `is_half`: results are rounded to 16 bits, so that the correction is not needed.
Pieces emit_function(llvm::IRBuilderBase& ir, tile::Function function, DType dtype,
                     std::span<const Pieces> operands, Precision precision, bool is_half);

/// GPU version of codegen::emit_cast; f32 is converted to f16 and bf16 in pairs.
Pieces emit_conversion(llvm::IRBuilderBase& ir, const Pieces& x, DType from, DType to);

/// 1 + erf(scale · x) of f32, for fast precision: absolute error 2e-7 at half the cost of its
/// parts, because bits of erf that the sum rounds away are not computed. The scale is positive and
/// near 1.
Pieces one_plus_erf(llvm::IRBuilderBase& ir, const Pieces& x, double scale);

/// factor · (1 + erf(scale · x)), of a factor with the sign of x, which saves the sign handling.
Pieces times_one_plus_erf(llvm::IRBuilderBase& ir, const Pieces& factor, const Pieces& x,
                          double scale);

}  // namespace tessera::codegen::ptx
