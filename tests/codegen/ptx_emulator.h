#pragma once

#include <cstdint>
#include <vector>

#include "tessera/codegen/ptx/ptx.h"
#include "tessera/support/expected.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera::codegen {

/// Runs what ptx_module_of makes on this computer: each thread of a block is a coroutine, which
/// runs until it must wait for others. The threads of a warp meet at shuffles and matrix
/// instructions, those of a block at barriers; a meeting that some miss is a diagnostic. Copies
/// that are asynchronous happen as late as they may. Sums of products of warpgroups are NaN until
/// they are waited for, and registers that such products read are lost afterwards. An access
/// outside of the memory of the arguments is a diagnostic. `backwards`: the last warp runs first,
/// so that what a missing barrier leaves open comes out differently.
struct EmulatorOptions {
  PtxOptions ptx = {};
  bool backwards = false;
};
Expected<Done> emulate(const tile::Kernel& kernel, std::span<const tile::Argument> arguments,
                       const tile::Grid& grid, const EmulatorOptions& options = {});

}  // namespace tessera::codegen
