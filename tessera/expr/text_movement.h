#pragma once

#include <optional>
#include <vector>

#include "tessera/expr/definition.h"

namespace tessera {

/// String outputs of a definition that gets strings as some inputs, where numbers stand in for
/// strings; none if it computes with strings. Elements may be selected, compared for equality, and
/// replaced by 0, which stands for the empty string.
std::optional<std::vector<bool>> text_outputs(const Definition& definition,
                                              const std::vector<bool>& is_text_input);

}  // namespace tessera
