#pragma once

#include <string_view>
#include <vector>

#include "tessera/ops/opdef.h"

namespace tessera {

/// Every operator, sorted by name.
const std::vector<OpDef>& catalog();

/// The operator of this name, or null.
const OpDef* find_op(std::string_view name);

}  // namespace tessera
