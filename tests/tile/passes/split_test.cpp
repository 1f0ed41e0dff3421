#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

Kernel in_two(const Kernel& kernel) {
  return split(kernel, Loops::Split);
}

/// The marks of all accesses, in order.
std::vector<std::vector<std::int64_t>> marks(const Kernel& kernel) {
  std::vector<std::vector<std::int64_t>> all;
  for_each_op(kernel, kernel.body, [&](OpId id) {
    const Operation& op = kernel.ops[id];
    if (op.code == Code::Vload || op.code == Code::Vstore) all.push_back(op.ints);
  });
  return all;
}

using Marks = std::vector<std::vector<std::int64_t>>;

constexpr std::string_view kSum = R"(kernel sum(x: view f32[?], out: view f32[32]) {
  zero: i64 = 0
  step: i64 = 32
  n: i64 = dim(x) {axis = 0}
  none: f32[32] = 0
  total: f32[32] = for (i: i64 = zero to n step step, acc: f32[32] = none) {
    t: f32[32] = vload(x, i)
    next: f32[32] = add(acc, t)
    yield(next)
  }
  vstore(out, zero, total)
})";

TEST(Split, StopsALoopBeforeItLeavesTheView) {
  expect_pass({in_two, kSum,
               R"(kernel sum(x: view f32[?], out: view f32[32]) {
                    n: i64 = dim(x) {axis = 0}
                    zero: i64 = 0
                    step: i64 = 32
                    none: f32[32] = 0
                    less: i64 = -31
                    a: i64 = add(n, less)
                    b: i64 = max(a, zero)
                    middle: i64 = min(n, b)
                    c: i64 = max(middle, zero)
                    more: i64 = 31
                    d: i64 = add(c, more)
                    e: i64 = div(d, step)
                    f: i64 = mul(e, step)
                    rest: i64 = min(f, n)
                    whole: f32[32] = for (i: i64 = zero to middle step step, acc: f32[32] = none) {
                      t: f32[32] = vload(x, i) {inside = [1]}
                      next: f32[32] = add(acc, t)
                      yield(next)
                    }
                    total: f32[32] = for (i: i64 = rest to n step step, acc: f32[32] = whole) {
                      t: f32[32] = vload(x, i)
                      next: f32[32] = add(acc, t)
                      yield(next)
                    }
                    vstore(out, zero, total) {inside = [1]}
                  })"});
}

TEST(Split, MarksOnlyWhereLoopsStayWhole) {
  const Kernel kernel = split(parsed_kernel(kSum), Loops::Whole);
  EXPECT_EQ(count_of(kernel, Code::For), 1);
  EXPECT_EQ(marks(kernel), (Marks{{}, {1}}));
}

TEST(Split, KeepsTheMeaningForEveryLength) {
  for (const std::int64_t n : {0, 1, 31, 32, 33, 64, 95, 100}) {
    SCOPED_TRACE(n);
    expect_same_meaning(in_two, launched(parsed_kernel(kSum), {1, 1, 1}, {{n}, {32}}));
  }
}

TEST(Split, MarksALoopWhoseStepsEndWithTheView) {
  // The extent is a multiple of the step, so no round leaves it.
  const Kernel kernel = in_two(parsed_kernel(R"(kernel sum(x: view f32[?], out: view f32[32]) {
    n: i64 = dim(x) {axis = 0}
    q: i64 = div(n, 32)
    whole: i64 = mul(q, 32)
    none: f32[32] = 0
    total: f32[32] = for (i: i64 = 0 to whole step 32, acc: f32[32] = none) {
      t: f32[32] = vload(x, i)
      next: f32[32] = add(acc, t)
      yield(next)
    }
    vstore(out, 0, total)
  })"));
  EXPECT_EQ(count_of(kernel, Code::For), 1) << to_text(kernel);
  EXPECT_EQ(marks(kernel), (Marks{{1}, {1}})) << to_text(kernel);
}

TEST(Split, BelievesAssumptions) {
  const Kernel kernel = in_two(parsed_kernel(R"(kernel k(x: view f32[100], at: i64, out: *f32) {
    a: bool = ge(at, 0)
    b: bool = le(at, 90)
    c: bool = and(a, b)
    assume(c)
    t: f32[10] = vload(x, at)
    vstore(x, at, t)
    u: f32[11] = vload(x, at)
    vstore(x, at, u)
  })"));
  EXPECT_EQ(marks(kernel), (Marks{{1}, {1}, {}, {}})) << to_text(kernel);
}

TEST(Split, DoesNotMarkWhatMayBeginBeforeTheView) {
  const Kernel kernel = in_two(parsed_kernel(R"(kernel k(x: view f32[100], at: i64) {
    a: bool = le(at, 90)
    assume(a)
    t: f32[10] = vload(x, at)
    vstore(x, at, t)
  })"));
  EXPECT_EQ(marks(kernel), (Marks{{}, {}})) << to_text(kernel);
}

TEST(Split, LeavesTheRestOfALoopThatIsSplitByHand) {
  const Kernel kernel = in_two(parsed_kernel(R"(kernel sum(x: view f32[?], out: view f32[32]) {
    n: i64 = dim(x) {axis = 0}
    q: i64 = div(n, 32)
    whole: i64 = mul(q, 32)
    none: f32[32] = 0
    a: f32[32] = for (i: i64 = 0 to whole step 32, acc: f32[32] = none) {
      t: f32[32] = vload(x, i)
      next: f32[32] = add(acc, t)
      yield(next)
    }
    b: f32[32] = for (i: i64 = whole to n step 32, acc: f32[32] = a) {
      t: f32[32] = vload(x, i)
      next: f32[32] = sub(acc, t)
      yield(next)
    }
    vstore(out, 0, b)
  })"));
  EXPECT_EQ(count_of(kernel, Code::For), 2) << to_text(kernel);
  EXPECT_EQ(marks(kernel), (Marks{{1}, {}, {1}})) << to_text(kernel);
}

TEST(Split, SplitsALoopOfNarrowNumbers) {
  const Kernel kernel = parsed_kernel(R"(kernel sum(x: view f32[?], n: i32, out: view f32[32]) {
    none: f32[32] = 0
    total: f32[32] = for (i: i32 = 0 to n step 7, acc: f32[32] = none) {
      t: f32[32] = vload(x, i)
      next: f32[32] = add(acc, t)
      yield(next)
    }
    vstore(out, 0, total)
  })");
  EXPECT_EQ(count_of(in_two(kernel), Code::For), 2) << to_text(in_two(kernel));
  for (const std::int64_t n : {-3, 0, 1, 40, 100, 130}) {
    SCOPED_TRACE(n);
    expect_same_meaning(in_two, launched(kernel, {1, 1, 1}, {{100}, {n}, {32}}));
  }
}

TEST(Split, KeepsTheMeaningOfAnyKernel) {
  for_each_random_kernel(1, 80, {}, [](const RandomKernel& random) {
    expect_same_meaning(
        [](const Kernel& kernel) { return in_two(simplify(recover(simplify(kernel)))); }, random);
  });
}

}  // namespace
}  // namespace tessera::tile
