#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "tessera/support/expected.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Limits and output of the interpreter.
struct InterpOptions {
  std::int64_t most_steps = std::int64_t{1} << 40;  // operations executed, over all programs
  std::int64_t most_bytes = std::int64_t{1} << 31;  // tiles that are alive at the same time
  std::function<void(std::string_view)> print =
      {};  // called with each line that is printed; none: nothing is printed
};

/// Tile IR interpreter: runs every program of the grid, one after the other, exactly as
/// docs/tile.md specifies. The oracle of every back end. Every access is checked against the memory
/// of its argument. Diagnostics are `tile-out-of-bounds`, `tile-assertion` (assumptions too),
/// `tile-steps` and `tile-memory`.
///
/// Where docs/tile.md leaves a choice: elements are processed in row-major order. Functions of
/// floats, sums and dots are computed in double or better and rounded once, so that they are nearer
/// to the exact result than what is compared with them. -0 is less than +0.
Expected<Done> interpret(const Kernel& kernel, std::span<const Argument> arguments,
                         const Grid& grid, const InterpOptions& options = {});

}  // namespace tessera::tile
