#pragma once

#include <string_view>
#include <vector>

#include "tessera/ops/opdef.h"

namespace tessera {

/// The catalog: definitions of all operators, sorted by name.
const std::vector<OpDef>& catalog();

/// Operator of this name, or null.
const OpDef* find_op(std::string_view name);

}  // namespace tessera
