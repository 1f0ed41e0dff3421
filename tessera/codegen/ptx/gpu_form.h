#pragma once

#include <string>

#include "tessera/codegen/ptx/ptx.h"

namespace tessera::codegen {

/// The kernel in form T with what was decided of it as comments (docs/gpu.md). Code is written, so
/// that what shared memory allows is decided too, but not compiled.
Expected<std::string> gpu_form_of(const tile::Kernel& kernel, const PtxOptions& options = {});

}  // namespace tessera::codegen
