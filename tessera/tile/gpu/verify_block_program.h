#pragma once

#include "tessera/support/expected.h"
#include "tessera/tile/gpu/block_program.h"

namespace tessera::tile::gpu {

/// Verifies a program of form S against its kernel: operations and values that it names exist, each
/// fragment has the rank of its value, and what it places in shared memory lies within the bytes
/// that it states. A mistake is a diagnostic: `tile-structure`. That fragments are made before they
/// are used is checked where code is written.
Expected<Done> verify(const BlockProgram& program, const Kernel& kernel);

}  // namespace tessera::tile::gpu
