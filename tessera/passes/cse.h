#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Common subexpression elimination:  a = f(x); b = f(x)  =>  a = f(x), and uses of b become uses
/// of a. Constants are equal if their bytes are.
///
/// Keeps:  every random draw.
/// Leaves: no two pure nodes with equal operator, attributes and inputs.
Rewriter::Rewrite cse_rewrite(Changes& changes);

}  // namespace tessera::passes
