#pragma once

#include <string>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Fingerprint of a kernel, as bytes, for caches: kernels with equal fingerprints compute the same,
/// regardless of the names of kernels and values. Shorter than the text, and many times faster to
/// make.
std::string fingerprint(const Kernel& kernel);

}  // namespace tessera::tile
