#pragma once

#include "tessera/tile/lang_random.h"

namespace tessera::tile::examples {

/// Each element is kept with probability 1 - p, and then divided by it, or becomes 0. Which ones is
/// a function of the seed and the position alone, so nothing has to be stored to do it again. Grid:
/// cdiv(n, block).
inline Expected<Kernel> dropout(DType dtype, std::int64_t block) {
  return kernel("dropout",
                {pointer("x", dtype), pointer("out", dtype), number("n"), number("p", DType::F32),
                 number("seed")},
                [&](const Val& x, const Val& out, const Val& n, const Val& p, const Val& seed) {
                  const Val at = program_id(0) * block + arange(0, block);
                  const Val mask = at < n;
                  const Val keep = rand(seed, at) > p;
                  const Val scaled = load(x + at, mask).to(DType::F32) / (1.0 - p);
                  store(out + at, where(keep, scaled, 0.0), mask);
                });
}

}  // namespace tessera::tile::examples
