#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Computes tiles of 64-bit integers in 32 bits where nothing reads more of them: sums, differences
/// and products that end in a cast to fewer bits, or in one to a float of a number that fits. A
/// vector holds twice as many, and few machines convert vectors of 64-bit integers to floats.
///
///   cast(sub(cast(x): i64[8], 126)): f32[8]  =>  cast(sub(cast(x): i32[8], 126)): f32[8]
///
/// Keeps:  the meaning, bit for bit.
/// Leaves: casts for simplify to fold.
Kernel narrow(const Kernel& kernel);

}  // namespace tessera::tile
