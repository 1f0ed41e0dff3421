#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "tessera/support/expected.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

struct InterpOptions {
  std::int64_t most_steps = std::int64_t{1} << 40;   // operations executed, over all programs
  std::int64_t most_bytes = std::int64_t{1} << 31;   // of tiles that are needed at the same time
  std::function<void(std::string_view)> print = {};  // is given a line; none: nothing is printed
};

/// Runs every program of the grid, one after the other, exactly as docs/tile.md says: the oracle of
/// every backend. Every access is checked against the memory of its argument. Diagnostics are
/// `tile-out-of-bounds`, `tile-assertion` (assumptions too), `tile-steps` and `tile-memory`.
///
/// Where docs/tile.md leaves a choice: elements are taken row by row, the first first. Functions of
/// floats, sums and dots are computed in double or better and rounded once, so that they are nearer
/// to the exact answer than what they are compared with. -0 is less than +0.
Expected<Done> interpret(const Kernel& kernel, std::span<const Argument> arguments,
                         const Grid& grid, const InterpOptions& options = {});

}  // namespace tessera::tile
