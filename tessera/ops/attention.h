#pragma once

#include <functional>

#include "tessera/ops/opdef.h"

namespace tessera {

/// Function of the scores or probabilities of attention, [batch, heads, queries, keys] to the same
/// shape. An empty one is the identity.
using AttentionModifier = std::function<Expected<Val>(const Val&)>;

/// Parameters of flex_attention.
struct FlexAttention {
  std::optional<double> scale = {};     // default: 1 / sqrt(head size)
  std::optional<DType> precision = {};  // type of scores and probabilities; default: at least f32
  AttentionModifier score_mod = {};
  AttentionModifier prob_mod = {};
};

/// Attention with caller-defined score and probability functions, prob_mod(softmax(score_mod(scale
/// * query key^T))) value for each head; a function rather than an operator of the catalog because
/// of these functions. Query, key and value have 4 axes; several query heads may share a key and
/// value head.
Expected<Val> flex_attention(const FlexAttention& form, const Vals& in);

}  // namespace tessera
