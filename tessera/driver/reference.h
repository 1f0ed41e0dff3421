#pragma once

#include <string>
#include <string_view>

#include "tessera/ops/opdef.h"

namespace tessera {

std::string_view kind_name(OpDef::Kind kind);

/// Content of docs/operators.md: all operators of the catalog by kind, with counts.
std::string operator_reference();

}  // namespace tessera
