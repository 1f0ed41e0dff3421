#pragma once

#include <span>

#include "tessera/program/draft.h"
#include "tessera/program/lowerings.h"

namespace tessera::program {

/// Draft of a program that runs several lowerings of one group, one after the other, each with the
/// launches of its kernels. Operands stand for activations, those of Group::weights for constants.
/// For measurements: it has no inputs, outputs and weights.
struct GroupDraft {
  Draft draft = {};
  struct Range {
    std::size_t first = 0, count = 0;
  };
  std::vector<Range> steps = {};  // of each lowering
};
Expected<GroupDraft> group_draft(const lower::Group& group,
                                 std::span<const std::shared_ptr<const lower::GroupCode>> codes);

}  // namespace tessera::program
