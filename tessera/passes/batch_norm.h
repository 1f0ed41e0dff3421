#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Gives a batch normalization with constant statistics the epsilon that rules speak of: its
/// variance becomes 1, and the deviation goes into the scale. It costs nothing and lets the rules
/// about convolutions match whatever the epsilon was.
Rewriter::Change plain_batch_norms();

}  // namespace tessera::passes
