#pragma once

#include <string>

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera::passes {

/// How a graph was shown to mean what it meant before a pass: "unchanged", "proved", or "unknown:"
/// with the reason where no proof was found and no input shows a difference. A difference is a
/// diagnostic, with the input that shows it.
Expected<std::string> validated(const std::string& pass, const Graph& before, const Graph& after);

}  // namespace tessera::passes
