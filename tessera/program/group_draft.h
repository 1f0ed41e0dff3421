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

/// Program that runs a lowering of a group several times in a row, for measurements on a GPU:
/// operands are its inputs, results its outputs, weights are random numbers. As in a model, a
/// repetition reads weights that were not read lately.
struct RepeatOptions {
  CompileOptions code = {};
  std::int64_t repeats = 1;
  std::int64_t weight_bytes = 0;  // of all copies of the weights, as far as there are repetitions
};
Expected<runtime::Program> repeated_program(const lower::Group& group,
                                            const std::shared_ptr<const lower::GroupCode>& code,
                                            const RepeatOptions& options);

/// Random tensor of small numbers of both signs; integers are 0, so that indices are in range.
Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape);

}  // namespace tessera::program
