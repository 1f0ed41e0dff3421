#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Sequences that are made of a tensor's parts and taken apart again are the parts:
///   sequence_at(split_to_sequence(x), 1)  =>  the second result of split(x)
///
/// Keeps: every bit.
Rewriter::Change without_sequences(Changes& changes);

}  // namespace tessera::passes
