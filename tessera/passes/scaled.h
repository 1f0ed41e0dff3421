#pragma once

#include <optional>
#include <span>

#include "tessera/interp/interp.h"

namespace tessera::passes {

/// The product of large weights with one number per row, column or channel, which is what folding a
/// normalization into weights comes to; plain loops, as there are many numbers. Nothing for any
/// other operation. Rounds as the operator does.
std::optional<Tensor> scaled_weights(const OpDef& op, std::span<const interp::Value> inputs);

}  // namespace tessera::passes
