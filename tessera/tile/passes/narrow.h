#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Narrows 64-bit integer arithmetic on tiles to 32 bits where the upper bits are never read: sums,
/// differences and products that end in a cast to fewer bits, or to a float of a number that fits.
/// A vector holds twice as many elements, and few machines convert vectors of 64-bit integers to
/// floats.
///
///   cast(sub(cast(x): i64[8], 126)): f32[8]  =>  cast(sub(cast(x): i32[8], 126)): f32[8]
///
/// Keeps:  the meaning, bit for bit.
/// Leaves: casts for simplify to fold.
Kernel narrow(const Kernel& kernel);

}  // namespace tessera::tile
