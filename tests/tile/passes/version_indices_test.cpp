#include "tessera/tile/passes/version_indices.h"

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
  }
}

}  // namespace
}  // namespace tessera::tile
