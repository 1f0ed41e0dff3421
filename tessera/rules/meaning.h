#pragma once

#include <vector>

#include "tessera/ir/infer.h"

namespace tessera::rules {

/// Whether an operator means the same with either attributes on these inputs: `axis=-1` and
/// `axis=1`, a window's size stated or not.
bool same_meaning(const OpDef& op, const Attrs& a, const Attrs& b,
                  const std::vector<ValueInfo>& inputs);

/// By operand: whether its content counts, or its type alone (eye_like, shape).
std::vector<bool> read_operands(const OpDef& op, const Attrs& attrs,
                                const std::vector<ValueInfo>& inputs);

}  // namespace tessera::rules
