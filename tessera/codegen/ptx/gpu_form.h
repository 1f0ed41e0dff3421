#pragma once

#include <string>

#include "tessera/codegen/ptx/ptx.h"

namespace tessera::codegen {

/// Prints a kernel as tile IR with its GPU schedule as comments (docs/gpu.md).
Expected<std::string> gpu_form_of(const tile::Kernel& kernel, const PtxOptions& options = {});

/// Prints the program of a block, form S, after the kernel whose operations it names.
Expected<std::string> block_form_of(const tile::Kernel& kernel, const PtxOptions& options = {});

}  // namespace tessera::codegen
