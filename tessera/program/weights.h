#pragma once

#include "tessera/program/assemble.h"

namespace tessera::program {

/// Computes the weights of a draft in the forms in which its kernels read them, and lays them out.
Expected<Done> lay_out_weights(const CompileOptions& options, Draft& draft);

}  // namespace tessera::program
