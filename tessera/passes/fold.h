#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Computes at compile time what depends on constants and sizes alone; takes the branch of an if
/// whose condition is known.
///
/// A result may have `most_bytes`, or be no larger than an operand that it takes the place of:
/// folding makes no model larger than it was by more than that. Draws are never folded.
Rewriter::Change folding(std::int64_t most_bytes, Changes& changes);

}  // namespace tessera::passes
