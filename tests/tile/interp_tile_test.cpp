#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "tessera/support/rng.h"
#include "tests/tile/interp_run.h"

namespace tessera::tile {
namespace {

using std::int32_t, std::int64_t, std::int8_t;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TEST(InterpShape, BroadcastRepeatsAlongAxesOfOne) {
  EXPECT_THAT(answer({1, 2}, 6, R"(
    t: i32[2] = vload(x, 0)
    column: i32[2, 1] = reshape(t)
    wide: i32[2, 3] = broadcast(column)
    flat: i32[6] = reshape(wide)
    vstore(out, 0, flat))"),
              ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_THAT(answer({1, 2}, 4, R"(
    t: i32[2] = vload(x, 0)
    row: i32[1, 2] = reshape(t)
    tall: i32[2, 2] = broadcast(row)
    flat: i32[4] = reshape(tall)
    vstore(out, 0, flat))"),
              ElementsAre(1, 2, 1, 2));
}

TEST(InterpShape, PermuteMovesAxes) {
  std::vector<int32_t> x(24), expected(24);
  for (std::size_t i = 0; i < 24; ++i) x[i] = static_cast<int32_t>(i);
  // Result (a, b, c) is operand (b, c, a): the operand has shape 3 x 4 x 2.
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 4; ++c)
        expected[static_cast<std::size_t>(a * 12 + b * 4 + c)] = b * 8 + c * 2 + a;
  EXPECT_THAT(answer(x, 24, R"(
    t: i32[24] = vload(x, 0)
    cube: i32[3, 4, 2] = reshape(t)
    turned: i32[2, 3, 4] = permute(cube) {order = [2, 0, 1]}
    flat: i32[24] = reshape(turned)
    vstore(out, 0, flat))"),
              ElementsAreArray(expected));
}

TEST(InterpShape, ConcatAndSliceJoinAndCut) {
  EXPECT_THAT(answer({1, 2, 3, 4}, 8, R"(
    t: i32[4] = vload(x, 0)
    square: i32[2, 2] = reshape(t)
    column: i32[2, 1] = slice(square) {from = [0, 1]}
    joined: i32[2, 4] = concat(column, square, column) {axis = 1}
    flat: i32[8] = reshape(joined)
    vstore(out, 0, flat))"),
              ElementsAre(2, 1, 2, 2, 4, 3, 4, 4));
}

TEST(InterpShape, PointersAreMovedLikeNumbers) {
  EXPECT_THAT(answer({5, 6, 7, 8}, 2, R"(
    b: *i32 = base(x)
    bs: *i32[4] = broadcast(b)
    lanes: i32[4] = iota()
    p: *i32[4] = offset(bs, lanes)
    upper: *i32[2] = slice(p) {from = [2]}
    t: i32[2] = load(upper)
    vstore(out, 0, t))"),
              ElementsAre(7, 8));
}

TEST(InterpShape, GatherFollowsIndicesAlongTheAxis) {
  EXPECT_THAT(answer({10, 11, 12, 20, 21, 22}, 4, R"(
    t: i32[6] = vload(x, 0)
    m: i32[2, 3] = reshape(t)
    two: i32[2, 2] = 2
    lanes: i32[4] = iota()
    grid: i32[2, 2] = reshape(lanes)
    index: i32[2, 2] = rem(grid, two)
    last: i32[2, 2] = sub(two, index)
    y: i32[2, 2] = gather(m, last) {axis = 1}
    flat: i32[4] = reshape(y)
    vstore(out, 0, flat))"),
              ElementsAre(12, 11, 22, 21));
}

TEST(InterpShape, AGatherOffItsAxisIsAMistake) {
  std::vector<int32_t> out(1);
  const Diagnostic found = mistake(R"(kernel k(out: view i32[1]) {
                                        x: i32[3] = iota()
                                        at: i8[1] = -1
                                        y: i32[1] = gather(x, at) {axis = 0}
                                        vstore(out, 0, y)
                                      })",
                                   {view(out, {1})});
  EXPECT_EQ(to_string(found),
            "test.tile: line 4: error[tile-out-of-bounds]: a gather at index -1\n"
            "  note: indices from 0 to 2");
}

TEST(InterpFold, ReduceCombinesAlongAnyAxis) {
  const std::vector<int32_t> x = {3, 1, 2, 6, 5, 4};
  const auto along = [&](const char* function, int axis, std::size_t results) {
    return answer(x, results,
                  fmt::format(R"(
      t: i32[6] = vload(x, 0)
      m: i32[2, 3] = reshape(t)
      y: i32[{}] = reduce(m) {{fn = {}, axis = {}}}
      vstore(out, 0, y))",
                              results, function, axis));
  };
  EXPECT_THAT(along("add", 0, 3), ElementsAre(9, 6, 6));
  EXPECT_THAT(along("add", 1, 2), ElementsAre(6, 15));
  EXPECT_THAT(along("mul", 1, 2), ElementsAre(6, 120));
  EXPECT_THAT(along("min", 1, 2), ElementsAre(1, 4));
  EXPECT_THAT(along("max", 0, 3), ElementsAre(6, 5, 4));
  EXPECT_THAT(along("and", 1, 2), ElementsAre(0, 4));
  EXPECT_THAT(along("or", 1, 2), ElementsAre(3, 7));
  EXPECT_THAT(along("xor", 1, 2), ElementsAre(0, 7));
}

TEST(InterpFold, NarrowSumsWrap) {
  EXPECT_THAT((answer<int8_t, int8_t>({100, 100, -1}, 1, R"(
    t: i8[3] = vload(x, 0)
    y: i8 = reduce(t) {fn = add, axis = 0}
    one: i8[1] = reshape(y)
    vstore(out, 0, one))")),
              ElementsAre(-57));
}

TEST(InterpFold, FloatSumsAreRoundedOnce) {
  const char* sum = R"(
    t: f32[4] = vload(x, 0)
    y: f32 = reduce(t) {fn = add, axis = 0}
    one: f32[1] = reshape(y)
    vstore(out, 0, one))";
  EXPECT_THAT((answer<float, float>({0x1p60f, 1, -0x1p60f, 1}, 1, sum)), ElementsAre(2));
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_THAT((answer<float, float>({1, inf, 1, 1}, 1, sum)), ElementsAre(inf));
  EXPECT_TRUE(std::isnan(answer<float, float>({-inf, inf, 1, 1}, 1, sum)[0]));
  EXPECT_TRUE(std::signbit(answer<float, float>({-0.0f, -0.0f, -0.0f, -0.0f}, 1, sum)[0]));
}

TEST(InterpFold, SumsOfHalvesGrowBeyondTheirSteps) {
  // In f16 itself the sum would stay at 2048.
  const auto sum = answer<Half, Half>(std::vector<Half>(4096, to_half(1)), 1, R"(
    t: f16[4096] = vload(x, 0)
    y: f16 = reduce(t) {fn = add, axis = 0}
    one: f16[1] = reshape(y)
    vstore(out, 0, one))");
  EXPECT_EQ(to_float(sum[0]), 4096);
}

TEST(InterpFold, MinPassesOverNanAndMinimumDoesNot) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto least = [&](const char* function) {
    return answer<float, float>({2, nan, 1}, 1,
                                fmt::format(R"(
      t: f32[3] = vload(x, 0)
      y: f32 = reduce(t) {{fn = {}, axis = 0}}
      one: f32[1] = reshape(y)
      vstore(out, 0, one))",
                                            function))[0];
  };
  EXPECT_EQ(least("min"), 1);
  EXPECT_EQ(least("max"), 2);
  EXPECT_TRUE(std::isnan(least("minimum")));
  EXPECT_TRUE(std::isnan(least("maximum")));
}

TEST(InterpFold, ScansRunBothWays) {
  const auto scanned = [](const char* options) {
    return answer({1, 2, 3, 4, 5, 6}, 6,
                  fmt::format(R"(
      t: i32[6] = vload(x, 0)
      m: i32[3, 2] = reshape(t)
      y: i32[3, 2] = scan(m) {{{}}}
      flat: i32[6] = reshape(y)
      vstore(out, 0, flat))",
                              options));
  };
  EXPECT_THAT(scanned("fn = add, axis = 0"), ElementsAre(1, 2, 4, 6, 9, 12));
  EXPECT_THAT(scanned("fn = add, axis = 1"), ElementsAre(1, 3, 3, 7, 5, 11));
  EXPECT_THAT(scanned("fn = add, axis = 0, reverse = true"), ElementsAre(9, 12, 8, 10, 5, 6));
  EXPECT_THAT(scanned("fn = mul, axis = 1, reverse = true"), ElementsAre(2, 2, 12, 4, 30, 6));
}

TEST(InterpFold, ARegionReducesSeveralTilesTogether) {
  // The largest of each column and its row; the first of equal ones.
  const auto best = answer({7, 3, 7, 9, 1, 9}, 4, R"(
    t: i32[6] = vload(x, 0)
    m: i32[3, 2] = reshape(t)
    lanes: i32[3] = iota()
    column: i32[3, 1] = reshape(lanes)
    rows: i32[3, 2] = broadcast(column)
    (v: i32[2], at: i32[2]) = reduce(m, rows) {axis = 0} (a: i32, ia: i32, b: i32, ib: i32) {
      left: bool = ge(a, b)
      value: i32 = select(left, a, b)
      index: i32 = select(left, ia, ib)
      yield(value, index)
    }
    both: i32[4] = concat(v, at) {axis = 0}
    vstore(out, 0, both))");
  EXPECT_THAT(best, ElementsAre(7, 9, 0, 1));
}

TEST(InterpFold, ARegionKeepsTheOrderOfItsOperands) {
  const auto scanned = [](const char* reverse) {
    return answer({1, 2, 3}, 3,
                  fmt::format(R"(
      t: i32[3] = vload(x, 0)
      ten: i32 = 10
      y: i32[3] = scan(t) {{axis = 0{}}} (a: i32, b: i32) {{
        shifted: i32 = mul(a, ten)
        next: i32 = add(shifted, b)
        yield(next)
      }}
      vstore(out, 0, y))",
                              reverse));
  };
  EXPECT_THAT(scanned(""), ElementsAre(1, 12, 123));
  EXPECT_THAT(scanned(", reverse = true"), ElementsAre(321, 32, 3));
}

double exact(float x) {
  return x;
}
double exact(Half x) {
  return to_float(x);
}
int64_t exact(int8_t x) {
  return x;
}

double between_ones(Rng& rng) {
  return 2 * rng.uniform() - 1;
}

/// a·b + 3 of drawn numbers, against a plain loop.
template <class A, class C, class Draw>
void expect_dot(int64_t m, int64_t n, int64_t k, const Draw& draw) {
  Rng rng(7);
  std::vector<A> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n));
  std::vector<C> c(static_cast<std::size_t>(m * n), C{3}), out(c.size());
  for (A& x : a) x = draw(rng);
  for (A& x : b) x = draw(rng);
  const auto in = to_string(stored_dtype<A>()), to = to_string(stored_dtype<C>());
  EXPECT_EQ(run(fmt::format(R"(kernel k(a: view {0}[{2}, {4}], b: view {0}[{4}, {3}],
                                        c: view {1}[{2}, {3}], out: view {1}[{2}, {3}]) {{
                                 x: {0}[{2}, {4}] = vload(a, 0, 0)
                                 y: {0}[{4}, {3}] = vload(b, 0, 0)
                                 z: {1}[{2}, {3}] = vload(c, 0, 0)
                                 d: {1}[{2}, {3}] = dot(x, y, z)
                                 vstore(out, 0, 0, d)
                               }})",
                            in, to, m, n, k),
                {view(a, {m, k}), view(b, {k, n}), view(c, {m, n}), view(out, {m, n})}),
            "");
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      decltype(exact(a[0])) sum = 3;
      for (int64_t p = 0; p < k; ++p)
        sum += exact(a[static_cast<std::size_t>(i * k + p)]) *
               exact(b[static_cast<std::size_t>(p * n + j)]);
      ASSERT_EQ(out[static_cast<std::size_t>(i * n + j)], static_cast<C>(sum)) << i << ", " << j;
    }
  }
}

TEST(InterpDot, FloatsAreSummedInDouble) {
  const auto draw = [](Rng& rng) { return static_cast<float>(between_ones(rng)); };
  expect_dot<float, float>(5, 7, 3, draw);
  expect_dot<float, float>(128, 128, 128, draw);
}

TEST(InterpDot, BytesAreSummedIn32Bits) {
  expect_dot<int8_t, int32_t>(4, 3, 300, [](Rng& rng) { return static_cast<int8_t>(rng.next()); });
}

TEST(InterpDot, HalvesAreSummedWide) {
  expect_dot<Half, float>(3, 4, 64, [](Rng& rng) { return to_half(between_ones(rng)); });
}

}  // namespace
}  // namespace tessera::tile
