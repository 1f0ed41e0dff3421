#pragma once

#include <optional>
#include <vector>

#include "tessera/expr/definition.h"

namespace tessera {

/// Which outputs of a definition are text where some of its inputs are, with a number in place of
/// each text; none where something is computed with text. Elements may be selected, compared for
/// equality, and left out for 0, which is in place of the empty text.
std::optional<std::vector<bool>> text_outputs(const Definition& definition,
                                              const std::vector<bool>& is_text_input);

}  // namespace tessera
