#pragma once

#include "tessera/tile/lang.h"

namespace tessera::tile::examples {

/// out = x + y, for any number of elements. Grid: cdiv(n, block) programs.
inline Expected<Kernel> vector_add(DType dtype, std::int64_t block) {
  return kernel("vector_add",
                {pointer("x", dtype), pointer("y", dtype), pointer("out", dtype), number("n")},
                [&](const Val& x, const Val& y, const Val& out, const Val& n) {
                  // This program's elements; the mask guards against those past the end.
                  const Val at = program_id(0) * block + arange(0, block);
                  const Val mask = at < n;
                  store(out + at, load(x + at, mask) + load(y + at, mask), mask);
                });
}

}  // namespace tessera::tile::examples
