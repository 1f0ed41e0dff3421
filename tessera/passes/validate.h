#pragma once

#include <string>

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera::passes {

/// Translation validation of a pass: "unchanged", "proved", or "unknown:" with the reason where
/// neither a proof nor a counterexample was found. A counterexample is a diagnostic, with the input
/// that shows the difference.
Expected<std::string> validated(const std::string& pass, const Graph& before, const Graph& after);

}  // namespace tessera::passes
