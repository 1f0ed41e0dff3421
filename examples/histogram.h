#pragma once

#include "tessera/tile/lang.h"

namespace tessera::tile::examples {

/// Adds to counts[bin] how often each bin occurs in x; numbers that are no bin are passed over.
/// Grid: cdiv(n, block); programs that run at the same time share the counts, hence the atomics.
inline Expected<Kernel> histogram(std::int64_t block) {
  return kernel("histogram", {"x", "counts", "n", "bins"},
                [&](const Ptr<std::int32_t>& x, const Ptr<std::int32_t>& counts,
                    const Num<std::int64_t>& n, const Num<std::int64_t>& bins) {
                  const Val at = program_id(0) * block + arange(0, block);
                  const Val bin = load(x + at, at < n, -1);
                  atomic_add(counts + bin, 1, bin >= 0 && bin < bins);
                });
}

}  // namespace tessera::tile::examples
