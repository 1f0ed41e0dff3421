#pragma once

#include <string>
#include <string_view>

#include "tessera/ops/opdef.h"

namespace tessera {

std::string_view kind_name(OpDef::Kind kind);

/// docs/operators.md: every operator of the catalog, and how many there are of each kind.
std::string operator_reference();

}  // namespace tessera
