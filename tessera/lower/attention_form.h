#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/lower/group.h"

namespace tessera::lower {

/// A stage of attention, and the loop that each of its index variables is. Variables of one
/// position are no loops.
struct AttentionStage {
  const tile::Stage* stage = nullptr;
  std::shared_ptr<const Fold> fold = {};  // the one that its value holds, if it does
  std::map<std::string, int, std::less<>> loop_of = {};
};

/// Products of two matrices with whatever is computed in between of the rows of the first:
///
///   scores[b, i, j] = f(sum(d) query[b, i, d] * key[b, j, d])
///   rows[b, i]      = fold(j) g(scores[b, i, j], rows before)       any number of such
///   result[b, i, e] = h(sum(j) w(scores[b, i, j], rows) * value[b, j, e])
///
/// Softmax is two such folds, however it is spelled. Loops are numbered: those of the scores come
/// first, `inner` is d, `width` is e.
struct AttentionForm {
  std::vector<std::int64_t> extents = {};  // of the loops
  int key = -1;                            // j
  int row = -1;                            // i; -1: one row
  int inner = -1, width = -1;
  AttentionStage scores = {}, result = {};
  std::vector<AttentionStage> between = {};
  Scalar queries = 0.0, keys = 0.0;    // factors of the first product
  Scalar weights = 0.0, values = 0.0;  // of the second
  std::optional<Scalar> outside = {};  // what every term of the second sum is multiplied by
};

/// The form of a group, if it is of this kind. With `exact`, factors stay as they are put together.
std::optional<AttentionForm> attention_form(const Group& group, bool exact);

}  // namespace tessera::lower
