#pragma once

#include <limits>

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Limits of constant folding.
struct FoldLimits {
  /// Largest result in bytes. A result that is no larger than the operands that it replaces may
  /// exceed it: folding increases the size of a model by no more than this per node.
  std::int64_t most_bytes = 0;
  /// Largest number of elements of an operand; 16 excludes weights.
  std::int64_t most_numbers = std::numeric_limits<std::int64_t>::max();
  /// Whether floating-point results are folded. Off under `--numerics exact`: the interpreter may
  /// round differently from generated code.
  bool rounds = true;
};

/// Whether all elements of a constant have the same bits; false for none.
bool is_uniform(const Tensor& constant);

/// Constant folding: evaluates nodes whose operands are constants or sizes, and replaces an if of
/// known condition by its branch. Random draws are never folded.
Rewriter::Rewrite fold_rewrite(const FoldLimits& limits, Changes& changes);

}  // namespace tessera::passes
