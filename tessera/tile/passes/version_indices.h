#pragma once

#include <cstdint>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Versions a kernel by what its indices nearly always are: remainders x % n and quotients x / n of
/// consecutive numbers that all lie in [0, n), as in Triton's matrix products, which wrap rows
/// around at the end; and, where loops multiply matrices, integer parameters that are not negative,
/// so that sums with them do not wrap.
///
///   i = rem(pid*B + iota, M)  …
///     =>  if (M >= 0 && pid*B + B <= M) {… with max(M, 0), i = pid*B + iota} else {…}
///
/// Wrapped elements of a remainder that no store observes are masked instead:
///
///   i = rem(pid*B + iota, M)  t = load(x + i)  …  store(…, pid*B + iota < M)
///     =>  if (M >= 0 && pid*B >= 0) {t = load(x + pid*B + iota, pid*B + iota < M)  …} else {…}
///
/// so that programs at the edge are of the first version too. Addresses of the first version are
/// affine, so that `recover` finds views.
/// Needs:  nothing before the last such remainder has effects.
/// Keeps:  the meaning.
enum class WrappedElements : std::uint8_t { Version, Mask };
Kernel version_indices(const Kernel& kernel, WrappedElements wrapped = WrappedElements::Version);

}  // namespace tessera::tile
