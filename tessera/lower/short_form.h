#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/expr/definition.h"
#include "tessera/support/expected.h"

namespace tessera::lower {

/// Parses a tensor type with a name: `a=f32[64, 32]`.
Expected<Operand> parse_tensor(std::string_view text);

/// Parses a definition on tensors of static shape: its whole text form, or one equation,
///
///   c[i, j] = sum(k) a[i, k] * b[k, j]
///
/// whose operands are the inputs that it reads. The result has the dtype of the first operand.
/// Extents of axes follow from reads whose index is an axis alone; others are written: `c[i: 6]`.
Expected<Definition> parse_short(std::string_view text, const std::vector<Operand>& inputs);

}  // namespace tessera::lower
