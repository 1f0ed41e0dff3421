#pragma once

#include <string>
#include <vector>

#include "tessera/machine/machine.h"
#include "tessera/support/expected.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"
#include "tessera/tile/schedule.h"

namespace tessera::lower {

/// Lowered kernel with its grid. Its parameters are the tensors that `arguments` names, the result
/// last: dense views, or pointers for tensors of rank 0, of rank above eight or without elements.
/// A copy has views of parts of its result, each a parameter.
struct Lowered {
  tile::Kernel kernel;
  tile::Grid grid = {1, 1, 1};
  std::vector<std::string> arguments = {};
  /// Offsets of the parameters' views in their tensors, in elements; parameters without an entry
  /// have offset 0.
  std::vector<std::int64_t> offsets = {};

  std::int64_t offset(std::size_t parameter) const {
    return parameter < offsets.size() ? offsets[parameter] : 0;
  }
};

/// Lowers a schedule to tile kernels, one per stage with loops of its own. Values are computed in
/// f32, or in f64 where an f64 tensor or a cast to f64 occurs; integers in 64 bits. An out-of-range
/// index without a default value reads 0.
///
/// Scatters and reductions of data-dependent length are a diagnostic, `lower-unsupported`.
Expected<std::vector<Lowered>> lower(const tile::Schedule& schedule);

/// Target tensor of a scatter: elements of a stage are written at these positions over the axes of
/// the stage; those out of bounds are dropped.
struct Target {
  Shape shape = {};
  std::vector<Scalar> at = {};
  std::optional<Fn> combine = {};  // with the old content
};

/// Lowers a stage that scatters into a target. Elements that are written to the same position have
/// to be computed by one program, and not in one vector.
Expected<Lowered> lower_writes(const tile::Schedule& schedule, const Target& target);

/// Neighbouring outputs of a program of a GPU that reduces across memory: lines of f16.
constexpr std::int64_t kColumnsOfAProgram = 64;

/// Parameters of schedules of loops; 0: chosen for the machine.
struct LoopParameters {
  std::int64_t elements = 0;    // of a tile
  std::int64_t neighbours = 0;  // outputs of a small window that are computed together
};

/// Default schedule, without tuning: tiles of a few thousand elements of the innermost axes, dots
/// for contractions, and a grid over the other axes.
Expected<tile::Schedule> default_schedule(tile::Stages stages, const machine::Machine& machine,
                                          const LoopParameters& parameters = {});

/// Whether a stage is computed in f64: an f64 tensor or a cast to f64 occurs.
bool is_wide(const tile::Stage& stage);

/// Erases operands that the stage's output does not read.
void erase_unread_operands(tile::Stage& stage);

/// Types of the tensors that stages read and write.
Expected<std::vector<Operand>> tensors_of(const tile::Stages& stages);

}  // namespace tessera::lower
