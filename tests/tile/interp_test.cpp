#include "tessera/tile/interp.h"

#include <string>

#include "gmock/gmock.h"
#include "tests/tile/interp_run.h"

namespace tessera::tile {
namespace {

using std::int32_t, std::int64_t;
using ::testing::ElementsAre;

TEST(InterpControl, AForCarriesTiles) {
  EXPECT_THAT(answer({1, 2, 3, 4, 5, 6, 7}, 3, R"(
    zero: i32[3] = 0
    n: i64 = dim(x) {axis = 0}
    sums: i32[3] = for (i: i64 = 0 to n step 3, acc: i32[3] = zero) {
      part: i32[3] = vload(x, i)
      next: i32[3] = add(acc, part)
      yield(next)
    }
    vstore(out, 0, sums))"),
              ElementsAre(12, 7, 9));
}

/// How many rounds a loop of i64 makes, and the sum of its indices.
std::vector<int64_t> rounds(int64_t from, int64_t to, int64_t step) {
  std::vector<int64_t> out(2);
  EXPECT_EQ(run(R"(kernel k(from: i64, to: i64, step: i64, out: *i64) {
                     zero: i64 = 0
                     (n: i64, s: i64) = for (i: i64 = from to to step step, a: i64 = zero,
                                             b: i64 = zero) {
                       a2: i64 = add(a, 1)
                       b2: i64 = add(b, i)
                       yield(a2, b2)
                     }
                     store(out, n)
                     second: *i64 = offset(out, 1)
                     store(second, s)
                   })",
                {Argument::integer(DType::I64, from), Argument::integer(DType::I64, to),
                 Argument::integer(DType::I64, step), pointer(out)}),
            "");
  return out;
}

TEST(InterpControl, AForEndsWhateverItsBounds) {
  EXPECT_THAT(rounds(0, 10, 3), ElementsAre(4, 18));
  EXPECT_THAT(rounds(-4, -1, 2), ElementsAre(2, -6));
  EXPECT_THAT(rounds(5, 5, 1), ElementsAre(0, 0));
  EXPECT_THAT(rounds(0, 10, 0), ElementsAre(0, 0));
  EXPECT_THAT(rounds(10, 0, -1), ElementsAre(0, 0));
  EXPECT_THAT(rounds(INT64_MAX - 1, INT64_MAX, 2), ElementsAre(1, INT64_MAX - 1));
}

TEST(InterpControl, CarriedValuesAreExchangedAtOnce) {
  EXPECT_THAT(answer({0, 1}, 2, R"(
    t: i32[2] = vload(x, 0)
    a0: i32[1] = slice(t) {from = [0]}
    b0: i32[1] = slice(t) {from = [1]}
    n: i32 = 5
    zero: i32 = 0
    one: i32 = 1
    (a: i32[1], b: i32[1]) = for (i: i32 = zero to n step one, p: i32[1] = a0, q: i32[1] = b0) {
      yield(q, p)
    }
    both: i32[2] = concat(a, b) {axis = 0}
    vstore(out, 0, both))"),
              ElementsAre(1, 0));
}

TEST(InterpControl, AWhileRunsAsLongAsItsConditionHolds) {
  // Collatz: the steps from 27 to 1.
  std::vector<int64_t> out(1);
  EXPECT_EQ(run(R"(kernel k(out: *i64) {
                     start: i64 = 27
                     zero: i64 = 0
                     (x: i64, n: i64) = while (a: i64 = start, c: i64 = zero) {
                       more: bool = ne(a, 1)
                       yield(more)
                     } do {
                       bit: i64 = and(a, 1)
                       odd: bool = eq(bit, 1)
                       next: i64 = if (odd) {
                         triple: i64 = mul(a, 3)
                         up: i64 = add(triple, 1)
                         yield(up)
                       } else {
                         down: i64 = shr(a, 1)
                         yield(down)
                       }
                       c2: i64 = add(c, 1)
                       yield(next, c2)
                     }
                     store(out, n)
                   })",
                {pointer(out)}),
            "");
  EXPECT_EQ(out[0], 111);
}

TEST(InterpControl, OnlyOneBranchTouchesMemory) {
  std::vector<int32_t> out(3, 9);
  EXPECT_EQ(run(R"(kernel k(out: *i32) {
                     p: i64 = pid() {axis = 0}
                     first: bool = eq(p, 0)
                     at: *i32 = offset(out, p)
                     if (first) {
                       store(at, 1)
                     } else {
                       second: bool = eq(p, 1)
                       if (second) {
                         store(at, 2)
                       }
                     }
                   })",
                {pointer(out)}, {3, 1, 1}),
            "");
  EXPECT_THAT(out, ElementsAre(1, 2, 9));
}

TEST(InterpControl, AxisZeroOfTheGridRunsFastest) {
  std::vector<int64_t> out(2 * 3 * 2 + 1);
  EXPECT_EQ(run(R"(kernel k(out: *i64) {
                     x: i64 = pid() {axis = 0}
                     y: i64 = pid() {axis = 1}
                     z: i64 = pid() {axis = 2}
                     nx: i64 = npid() {axis = 0}
                     ny: i64 = npid() {axis = 1}
                     zy: i64 = mul(z, ny)
                     zy1: i64 = add(zy, y)
                     row: i64 = mul(zy1, nx)
                     linear: i64 = add(row, x)
                     turn: i64 = atomic(out, 1) {fn = add}
                     next: i64 = add(linear, 1)
                     p: *i64 = offset(out, next)
                     store(p, turn)
                   })",
                {pointer(out)}, {2, 3, 2}),
            "");
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i + 1)], i);
}

TEST(InterpControl, AnEmptyGridDoesNothing) {
  std::vector<int32_t> out = {9};
  const char* text = "kernel k(out: *i32) { store(out, 1) }";
  EXPECT_EQ(run(text, {pointer(out)}, {0, 1, 1}), "");
  EXPECT_THAT(out, ElementsAre(9));
}

TEST(InterpLimits, AnEndlessLoopIsStopped) {
  const char* text = R"(kernel k() {
    while () {
      t: bool = true
      yield(t)
    } do {
    }
  })";
  const Diagnostic found = mistake(text, {}, {1, 1, 1}, {.most_steps = 1000});
  EXPECT_EQ(found.id, "tile-steps");
  EXPECT_EQ(found.message, "more than 1000 operations are executed");
}

TEST(InterpLimits, AnEndlessGridIsStopped) {
  const int64_t many = int64_t{1} << 31;
  EXPECT_EQ(run("kernel k() { }", {}, {many, many, 1}, {.most_steps = 100}), "tile-steps");
}

TEST(InterpLimits, TilesThatAreNeededAtOnceAreBounded) {
  std::vector<double> out(1);
  const Diagnostic found = mistake(R"(kernel k(out: view f64[1]) {
                                        a: f64[512] = 1
                                        b: f64[513] = 2
                                        c: f64[1025] = concat(a, b) {axis = 0}
                                        d: f64[1] = slice(c) {from = [512]}
                                        vstore(out, 0, d)
                                      })",
                                   {view(out, {1})}, {1, 1, 1}, {.most_bytes = 1025 * 16 - 1});
  EXPECT_EQ(to_string(found),
            "test.tile: line 4: error[tile-memory]: 16400 bytes of tiles\n"
            "  note: 16399 at once at most");
}

TEST(InterpLimits, TilesThatAreNoLongerNeededAreDropped) {
  std::vector<std::int8_t> out(1);
  EXPECT_EQ(run(R"(kernel k(out: view i8[1]) {
                     zero: i8[1000] = 0
                     last: i8[1000] = for (i: i64 = 0 to 100 step 1, acc: i8[1000] = zero) {
                       one: i8[1000] = 1
                       next: i8[1000] = add(acc, one)
                       twice: i8[1000] = add(next, next)
                       half: i8[1000] = sub(twice, next)
                       yield(half)
                     }
                     y: i8[1] = slice(last) {from = [999]}
                     vstore(out, 0, y)
                   })",
                {view(out, {1})}, {1, 1, 1}, {.most_bytes = 4100}),
            "");
  EXPECT_EQ(out[0], 100);
}

TEST(InterpDebug, AFalseAssertionIsReportedInItsWords) {
  const char* text = R"(kernel k(n: i32) {
    lanes: i32[4] = iota()
    ns: i32[4] = broadcast(n)
    below: bool[4] = lt(lanes, ns)
    assert(below) {message = "four are needed"}
  })";
  EXPECT_EQ(run(text, {Argument::integer(DType::I32, 4)}), "");
  EXPECT_EQ(to_string(mistake(text, {Argument::integer(DType::I32, 3)})),
            "test.tile: line 5: error[tile-assertion]: four are needed\n"
            "  note: in program 0, 0, 0");
}

TEST(InterpDebug, AFalseAssumptionIsAMistakeToo) {
  const char* text = R"(kernel k(n: i32) {
    positive: bool = gt(n, 0)
    assume(positive)
  })";
  EXPECT_EQ(run(text, {Argument::integer(DType::I32, 1)}), "");
  EXPECT_EQ(mistake(text, {Argument::integer(DType::I32, 0)}).id, "tile-assertion");
}

TEST(InterpDebug, PrintHandsOverTheProgramAndItsValues) {
  std::vector<std::string> lines;
  InterpOptions options;
  options.print = [&](std::string_view line) { lines.emplace_back(line); };
  EXPECT_EQ(run(R"(kernel k(x: f32) {
                     lanes: i8[3] = iota()
                     low: bool = lt(x, 2.0)
                     print(x, lanes, low) {message = "seen"}
                   })",
                {Argument::number(DType::F32, 1.5)}, {1, 2, 1}, options),
            "");
  EXPECT_THAT(
      lines, ElementsAre("(0, 0, 0) seen 1.5 [0, 1, 2] true", "(0, 1, 0) seen 1.5 [0, 1, 2] true"));
}

TEST(InterpDebug, HintsAndBarriersChangeNothing) {
  EXPECT_THAT(answer({7}, 1, R"(
    zero: i64 = 0
    at: i64 = hint(zero) {multiple_of = [16]}
    barrier()
    t: i32[1] = vload(x, at)
    vstore(out, at, t))"),
              ElementsAre(7));
}

TEST(InterpLaunch, WrongArgumentsAreRefused) {
  const Expected<Kernel> kernel = parse_kernel("kernel k(n: i32) { }");
  ASSERT_TRUE(kernel.has_value());
  EXPECT_EQ(interpret(*kernel, {}, {1, 1, 1}).error().id, "launch-argument");
  const std::vector<Argument> one = {Argument::integer(DType::I32, 1)};
  EXPECT_EQ(interpret(*kernel, one, {-1, 1, 1}).error().id, "launch-grid");
}

TEST(InterpLaunch, AKernelThatIsNotOneIsRefused) {
  Kernel kernel;
  kernel.body.ops = {5};
  EXPECT_EQ(interpret(kernel, {}, {1, 1, 1}).error().id, "tile-structure");
}

}  // namespace
}  // namespace tessera::tile
