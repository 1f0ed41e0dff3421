#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Replaces sequences that are split from a tensor and indexed by a constant by tensors:
///   sequence_at(split_to_sequence(x), 1)  =>  the second result of split(x)
///
/// Keeps: every bit.
Rewriter::Rewrite sequence_rewrite(Changes& changes);

}  // namespace tessera::passes
