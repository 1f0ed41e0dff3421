#include "tessera/tile/passes/recover.h"

#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

Kernel recovered(const Kernel& kernel) {
  return simplify(recover(simplify(kernel)));
}

TEST(Recover, TurnsAMaskedRowIntoAView) {
  expect_pass({recovered,
               R"(kernel add(x: *f32, out: *f32, n: i64) {
                    p: i64 = pid() {axis = 0}
                    first: i64 = mul(p, 64)
                    i: i64[64] = iota()
                    all: i64[64] = broadcast(first)
                    at: i64[64] = add(all, i)
                    end: i64[64] = broadcast(n)
                    mask: bool[64] = lt(at, end)
                    other: f32[64] = -inf
                    xs: *f32[64] = broadcast(x)
                    px: *f32[64] = offset(xs, at)
                    t: f32[64] = load(px, mask, other)
                    outs: *f32[64] = broadcast(out)
                    po: *f32[64] = offset(outs, at)
                    store(po, t, mask)
                  })",
               R"(kernel add(x: *f32, out: *f32, n: i64) {
                  })"});
}

TEST(Recover, KeepsTheMeaningOfAnyKernel) {
  for_each_random_kernel(1, 300, {},
                         [](const RandomKernel& random) { expect_same_meaning(recovered, random); });
}

}  // namespace
}  // namespace tessera::tile
