#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Versions a kernel by remainders that do nothing: tiles x % n and x / n of consecutive numbers x
/// that may all lie in [0, n), as in Triton's matrix products, which wrap rows around at the end:
///
///   i = rem(pid*B + iota, M)  …  =>  if (pid*B + B <= M) {… with i = pid*B + iota} else {…}
///
/// Addresses of the first version are affine, so that `recover` finds views.
/// Needs:  nothing before the last such remainder has effects.
/// Keeps:  the meaning.
Kernel version_remainders(const Kernel& kernel);

}  // namespace tessera::tile
