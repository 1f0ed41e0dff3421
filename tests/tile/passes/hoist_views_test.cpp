#include "tessera/tile/passes/hoist_views.h"

#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

Kernel views_hoisted(const Kernel& kernel) {
  return simplify(hoist_views(simplify(recover(simplify(kernel)))));
}

/// Views that are made in the body of a loop.
int views_in_loops(const Kernel& kernel) {
  int count = 0;
  for_each_op(kernel, kernel.body, [&](OpId id) {
    if (kernel.ops[id].code != Code::For) return;
    for_each_op(kernel, kernel.ops[id].regions[0],
                [&](OpId inner) { count += kernel.ops[inner].code == Code::View ? 1 : 0; });
  });
  return count;
}

/// A row is summed in blocks of 8 whose pointer advances by a carried offset, as Triton's loops do.
constexpr std::string_view kAdvancingSum = R"(
  kernel total(x: *f32, out: *f32, n: i64) {
    lane: i64[8] = iota()
    (sums, end) = for (k = 0 to n step 8, acc: f32[8] = 0.0, at: i64 = 0) {
      v: view f32[?] = view(offset(x, at), sub(n, at))
      t: f32[8] = vload(v, 0)
      yield(add(acc, t), add(at, 8))
    }
    store(offset(out, lane), sums)
  })";

TEST(HoistViews, MakesTheViewInFrontOfTheLoop) {
  const Kernel kernel = views_hoisted(parsed_kernel(kAdvancingSum));
  expect_valid(kernel);
  EXPECT_EQ(views_in_loops(kernel), 0) << to_text(kernel);
}

TEST(HoistViews, KeepsTheMeaningOfAnyLength) {
  const Kernel kernel = parsed_kernel(kAdvancingSum);
  for (const std::int64_t n : {0, 1, 7, 8, 9, 16, 23, 40}) {
    SCOPED_TRACE(n);
    expect_same_meaning(views_hoisted, launched(kernel, {1, 1, 1}, {{40}, {8}, {n}}));
  }
}

TEST(HoistViews, KeepsTheEndOfViewsThatAreShorterThanTheTile) {
  const Kernel kernel = parsed_kernel(R"(
    kernel total(x: *f32, out: *f32, n: i64) {
      lane: i64[8] = iota()
      (sums, end) = for (k = 0 to n step 1, acc: f32[8] = 0.0, at: i64 = 0) {
        v: view f32[5] = view(offset(x, at))
        t: f32[8] = vload(v, 0)
        yield(add(acc, t), add(at, 8))
      }
      store(offset(out, lane), sums)
    })");
  for (const std::int64_t n : {0, 1, 4}) {
    SCOPED_TRACE(n);
    expect_same_meaning(views_hoisted, launched(kernel, {1, 1, 1}, {{40}, {8}, {n}}));
  }
}

TEST(HoistViews, KeepsTheMeaningOfNegativeSizesAndBounds) {
  // Extents of views are not negative; loops that do not run make none.
  const Kernel kernel = parsed_kernel(kAdvancingSum);
  for (const std::int64_t n : {-1, -8, -100}) {
    SCOPED_TRACE(n);
    expect_same_meaning(views_hoisted, launched(kernel, {1, 1, 1}, {{40}, {8}, {n}}));
  }
}

TEST(HoistViews, KeepsTheMeaningOfStridesOfAnySign) {
  const Kernel kernel = parsed_kernel(R"(
    kernel total(x: *f32, out: *f32, first: i64, stride: i64, n: i64) {
      lane: i64[8] = iota()
      (sums, end) = for (k = 0 to n step 1, acc: f32[8] = 0.0, at: i64 = first) {
        t = load(offset(offset(x, at), lane))
        yield(add(acc, t), add(at, stride))
      }
      store(offset(out, lane), sums)
    })");
  struct Walk {
    std::int64_t first, stride, n;
  };
  for (const auto& [first, stride, n] :
       {Walk{0, 8, 5}, Walk{32, -8, 5}, Walk{4, 0, 3}, Walk{39, -1, 0}, Walk{8, -8, 2}}) {
    SCOPED_TRACE(stride);
    expect_same_meaning(views_hoisted,
                        launched(kernel, {1, 1, 1}, {{48}, {8}, {first}, {stride}, {n}}));
  }
}

TEST(HoistViews, KeepsTheMeaningOfLoopsThatDoNotBeginAtZero) {
  const Kernel kernel = parsed_kernel(R"(
    kernel total(x: *f32, out: *f32, from: i64, n: i64) {
      lane: i64[8] = iota()
      sums = for (k = from to n step 8, acc: f32[8] = 0.0) {
        mask = lt(lane, sub(n, k))
        t = load(offset(offset(x, k), lane), mask)
        yield(add(acc, t))
      }
      store(offset(out, lane), sums)
    })");
  for (const std::int64_t from : {0, 3, 8, 40})
    for (const std::int64_t n : {0, 5, 20, 40})
      expect_same_meaning(views_hoisted, launched(kernel, {1, 1, 1}, {{40}, {8}, {from}, {n}}));
}

TEST(HoistViews, LeavesViewsWhoseAddressIsLoadedAlone) {
  const Kernel kernel = simplify(parsed_kernel(R"(
    kernel total(x: *f32, starts: *i64, out: *f32, n: i64) {
      lane: i64[8] = iota()
      sums = for (k = 0 to n step 1, acc: f32[8] = 0.0) {
        v: view f32[8] = view(offset(x, load(offset(starts, k))))
        t: f32[8] = vload(v, 0)
        yield(add(acc, t))
      }
      store(offset(out, lane), sums)
    })"));
  EXPECT_EQ(anonymous(simplify(hoist_views(kernel))), anonymous(kernel));
}

TEST(HoistViews, KeepsTheMeaningOfRandomKernels) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    expect_same_meaning(views_hoisted, random_kernel(seed));
  }
}

}  // namespace
}  // namespace tessera::tile
