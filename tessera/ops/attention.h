#pragma once

#include <functional>

#include "tessera/ops/opdef.h"

namespace tessera {

/// A function of the scores or probabilities of attention: [batch, heads, queries, keys] to the
/// same. A default-made one changes nothing.
using AttentionModifier = std::function<Expected<Val>(const Val&)>;

struct FlexAttention {
  std::optional<double> scale = {};     // 1 / sqrt(size of a head) if none is given
  std::optional<DType> precision = {};  // of scores and probabilities; at least f32 if none is
  AttentionModifier score_mod = {};
  AttentionModifier prob_mod = {};
};

/// prob_mod(softmax(score_mod(scale * query key^T))) value for each head, with a part of the
/// computation given by the caller, so that it is a function and no operator of the catalog. Query,
/// key and value have 4 axes; several query heads may share a key and value head.
Expected<Val> flex_attention(const FlexAttention& form, const Vals& in);

}  // namespace tessera
