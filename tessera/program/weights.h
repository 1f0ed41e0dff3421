#pragma once

#include "tessera/program/assemble.h"

namespace tessera::program {

/// Packs the weights of a draft into the layouts that its kernels read, and assigns their offsets.
Expected<Done> lay_out_weights(const CompileOptions& options, Draft& draft);

}  // namespace tessera::program
