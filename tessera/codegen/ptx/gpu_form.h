#pragma once

#include <string>

#include "tessera/codegen/ptx/ptx.h"

namespace tessera::codegen {

/// Prints a kernel as tile IR with its GPU schedule as comments (docs/gpu.md). Code is emitted, to
/// know the shared memory that it needs, but not compiled.
Expected<std::string> gpu_form_of(const tile::Kernel& kernel, const PtxOptions& options = {});

}  // namespace tessera::codegen
