#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/lower/group.h"

namespace tessera::lower {

/// Stage of attention with the loop of each of its index variables. Variables of extent 1 have no
/// loop.
struct AttentionStage {
  const tile::Stage* stage = nullptr;
  std::shared_ptr<const Fold> fold = {};  // reduction in its value, if there is one
  std::map<std::string, int, std::less<>> loop_of = {};
};

/// Attention: two matmuls, with any row-wise computation of the result of the first in between:
///
///   scores[b, i, j] = f(sum(d) query[b, i, d] * key[b, j, d])
///   rows[b, i]      = fold(j) g(scores[b, i, j], rows before)       any number of them
///   result[b, i, e] = h(sum(j) w(scores[b, i, j], rows) * value[b, j, e])
///
/// Softmax is two such reductions, however it is written. Loops are numbered: those of the scores
/// come first, `inner` is d, `width` is e.
struct AttentionForm {
  std::vector<std::int64_t> extents = {};  // of the loops
  int key = -1;                            // j
  int row = -1;                            // i; -1: one row
  int inner = -1, width = -1;
  AttentionStage scores = {}, result = {};
  std::vector<AttentionStage> between = {};
  Scalar queries = 0.0, keys = 0.0;    // operands of the first matmul
  Scalar weights = 0.0, values = 0.0;  // of the second
  std::optional<Scalar> outside = {};  // common factor of the second sum
};

/// Attention form of a group, if it has one. With `exact`, factors are not reassociated.
std::optional<AttentionForm> attention_form(const Group& group, bool exact);

}  // namespace tessera::lower
