#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Computes each value once:  a = f(x); b = f(x)  =>  a = f(x), with b's uses given a. Constants
/// are the same if their bytes are.
///
/// Keeps:  every draw of its own.
/// Leaves: no two pure nodes with equal operator, attributes and inputs.
Rewriter::Change sharing(Changes& changes);

}  // namespace tessera::passes
