#pragma once

#include <limits>

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Limits of constant folding.
struct FoldLimits {
  /// Of a result. One that is no larger than the operands whose place it takes may have more:
  /// folding makes no model larger than it was by more than that.
  std::int64_t most_bytes = 0;
  /// Of an operand: 16 leaves weights alone, whatever is made of them.
  std::int64_t most_numbers = std::numeric_limits<std::int64_t>::max();
  /// Whether floating-point results are folded. Off under `--numerics exact`: the interpreter may
  /// round differently from generated code.
  bool rounds = true;
};

/// Computes at compile time what depends on constants and sizes alone; takes the branch of an if
/// whose condition is known. Draws are never folded.
Rewriter::Change folding(const FoldLimits& limits, Changes& changes);

}  // namespace tessera::passes
