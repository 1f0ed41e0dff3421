#include "tessera/tile/passes/version_indices.h"

#include <fmt/format.h>

#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

Kernel versioned(const Kernel& kernel) {
  return simplify(version_indices(simplify(kernel)));
}
Kernel versioned_and_recovered(const Kernel& kernel) {
  return simplify(recover(versioned(kernel)));
}
Kernel masked(const Kernel& kernel) {
  return simplify(version_indices(simplify(kernel), WrappedElements::Mask));
}
Kernel masked_and_recovered(const Kernel& kernel) {
  return simplify(recover(masked(kernel)));
}

/// Rows that wrap around at m: out[p, i] = x[(16 p + i) % m].
constexpr std::string_view kWrappedRows = R"(
  kernel rows(x: *f32, out: *f32, m: i32) {
    p: i32 = cast(pid())
    lane: i32[16] = iota()
    i = add(mul(p, 16), lane)
    row = rem(i, m)
    t = load(offset(x, row))
    store(offset(out, i), t)
  })";

/// The same by quotients: out[p, i] = x[(16 p + i) / m].
constexpr std::string_view kQuotients = R"(
  kernel rows(x: *f32, out: *f32, m: i32) {
    p: i32 = cast(pid())
    lane: i32[16] = iota()
    i = add(mul(p, 16), lane)
    row = div(i, m)
    t = load(offset(x, row))
    store(offset(out, i), t)
  })";

TEST(VersionIndices, KeepsTheMeaningOfRemaindersWhateverTheDivisor) {
  const Kernel kernel = parsed_kernel(kWrappedRows);
  for (const std::int64_t m : {-48, -5, -1, 0, 1, 5, 15, 16, 17, 31, 32, 47, 48, 49, 2147483647}) {
    SCOPED_TRACE(m);
    for (const TilePass& pass : {TilePass(versioned), TilePass(versioned_and_recovered)})
      expect_same_meaning(pass, launched(kernel, {3, 1, 1}, {{48}, {48}, {m}}));
  }
}

TEST(VersionIndices, KeepsTheMeaningOfQuotientsWhateverTheDivisor) {
  const Kernel kernel = parsed_kernel(kQuotients);
  for (const std::int64_t m : {0, 1, 5, 15, 16, 17, 48, 49, 2147483647}) {
    SCOPED_TRACE(m);
    for (const TilePass& pass : {TilePass(versioned), TilePass(versioned_and_recovered)})
      expect_same_meaning(pass, launched(kernel, {3, 1, 1}, {{48}, {48}, {m}}));
  }
}

TEST(VersionIndices, KeepsTheMeaningOfNumbersBelowZero) {
  // The first numbers are negative: their remainders are too.
  const Kernel kernel = parsed_kernel(R"(
    kernel rows(x: *f32, out: *f32, m: i32, start: i32) {
      lane: i32[16] = iota()
      i = add(start, lane)
      row = rem(i, m)
      t = load(offset(x, add(row, 16)))
      store(offset(out, lane), t)
    })");
  for (const std::int64_t start : {-15, -1, 0, 3})
    for (const std::int64_t m : {-7, 3, 16, 20})
      expect_same_meaning(versioned_and_recovered,
                          launched(kernel, {1, 1, 1}, {{40}, {16}, {m}, {start}}));
}

TEST(VersionIndices, TheVersionWithoutRemaindersReadsAView) {
  const Kernel kernel = versioned_and_recovered(parsed_kernel(kWrappedRows));
  ASSERT_EQ(count_of(kernel, Code::If), 1) << to_text(kernel);
  EXPECT_EQ(count_of(kernel, Code::Vload), 1) << to_text(kernel);
  EXPECT_EQ(count_of(kernel, Code::Load), 1) << to_text(kernel);
  // A second run versions the version that wraps no further.
  expect_valid(version_indices(kernel));
}

/// A matmul of Triton's form: rows of a and columns of b wrap around, stores are masked.
constexpr std::string_view kWrappedMatmul = R"(
  kernel matmul(a: *f32, b: *f32, c: *f32, m: i64, n: i64, k: i64) {
    p = pid()
    q = pid() {axis = 1}
    lane: i64[8] = iota()
    along: i64[4] = iota()
    i = add(mul(p, 8), lane)
    j = add(mul(q, 8), lane)
    row: i64[8, 1] = reshape(rem(i, m))
    column: i64[1, 8] = reshape(rem(j, n))
    kr: i64[1, 4] = reshape(along)
    kc: i64[4, 1] = reshape(along)
    as = offset(a, add(broadcast(mul(row, k)): i64[8, 4], broadcast(kr): i64[8, 4]))
    bs = offset(b, add(broadcast(mul(kc, n)): i64[4, 8], broadcast(column): i64[4, 8]))
    zero: f32[8, 8] = 0.0
    (x: f32[8, 8], ae: *f32[8, 4], be: *f32[4, 8]) =
        for (s: i64 = 0 to k step 4, sum: f32[8, 8] = zero, at: *f32[8, 4] = as, bt: *f32[4, 8] = bs) {
      left = lt(kr, sub(k, s))
      below = lt(kc, sub(k, s))
      av = load(at, broadcast(left): bool[8, 4], 0.0)
      bv = load(bt, broadcast(below): bool[4, 8], 0.0)
      next = dot(av, bv, sum)
      yield(next, offset(at, 4), offset(bt, mul(n, 4)))
    }
    ir: i64[8, 1] = reshape(i)
    jr: i64[1, 8] = reshape(j)
    inside = and(broadcast(lt(ir, m)): bool[8, 8], broadcast(lt(jr, n)): bool[8, 8])
    at_c = add(broadcast(mul(ir, n)): i64[8, 8], broadcast(jr): i64[8, 8])
    store(offset(c, at_c), x, inside)
  })";

TEST(VersionIndices, MasksWrappedElementsOfMatmulsThatNoStoreObserves) {
  const Kernel kernel = parsed_kernel(kWrappedMatmul);
  for (const std::int64_t m : {1, 5, 8, 13, 16})
    for (const std::int64_t n : {3, 8, 11})
      for (const std::int64_t k : {0, 1, 4, 7}) {
        SCOPED_TRACE(fmt::format("{} x {} x {}", m, n, k));
        const auto launch = launched(kernel, {(m + 7) / 8, (n + 7) / 8, 1},
                                     {{m * k + 1}, {k * n + 1}, {m * n}, {m}, {n}, {k}});
        for (const TilePass& pass : {TilePass(masked), TilePass(masked_and_recovered)})
          expect_same_meaning(pass, launch);
      }
  // The version of programs at the edge is that of all others: both operands are views in it.
  const Kernel recovered = masked_and_recovered(kernel);
  EXPECT_EQ(count_of(recovered, Code::Vload), 2) << to_text(recovered);
  EXPECT_EQ(count_of(recovered, Code::Vstore), 2) << to_text(recovered);
}

TEST(VersionIndices, MasksOnlyWhatNoStoreObserves) {
  // Each store shows elements that wrapped: without a mask, by another bound, or through a sum.
  for (const std::string_view end :
       {"store(offset(out, i), t)", "store(offset(out, i), t, lt(i, 20))",
        "store(offset(out, i), t, lt(add(i, 1), m))", "store(offset(out, i), t, lt(lane, m))",
        "store(offset(out, i), broadcast(reduce(t) {fn = add, axis = 0}): f32[16], lt(i, m))",
        "store(offset(out, i), scan(t) {fn = add, axis = 0, reverse = 1}, lt(i, m))"}) {
    SCOPED_TRACE(end);
    const Kernel kernel = parsed_kernel(fmt::format(R"(
      kernel rows(x: *f32, out: *f32, m: i32) {{
        p: i32 = cast(pid())
        lane: i32[16] = iota()
        i = add(mul(p, 16), lane)
        row = rem(i, m)
        t = load(offset(x, row))
        {}
      }})",
                                                    end));
    for (const std::int64_t m : {-3, 0, 1, 5, 16, 17, 31})
      expect_same_meaning(masked_and_recovered, launched(kernel, {2, 1, 1}, {{48}, {48}, {m}}));
    EXPECT_EQ(anonymous(masked(kernel)), anonymous(versioned(kernel)));
  }
}

TEST(VersionIndices, MaskedElementsAreNotRead) {
  // Elements up to 32 would be read beyond the 20 of x.
  const Kernel kernel = parsed_kernel(R"(
    kernel rows(x: *f32, out: *f32, m: i32) {
      p: i32 = cast(pid())
      lane: i32[16] = iota()
      i = add(mul(p, 16), lane)
      t = load(offset(x, rem(i, m)))
      store(offset(out, i), exp(t), lt(i, m))
    })");
  for (const std::int64_t m : {-3, 0, 1, 5, 16, 17, 20}) {
    SCOPED_TRACE(m);
    for (const TilePass& pass : {TilePass(masked), TilePass(masked_and_recovered)})
      expect_same_meaning(pass, launched(kernel, {2, 1, 1}, {{20}, {48}, {m}}));
  }
  EXPECT_EQ(count_of(masked_and_recovered(kernel), Code::Vload), 1);
}

TEST(VersionIndices, LeavesWrapsAfterAnEffectAlone) {
  const Kernel kernel = simplify(parsed_kernel(R"(
    kernel rows(x: *f32, out: *f32, m: i32) {
      lane: i32[16] = iota()
      store(offset(out, lane), 1.0: f32[16])
      row = rem(lane, m)
      t = load(offset(x, row))
      store(offset(out, lane), t)
    })"));
  EXPECT_EQ(anonymous(version_indices(kernel)), anonymous(kernel));
}

TEST(VersionIndices, LeavesKernelsWithoutWrapsAndMatmulsAlone) {
  const Kernel kernel = simplify(parsed_kernel(R"(
    kernel copy(x: *f32, out: *f32, n: i32) {
      lane: i32[16] = iota()
      mask = lt(lane, n)
      store(offset(out, lane), load(offset(x, lane), mask), mask)
    })"));
  EXPECT_EQ(anonymous(version_indices(kernel)), anonymous(kernel));
}

TEST(VersionIndices, KeepsTheMeaningOfRandomKernels) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    expect_same_meaning(versioned, random_kernel(seed));
    expect_same_meaning(masked, random_kernel(seed));
  }
}

}  // namespace
}  // namespace tessera::tile
