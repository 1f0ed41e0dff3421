#pragma once

#include <string>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// All that a kernel does, as bytes: kernels with equal fingerprints do the same, whatever they and
/// their values are called. Shorter than the text, and many times faster to make.
std::string fingerprint(const Kernel& kernel);

}  // namespace tessera::tile
