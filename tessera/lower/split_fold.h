#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/tile/schedule.h"

namespace tessera::lower {

/// Split of a reduction with one component: parts of `length` positions along one of its axes.
struct FoldSplit {
  std::shared_ptr<const Fold> fold = {};
  std::string axis = {};
  std::int64_t parts = 1, length = 0;
  /// The last part goes past the end of the axis, where reads are zeros: for sums of products.
  bool goes_past = false;
  /// Combine the parts in one expression, so that all of them are read at once, not by a reduction.
  bool unrolled = false;
};

/// Two stages in place of one: partial results in f32, with a further first axis, and the stage
/// that combines them.
tile::Stages split_fold(const tile::Stage& stage, const FoldSplit& split);

}  // namespace tessera::lower
