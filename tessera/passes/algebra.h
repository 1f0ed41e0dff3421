#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Applies the shipped rules that help everywhere, wherever they match. With `exact`, those that
/// keep every bit.
Expected<Rewriter::Change> applying_rules(bool exact, Changes& changes);

/// The names of these rules.
Expected<std::set<std::string>> always_applied(bool exact);

}  // namespace tessera::passes
