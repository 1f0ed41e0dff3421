#pragma once

#include <string>
#include <vector>

#include "tessera/machine/machine.h"
#include "tessera/support/expected.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"
#include "tessera/tile/schedule.h"

namespace tessera::lower {

/// A kernel that computes one stage, and how it is launched. Its parameters are the tensors that
/// `arguments` names, the result last: views without gaps, pointers for tensors without axes, with
/// more than eight of them or without elements.
struct Lowered {
  tile::Kernel kernel;
  tile::Grid grid = {1, 1, 1};
  std::vector<std::string> arguments = {};
  std::int64_t offset = 0;  // elements of the result before what it writes
};

/// The stages that have loops of their own, in order. Values are computed in f32, or in f64 where a
/// tensor of f64 or a cast to it occurs; integers in 64 bits. An index out of range for which the
/// definition has nothing reads 0.
///
/// What has no form as a tile program (forward writes, folds whose length depends on data) is a
/// diagnostic, `lower-unsupported`.
Expected<std::vector<Lowered>> lower(const tile::Schedule& schedule);

/// Where the elements of a stage go, if they say so themselves: into another tensor, at these
/// positions over the axes of the stage; what would lie outside of it is dropped.
struct Target {
  Shape shape = {};
  std::vector<Scalar> at = {};
  std::optional<Fn> combine = {};  // with what is there
};

/// The kernel of a schedule of one stage that writes into a target. Elements that go to one place
/// have to be in one program, not in one vector.
Expected<Lowered> lower_writes(const tile::Schedule& schedule, const Target& target);

/// A schedule that is good without tuning: tiles of a few thousand elements of the innermost axes,
/// products of matrices where sums of products run through both factors, programs over the rest.
Expected<tile::Schedule> default_schedule(tile::Stages stages, const machine::Machine& machine);

/// Whether a stage is computed in f64: a tensor of it or a cast to it occurs.
bool is_wide(const tile::Stage& stage);

/// The types of the tensors that stages read and write, by name.
Expected<std::vector<Operand>> tensors_of(const tile::Stages& stages);

}  // namespace tessera::lower
