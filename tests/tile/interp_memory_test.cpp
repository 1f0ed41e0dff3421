#include <cmath>
#include <limits>
#include <numeric>

#include "gmock/gmock.h"
#include "tests/tile/interp_run.h"

namespace tessera::tile {
namespace {

using std::int32_t, std::int64_t;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
std::vector<T> counting(std::size_t count) {
  std::vector<T> numbers(count);
  std::iota(numbers.begin(), numbers.end(), T{0});
  return numbers;
}

constexpr const char* kMaskedAdd = R"(
kernel add(x: *f32, y: *f32, out: *f32, n: i32) {
  p64: i64 = pid() {axis = 0}
  p: i32 = cast(p64)
  start: i32 = mul(p, 4)
  starts: i32[4] = broadcast(start)
  lanes: i32[4] = iota()
  at: i32[4] = add(starts, lanes)
  ns: i32[4] = broadcast(n)
  inside: bool[4] = lt(at, ns)
  xs: *f32[4] = broadcast(x)
  ys: *f32[4] = broadcast(y)
  outs: *f32[4] = broadcast(out)
  xp: *f32[4] = offset(xs, at)
  yp: *f32[4] = offset(ys, at)
  op: *f32[4] = offset(outs, at)
  a: f32[4] = load(xp, inside)
  b: f32[4] = load(yp, inside)
  c: f32[4] = add(a, b)
  store(op, c, inside)
}
)";

TEST(InterpMemory, AMaskedKernelHandlesAnyLength) {
  for (const std::size_t n : {1, 3, 4, 5, 8, 11}) {
    std::vector<float> x = counting<float>(n), y(n, 10), out(n, -1);
    const auto programs = static_cast<int64_t>((n + 3) / 4);
    EXPECT_EQ(run(kMaskedAdd,
                  {pointer(x), pointer(y), pointer(out),
                   Argument::integer(DType::I32, static_cast<int64_t>(n))},
                  {programs, 1, 1}),
              "");
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(out[i], static_cast<float>(i) + 10);
  }
}

TEST(InterpMemory, AnAccessPastTheArgumentIsNamed) {
  std::vector<float> x(8), y(8), out(6);
  const Diagnostic found =
      mistake(kMaskedAdd, {pointer(x), pointer(y), pointer(out), Argument::integer(DType::I32, 7)},
              {2, 1, 1});
  EXPECT_EQ(to_string(found),
            "test.tile: line 20: error[tile-out-of-bounds]: a store at byte 24 of argument out\n"
            "  note: it has 24 bytes; this is program 1, 0, 0");
}

TEST(InterpMemory, APointerKnowsWhereItCameFrom) {
  // Two arguments that lie beside each other: one is not reached from the other.
  std::vector<float> both = {1, 2};
  const Argument first = Argument::pointer(DType::F32, both.data(), 4);
  const Argument second = Argument::pointer(DType::F32, both.data() + 1, 4);
  for (const char* step : {"1", "-1", "4611686018427387904", "-9223372036854775808"}) {
    const std::string text = fmt::format(R"(kernel k(a: *f32, b: *f32) {{
      p: *f32 = offset(a, {})
      x: f32 = load(p)
      store(b, x)
    }})",
                                         step);
    // Steps of 2^62 and -2^63 elements wrap around to the first one.
    const bool wraps = std::string_view(step).size() > 2;
    EXPECT_EQ(run(text, {first, second}), wraps ? "" : "tile-out-of-bounds") << step;
  }
}

TEST(InterpMemory, WhatIsMaskedOffIsNotTouched) {
  std::vector<float> x = {5}, out(3);
  EXPECT_EQ(run(R"(kernel k(x: *f32, out: view f32[3]) {
                     xs: *f32[3] = broadcast(x)
                     far: i64[3] = iota()
                     p: *f32[3] = offset(xs, far)
                     one: i64[3] = 1
                     mask: bool[3] = lt(far, one)
                     other: f32[3] = -1
                     y: f32[3] = load(p, mask, other)
                     vstore(out, 0, y)
                     store(p, y, mask)
                   })",
                {pointer(x), view(out, {3})}),
            "");
  EXPECT_THAT(out, ElementsAre(5, -1, -1));
}

TEST(InterpMemory, AStoreToOnePlaceKeepsTheLast) {
  std::vector<int32_t> out = {0};
  EXPECT_EQ(run(R"(kernel k(out: *i32) {
                     outs: *i32[5] = broadcast(out)
                     x: i32[5] = iota()
                     store(outs, x)
                   })",
                {pointer(out)}),
            "");
  EXPECT_THAT(out, ElementsAre(4));
}

TEST(InterpMemory, AnyByteButZeroIsTrue) {
  std::vector<std::uint8_t> raw = {0, 1, 2, 255};
  std::vector<int32_t> out(4);
  EXPECT_EQ(run(R"(kernel k(x: view bool[4], out: view i32[4]) {
                     t: bool[4] = vload(x, 0)
                     y: i32[4] = cast(t)
                     vstore(out, 0, y)
                   })",
                {Argument::view(DType::Bool, raw.data(), {4}), view(out, {4})}),
            "");
  EXPECT_THAT(out, ElementsAre(0, 1, 1, 1));
}

/// A 2 x 3 tile of a view with element r * 10 + c at (r, c).
std::vector<int32_t> tile_at(int64_t rows, int64_t columns, int64_t r, int64_t c) {
  std::vector<int32_t> x, out(6, 77);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) x.push_back(static_cast<int32_t>(i * 10 + j));
  EXPECT_EQ(run(R"(kernel k(x: view i32[?, ?], out: view i32[2, 3], r: i64, c: i64) {
                     t: i32[2, 3] = vload(x, r, c) {pad = -5}
                     vstore(out, 0, 0, t)
                   })",
                {view(x, {rows, columns}), view(out, {2, 3}), Argument::integer(DType::I64, r),
                 Argument::integer(DType::I64, c)}),
            "");
  return out;
}

TEST(InterpView, ATileIsPaddedWhereItLeavesTheView) {
  EXPECT_THAT(tile_at(4, 5, 1, 2), ElementsAre(12, 13, 14, 22, 23, 24));
  EXPECT_THAT(tile_at(4, 5, 3, 3), ElementsAre(33, 34, -5, -5, -5, -5));
  EXPECT_THAT(tile_at(4, 5, -1, -2), ElementsAre(-5, -5, -5, -5, -5, 0));
  EXPECT_THAT(tile_at(1, 1, 0, -1), ElementsAre(-5, 0, -5, -5, -5, -5));
  EXPECT_THAT(tile_at(0, 5, 0, 0), Each(-5));
  const int64_t far = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(tile_at(4, 5, far, 0), Each(-5));
  EXPECT_THAT(tile_at(4, 5, -far - 1, far), Each(-5));
}

TEST(InterpView, AStoreDropsWhatLeavesTheView) {
  std::vector<int32_t> out(6, 9);
  EXPECT_EQ(run(R"(kernel k(out: view i32[2, 3]) {
                     flat: i32[4] = iota()
                     t: i32[2, 2] = reshape(flat)
                     vstore(out, -1, 2, t)
                     vstore(out, 1, -1, t)
                   })",
                {view(out, {2, 3})}),
            "");
  EXPECT_THAT(out, ElementsAre(9, 9, 2, 1, 9, 9));
}

TEST(InterpView, StridesOfItsOwnAreFollowed) {
  std::vector<float> x = counting<float>(12), out(6);
  // The transpose of a 3 x 4 matrix without its last row and column.
  EXPECT_EQ(run(R"(kernel k(x: *f32, out: view f32[3, 2], rows: i64, stride: i32) {
                     v: view f32[?, 2] by [1, ?] = view(x, rows, stride)
                     t: f32[3, 2] = vload(v, 0, 0)
                     vstore(out, 0, 0, t)
                   })",
                {pointer(x), view(out, {3, 2}), Argument::integer(DType::I64, 3),
                 Argument::integer(DType::I32, 4)}),
            "");
  EXPECT_THAT(out, ElementsAre(0, 4, 1, 5, 2, 6));
}

TEST(InterpView, DimStrideAndBaseAreThoseOfTheArgument) {
  std::vector<float> x = counting<float>(12);
  std::vector<int64_t> out(3);
  EXPECT_EQ(run(R"(kernel k(x: view f32[?, ?], out: *i64) {
                     rows: i64 = dim(x) {axis = 0}
                     stride: i64 = stride(x) {axis = 0}
                     b: *f32 = base(x)
                     p: *f32 = offset(b, stride)
                     f: f32 = load(p)
                     first: i64 = cast(f)
                     store(out, rows)
                     o1: *i64 = offset(out, 1)
                     store(o1, stride)
                     o2: *i64 = offset(out, 2)
                     store(o2, first)
                   })",
                {view(x, {3, 4}), pointer(out)}),
            "");
  EXPECT_THAT(out, ElementsAre(3, 4, 4));
}

TEST(InterpView, ABoundThatIsWiderThanMemoryIsNoLicence) {
  std::vector<float> x(8);
  const Diagnostic found = mistake(R"(kernel k(x: *f32, n: i64) {
                                        v: view f32[?] = view(x, n)
                                        t: f32[4] = vload(v, 6)
                                        vstore(v, 0, t)
                                      })",
                                   {pointer(x), Argument::integer(DType::I64, 9)});
  EXPECT_EQ(to_string(found),
            "test.tile: line 3: error[tile-out-of-bounds]: a vload at byte 32 of argument x\n"
            "  note: it has 32 bytes; this is program 0, 0, 0");
}

TEST(InterpView, APromiseToStayInsideIsHeldToIt) {
  std::vector<float> x(8);
  const Diagnostic found = mistake(R"(kernel k(x: view f32[?]) {
                                        t: f32[4] = vload(x, 5) {inside = [1]}
                                        vstore(x, 0, t)
                                      })",
                                   {view(x, {8})});
  EXPECT_EQ(found.id, "tile-out-of-bounds");
  EXPECT_THAT(found.note, HasSubstr("never leaves the view"));
}

TEST(InterpAtomic, EachFunctionChangesMemoryAndGivesWhatWasThere) {
  struct Case {
    const char* function;
    int32_t after, last;
  };
  // 12 in memory; 10, 6, 15 come in this order.
  for (const Case& c : {Case{"add", 43, 28}, Case{"min", 6, 6}, Case{"max", 15, 12},
                        Case{"and", 12 & 10 & 6 & 15, 12 & 10 & 6}, Case{"or", 15, 12 | 10 | 6},
                        Case{"xor", 12 ^ 10 ^ 6 ^ 15, 12 ^ 10 ^ 6}, Case{"exchange", 15, 6}}) {
    std::vector<int32_t> memory = {12}, x = {10, 6, 15}, old(3);
    EXPECT_EQ(run(fmt::format(R"(kernel k(m: *i32, x: view i32[3], old: view i32[3]) {{
                                   ms: *i32[3] = broadcast(m)
                                   t: i32[3] = vload(x, 0)
                                   was: i32[3] = atomic(ms, t) {{fn = {}}}
                                   vstore(old, 0, was)
                                 }})",
                              c.function),
                  {pointer(memory), view(x, {3}), view(old, {3})}),
              "");
    EXPECT_EQ(memory[0], c.after) << c.function;
    EXPECT_EQ(old[0], 12) << c.function;
    EXPECT_EQ(old[2], c.last) << c.function;
  }
}

TEST(InterpAtomic, ManyProgramsAddUp) {
  std::vector<float> sum = {0.5f};
  EXPECT_EQ(run(R"(kernel k(sum: *f32) {
                     p: i64 = pid() {axis = 1}
                     x: f32 = cast(p)
                     was: f32 = atomic(sum, x) {fn = add}
                   })",
                {pointer(sum)}, {2, 5, 3}),
            "");
  EXPECT_EQ(sum[0], 0.5f + 6 * (0 + 1 + 2 + 3 + 4));
}

TEST(InterpAtomic, AMaskLeavesOutPlacesThatDoNotExist) {
  std::vector<int32_t> bins(3), x = {0, 2, 2, 7, 1, 2};
  EXPECT_EQ(run(R"(kernel histogram(x: view i32[6], bins: *i32) {
                     t: i32[6] = vload(x, 0)
                     three: i32[6] = 3
                     inside: bool[6] = lt(t, three)
                     first: *i32[6] = broadcast(bins)
                     p: *i32[6] = offset(first, t)
                     one: i32[6] = 1
                     was: i32[6] = atomic(p, one, inside) {fn = add}
                   })",
                {view(x, {6}), pointer(bins)}),
            "");
  EXPECT_THAT(bins, ElementsAre(1, 1, 3));
}

TEST(InterpAtomic, CompareAndSwapChangesWhatIsAsExpected) {
  std::vector<int32_t> memory = {3, 4}, old(2);
  EXPECT_EQ(run(R"(kernel k(m: *i32, old: view i32[2]) {
                     ms: *i32[2] = broadcast(m)
                     lanes: i32[2] = iota()
                     p: *i32[2] = offset(ms, lanes)
                     three: i32[2] = 3
                     nine: i32[2] = 9
                     was: i32[2] = cas(p, three, nine)
                     vstore(old, 0, was)
                   })",
                {pointer(memory), view(old, {2})}),
            "");
  EXPECT_THAT(memory, ElementsAre(9, 4));
  EXPECT_THAT(old, ElementsAre(3, 4));
}

TEST(InterpAtomic, OutOfBoundsIsFoundToo) {
  std::vector<int32_t> memory = {3};
  EXPECT_EQ(run(R"(kernel k(m: *i32) {
                     p: *i32 = offset(m, 1)
                     was: i32 = atomic(p, 1) {fn = add}
                   })",
                {pointer(memory)}),
            "tile-out-of-bounds");
}

}  // namespace
}  // namespace tessera::tile
