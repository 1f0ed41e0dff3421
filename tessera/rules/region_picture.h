#pragma once

#include <string>

#include "tessera/rules/rule.h"

namespace tessera::rules {

/// SVG drawing of the outputs of a mutant, at small sizes that satisfy its guard: each output as a
/// grid over two axes, those that the region restricts first, with the corrected boxes coloured.
Expected<std::string> region_picture(const Rule& rule);

}  // namespace tessera::rules
