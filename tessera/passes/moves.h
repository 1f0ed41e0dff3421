#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Drops what changes nothing, and makes one move of several in a row. What a node does is read
/// from the definition of its operator, so it does not matter which one it is:
///
/// - nothing moves: identity, dropout at inference, a cast to the same type, a pad by 0, a slice of
///   all, a concat of one, a transpose or reshape to what there was
/// - axes change places, and again: one transpose
/// - the order in memory stays, and again (reshape, flatten, squeeze, unsqueeze): one reshape
///
/// Keeps: every bit.
Rewriter::Change joining_moves(Changes& changes);

}  // namespace tessera::passes
