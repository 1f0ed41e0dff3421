#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Removes data movement without effect, and merges sequences of it. The effect is derived from the
/// definition of an operator, whichever operator it is:
///
/// - no effect: identity, dropout at inference, a cast to the same type, a pad by 0, a slice of the
///   whole tensor, a concat of one operand, a transpose or reshape to the same type  =>  its
///   operand
/// - permutations of axes in sequence  =>  one transpose
/// - row-major order kept in sequence (reshape, flatten, squeeze, unsqueeze)  =>  one reshape
///
/// Keeps: every bit.
Rewriter::Rewrite data_movement_rewrite(Changes& changes);

}  // namespace tessera::passes
