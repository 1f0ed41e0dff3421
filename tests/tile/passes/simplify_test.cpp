#include "tessera/tile/passes/simplify.h"

#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

TEST(Simplify, ComputesWhatIsKnown) {
  expect_pass({simplify,
               R"(kernel k(out: view i32[?]) {
                    a: i32[8] = 3
                    b: i32[8] = 4
                    c: i32[8] = mul(a, b)
                    d: i32[8] = sub(c, a)
                    zero: i64 = 0
                    vstore(out, zero, d)
                  })",
               R"(kernel k(out: view i32[?]) {
                    zero: i64 = 0
                    d: i32[8] = 9
                    vstore(out, zero, d)
                  })"});
}

TEST(Simplify, KeepsTheMeaningOfAnyKernel) {
  for_each_random_kernel(1, 300, {}, [](const RandomKernel& random) {
    expect_same_meaning(simplify, random);
    const Kernel once = simplify(random.kernel);
    EXPECT_EQ(anonymous(simplify(once)), anonymous(once));
  });
}

}  // namespace
}  // namespace tessera::tile
