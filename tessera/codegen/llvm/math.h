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

/// Precision of float functions: within 2 ulp of f32, or a few ulp and faster.
enum class Precision : std::uint8_t { Exact, Fast };

/// Known sign of a function's argument, which may be NaN in any case.
enum class Sign : std::uint8_t { Any, NotPositive };

/// A value split into pieces of the same LLVM type, a scalar or a native vector each. f16 is half,
/// bf16 is bfloat, bool is i1.
using Pieces = std::vector<llvm::Value*>;

/// Emits a Map function on elements of `dtype`, inline and without calls. All pieces go through
/// each step together, which provides instruction-level parallelism. f16 and bf16 are computed in
/// f32 and rounded. Integers and bools (i1) are supported, and comparisons, which give i1.
///
/// CPU features are read from the function's "target-features", if they are set by then. The
/// remainder of floats is a loop: it leaves the builder in another basic block.
///
/// NaN, infinities, signed zeros and subnormals are handled as docs/tile.md specifies.
Pieces emit_map(llvm::IRBuilderBase& ir, tile::Function function, DType dtype,
                std::span<const Pieces> operands, Precision precision, Sign sign = Sign::Any);

/// Emits a conversion between dtypes with the semantics of Code::Cast.
Pieces emit_cast(llvm::IRBuilderBase& ir, const Pieces& x, DType from, DType to);

}  // namespace tessera::codegen
