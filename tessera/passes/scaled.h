#pragma once

#include <optional>
#include <span>

#include "tessera/interp/interp.h"

namespace tessera::passes {

/// Fast path of constant folding: multiplication of large weights by one factor per row, column or
/// channel, as folding a normalization into weights does. None for any other operation. Rounds as
/// the operator does.
std::optional<Tensor> scaled_weights(const OpDef& op, std::span<const interp::Value> inputs);

}  // namespace tessera::passes
