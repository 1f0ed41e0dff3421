#pragma once

#include <string>

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera::passes {

/// Whether a graph still means what it meant before a pass: proved where it can be, else evaluated
/// on an input. One that does not is a diagnostic, with what shows it.
Expected<Done> validated(const std::string& pass, const Graph& before, const Graph& after);

}  // namespace tessera::passes
