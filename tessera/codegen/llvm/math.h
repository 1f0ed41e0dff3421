#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/tile/kernel.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace tessera::codegen {

/// How exact the functions of floats are: within 2 ulp of f32, or a few ulp and faster.
enum class Precision : std::uint8_t { Exact, Fast };

/// What is known of a function's argument besides that it may be NaN.
enum class Sign : std::uint8_t { Any, NotPositive };

/// One value cut into pieces of the same LLVM type, a scalar or a vector of native width each. f16
/// is half, bf16 is bfloat, bool is i1.
using Pieces = std::vector<llvm::Value*>;

/// Emits a function of Map on numbers of `dtype`, inline: no calls. All pieces go through each step
/// together, because that is what keeps the pipes of a core full. f16 and bf16 are computed in f32
/// and rounded. Integers and bools (i1) too, and compares, which give i1.
///
/// What the processor has is read from the function's "target-features", if they are there by then.
/// The remainder of floats is a loop: the builder then stands in another basic block.
///
/// NaN, infinities, signed zeros and subnormals come out as docs/tile.md says.
Pieces emit_map(llvm::IRBuilderBase& ir, tile::Function function, DType dtype,
                std::span<const Pieces> operands, Precision precision, Sign sign = Sign::Any);

/// Emits a conversion between dtypes as Code::Cast means it.
Pieces emit_cast(llvm::IRBuilderBase& ir, const Pieces& x, DType from, DType to);

}  // namespace tessera::codegen
