#include "tessera/tile/passes/version_loops.h"

#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

Kernel inlined(const Kernel& kernel) {
  return simplify(version_loops(simplify(kernel)));
}
Kernel inlined_and_recovered(const Kernel& kernel) {
  return simplify(recover(inlined(kernel)));
}

/// out[i] = x[i] minus the sum of x, in two loops over blocks of 16.
constexpr std::string_view kTwoLoops = R"(
  kernel center(x: *f32, out: *f32, start: i32, n: i32) {
    lane: i32[16] = iota()
    zero: f32[16] = 0.0
    total: f32[16] = for (i: i32 = start to n step 16, acc: f32[16] = zero) {
      at = add(i, lane)
      yield(add(acc, load(offset(x, at), lt(at, n))))
    }
    sum: f32 = reduce(total) {fn = add, axis = 0}
    for (i: i32 = start to n step 16) {
      at = add(i, lane)
      inside = lt(at, n)
      store(offset(out, at), sub(load(offset(x, at), inside), sum), inside)
    }
  })";

TEST(VersionLoops, KeepsTheMeaningWhateverTheTripCount) {
  const Kernel kernel = parsed_kernel(kTwoLoops);
  for (const std::int64_t start : {0, 3})
    for (const std::int64_t n :
         {-2147483648LL, -5LL, 0LL, 1LL, 3LL, 15LL, 16LL, 17LL, 19LL, 20LL, 40LL}) {
      SCOPED_TRACE(n);
      for (const TilePass& pass : {TilePass(inlined), TilePass(inlined_and_recovered)})
        expect_same_meaning(pass, launched(kernel, {1, 1, 1}, {{64}, {64}, {start}, {n}}));
    }
}

TEST(VersionLoops, InlinesBothLoopsInOneVersion) {
  const Kernel kernel = inlined(parsed_kernel(kTwoLoops));
  EXPECT_EQ(count_of(kernel, Code::If), 1) << to_text(kernel);
  EXPECT_EQ(count_of(kernel, Code::For), 2) << to_text(kernel);
  EXPECT_EQ(count_of(kernel, Code::Reduce), 2) << to_text(kernel);
}

TEST(VersionLoops, LeavesOtherLoopsAlone) {
  // A trip count that is known, a carried tile of another extent, a scalar, a dot in the loop.
  for (const std::string_view text : {R"(
    kernel known(x: *f32, out: *f32, n: i32) {
      lane: i32[16] = iota()
      zero: f32[16] = 0.0
      t: f32[16] = for (i: i32 = 0 to 48 step 16, acc: f32[16] = zero) {
        yield(add(acc, load(offset(x, add(i, lane)))))
      }
      store(offset(out, lane), t)
    })",
                                      R"(
    kernel steps(x: *f32, out: *f32, n: i32) {
      lane: i32[16] = iota()
      zero: f32[16] = 0.0
      t: f32[16] = for (i: i32 = 0 to n step 1, acc: f32[16] = zero) {
        yield(add(acc, load(offset(x, add(i, lane)))))
      }
      store(offset(out, lane), t)
    })",
                                      R"(
    kernel numbers(x: *f32, out: *f32, n: i32) {
      t: f32 = for (i: i32 = 0 to n step 16, acc: f32 = 0.0) {
        yield(add(acc, load(offset(x, i))))
      }
      store(out, t)
    })",
                                      R"(
    kernel matmul(x: view f32[?, 16], y: view f32[16, 16], out: *f32, n: i32) {
      zero: f32[16, 16] = 0.0
      b: f32[16, 16] = vload(y, 0, 0)
      t: f32[16, 16] = for (i: i64 = 0 to dim(x) {axis = 0} step 16, acc: f32[16, 16] = zero) {
        a: f32[16, 16] = vload(x, i, 0)
        yield(dot(a, b, acc))
      }
      store(out, reduce(reduce(t) {fn = add, axis = 0}) {fn = add, axis = 0})
    })"}) {
    const Kernel kernel = simplify(parsed_kernel(text));
    EXPECT_EQ(anonymous(version_loops(kernel)), anonymous(kernel));
  }
}

TEST(VersionLoops, KeepsTheMeaningOfRandomKernels) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    expect_same_meaning(inlined, random_kernel(seed));
  }
}

}  // namespace
}  // namespace tessera::tile
