#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/expr/definition.h"
#include "tessera/support/expected.h"

namespace tessera::lower {

/// `a=f32[64, 32]`: a tensor of known size.
Expected<Operand> parse_tensor(std::string_view text);

/// A definition on tensors of known sizes: the whole text form, or its one equation alone,
///
///   c[i, j] = sum(k) a[i, k] * b[k, j]
///
/// whose operands are those of the inputs that it reads. The result has the dtype of the first of
/// them. An index that is an axis alone says how far the axis runs; others are given: `c[i: 6]`.
Expected<Definition> parse_short(std::string_view text, const std::vector<Operand>& inputs);

}  // namespace tessera::lower
