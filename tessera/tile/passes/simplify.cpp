#include "tessera/tile/passes/simplify.h"

#include <utility>

#include "tessera/tile/passes/parts.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {

Kernel simplify(const Kernel& kernel) {
  // Each iteration shrinks the kernel or hoists something; few kernels need more than three.
  constexpr int kMostRounds = 32;
  Kernel now = dce(kernel);
  for (int round = 0; round < kMostRounds; ++round) {
    Kernel next = dce(licm(cse(fold(now))));
    if (same(now, next)) break;
    now = std::move(next);
  }
  return now;
}

}  // namespace tessera::tile
