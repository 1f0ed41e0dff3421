#include "tessera/tile/passes/recover.h"

#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

Kernel recovered(const Kernel& kernel) {
  return simplify(recover(simplify(kernel)));
}

/// A tile of pointers is all that is left alone.
void expect_left_alone(std::string_view text) {
  const Kernel kernel = recovered(parsed_kernel(text));
  expect_valid(kernel);
  EXPECT_EQ(count_of(kernel, Code::Vload) + count_of(kernel, Code::Vstore), 0) << to_text(kernel);
}

TEST(Recover, TurnsAMaskedRowIntoAView) {
  expect_pass({recovered,
               R"(kernel copy(x: *f32, out: *f32, n: i64) {
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
               R"(kernel copy(x: *f32, out: *f32, n: i64) {
                    p: i64 = pid() {axis = 0}
                    vx: view f32[?] = view(x, n)
                    c: i64 = 64
                    first: i64 = mul(p, c)
                    t: f32[64] = vload(vx, first) {pad = -inf}
                    vo: view f32[?] = view(out, n)
                    vstore(vo, first, t)
                  })"});
}

TEST(Recover, FindsTheStridesOfAMatrix) {
  expect_pass({recovered,
               R"(kernel copy(x: *f32, out: view f32[8, 16], rows: i64, row: i64) {
                    p: i64 = pid() {axis = 0}
                    first: i64 = mul(p, 8)
                    i: i64[8] = iota()
                    all: i64[8] = broadcast(first)
                    at: i64[8] = add(all, i)
                    atr: i64[8, 1] = reshape(at)
                    by: i64[8, 1] = broadcast(row)
                    down: i64[8, 1] = mul(atr, by)
                    j: i64[16] = iota()
                    jr: i64[1, 16] = reshape(j)
                    downs: i64[8, 16] = broadcast(down)
                    js: i64[8, 16] = broadcast(jr)
                    o: i64[8, 16] = add(downs, js)
                    xs: *f32[8, 16] = broadcast(x)
                    px: *f32[8, 16] = offset(xs, o)
                    end: i64[8, 1] = broadcast(rows)
                    m: bool[8, 1] = lt(atr, end)
                    mask: bool[8, 16] = broadcast(m)
                    t: f32[8, 16] = load(px, mask)
                    vstore(out, 0, 0, t)
                  })",
               R"(kernel copy(x: *f32, out: view f32[8, 16], rows: i64, row: i64) {
                    p: i64 = pid() {axis = 0}
                    v: view f32[?, 16] by [?, 1] = view(x, rows, row)
                    c: i64 = 8
                    first: i64 = mul(p, c)
                    zero: i64 = 0
                    t: f32[8, 16] = vload(v, first, zero)
                    vstore(out, zero, zero, t)
                  })"});
}

TEST(Recover, NeedsNoMask) {
  expect_pass({recovered,
               R"(kernel copy(x: *f32, out: view f32[16]) {
                    p: i64 = pid() {axis = 0}
                    first: i64 = mul(p, 16)
                    i: i64[16] = iota()
                    all: i64[16] = broadcast(first)
                    at: i64[16] = add(all, i)
                    xs: *f32[16] = broadcast(x)
                    px: *f32[16] = offset(xs, at)
                    t: f32[16] = load(px)
                    vstore(out, 0, t)
                  })",
               R"(kernel copy(x: *f32, out: view f32[16]) {
                    p: i64 = pid() {axis = 0}
                    c: i64 = 16
                    first: i64 = mul(p, c)
                    q: *f32 = offset(x, first)
                    v: view f32[16] = view(q)
                    zero: i64 = 0
                    t: f32[16] = vload(v, zero)
                    vstore(out, zero, t)
                  })"});
}

TEST(Recover, ShiftsTheBaseWhereAnOffsetMayBeNegative) {
  // A negative offset reads memory before x; in a view it would be out of bounds.
  expect_pass({recovered,
               R"(kernel copy(x: *f32, out: view f32[16], s: i64, n: i64) {
                    i: i64[16] = iota()
                    all: i64[16] = broadcast(s)
                    at: i64[16] = add(all, i)
                    xs: *f32[16] = broadcast(x)
                    px: *f32[16] = offset(xs, at)
                    end: i64[16] = broadcast(n)
                    mask: bool[16] = lt(at, end)
                    t: f32[16] = load(px, mask)
                    vstore(out, 0, t)
                  })",
               R"(kernel copy(x: *f32, out: view f32[16], s: i64, n: i64) {
                    q: *f32 = offset(x, s)
                    none: i64 = 0
                    minus: i64 = sub(none, s)
                    left: i64 = add(minus, n)
                    v: view f32[?] = view(q, left)
                    t: f32[16] = vload(v, none)
                    vstore(out, none, t)
                  })"});
}

TEST(Recover, TakesALowerBoundForTheBeginning) {
  expect_pass({recovered,
               R"(kernel copy(x: *f32, out: view f32[16], s: i64, n: i64) {
                    i: i64[16] = iota()
                    all: i64[16] = broadcast(s)
                    at: i64[16] = add(all, i)
                    xs: *f32[16] = broadcast(x)
                    px: *f32[16] = offset(xs, at)
                    end: i64[16] = broadcast(n)
                    below: bool[16] = lt(at, end)
                    zeros: i64[16] = 0
                    above: bool[16] = ge(at, zeros)
                    mask: bool[16] = and(below, above)
                    t: f32[16] = load(px, mask)
                    vstore(out, 0, t)
                  })",
               R"(kernel copy(x: *f32, out: view f32[16], s: i64, n: i64) {
                    v: view f32[?] = view(x, n)
                    t: f32[16] = vload(v, s)
                    zero: i64 = 0
                    vstore(out, zero, t)
                  })"});
}

TEST(Recover, TakesBoundsThatMoveBySeveral) {
  // A window of every second pixel of a row of 9: it begins with the pixel before the first.
  expect_pass({recovered,
               R"(kernel copy(x: *f32, out: view f32[16]) {
                    p: i64 = pid() {axis = 0}
                    first: i64 = mul(p, 16)
                    i: i64[16] = iota()
                    all: i64[16] = broadcast(first)
                    j: i64[16] = add(all, i)
                    two: i64[16] = 2
                    twice: i64[16] = mul(j, two)
                    one: i64[16] = 1
                    at: i64[16] = sub(twice, one)
                    xs: *f32[16] = broadcast(x)
                    px: *f32[16] = offset(xs, at)
                    zeros: i64[16] = 0
                    above: bool[16] = ge(at, zeros)
                    nine: i64[16] = 9
                    below: bool[16] = lt(at, nine)
                    mask: bool[16] = and(below, above)
                    t: f32[16] = load(px, mask)
                    vstore(out, 0, t)
                  })",
               R"(kernel copy(x: *f32, out: view f32[16]) {
                    p: i64 = pid() {axis = 0}
                    begin: i64 = 1
                    q: *f32 = offset(x, begin)
                    v: view f32[4] by [2] = view(q)
                    c: i64 = 16
                    first: i64 = mul(p, c)
                    last: i64 = -1
                    at: i64 = add(first, last)
                    t: f32[16] = vload(v, at)
                    zero: i64 = 0
                    vstore(out, zero, t)
                  })"});
}

TEST(Recover, LeavesABoundOfWhichAPartMovesAlone) {
  expect_left_alone(R"(kernel k(x: *f32, s: i64, out: *f32) {
                         i: i64[16] = iota()
                         two: i64[16] = 2
                         twice: i64[16] = mul(i, two)
                         all: i64[16] = broadcast(s)
                         at: i64[16] = add(twice, all)
                         zeros: i64[16] = 0
                         mask: bool[16] = ge(at, zeros)
                         xs: *f32[16] = broadcast(x)
                         px: *f32[16] = offset(xs, at)
                         t: f32[16] = load(px, mask)
                         r: f32 = reduce(t) {fn = add, axis = 0}
                         store(out, r)
                       })");
}

TEST(Recover, CarriesOneOffsetInsteadOfATileOfPointers) {
  expect_pass({recovered,
               R"(kernel sum(x: *f32, out: view f32[16], n: i64, by: i64) {
                    i: i64[16] = iota()
                    xs: *f32[16] = broadcast(x)
                    px: *f32[16] = offset(xs, i)
                    none: f32[16] = 0.0
                    (s: f32[16], q: *f32[16]) = for (r: i64 = 0 to n step 1,
                        a: f32[16] = none, p: *f32[16] = px) {
                      t: f32[16] = load(p)
                      b: f32[16] = add(a, t)
                      steps: i64[16] = broadcast(by)
                      next: *f32[16] = offset(p, steps)
                      yield(b, next)
                    }
                    vstore(out, 0, s)
                  })",
               R"(kernel sum(x: *f32, out: view f32[16], n: i64, by: i64) {
                    none: f32[16] = 0.0
                    zero: i64 = 0
                    one: i64 = 1
                    (s: f32[16], q: i64) = for (r: i64 = zero to n step one,
                        a: f32[16] = none, p: i64 = zero) {
                      at: *f32 = offset(x, p)
                      v: view f32[16] = view(at)
                      t: f32[16] = vload(v, zero)
                      b: f32[16] = add(a, t)
                      next: i64 = add(p, by)
                      yield(b, next)
                    }
                    vstore(out, zero, s)
                  })"});
}

TEST(Recover, LeavesWhatIsNoBoundOfAnIndex) {
  // every second element
  expect_left_alone(R"(kernel k(x: *f32, out: *f32) {
                         i: i64[16] = iota()
                         xs: *f32[16] = broadcast(x)
                         px: *f32[16] = offset(xs, i)
                         r: i64[16] = rem(i, 2)
                         mask: bool[16] = eq(r, 0)
                         t: f32[16] = load(px, mask)
                         s: f32 = reduce(t) {fn = add, axis = 0}
                         store(out, s)
                       })");
}

TEST(Recover, LeavesIndicesThatAreLoaded) {
  expect_left_alone(R"(kernel k(x: *f32, at: i64, out: *f32) {
                         i: i64[16] = iota()
                         two: i64[16] = mul(i, i)
                         xs: *f32[16] = broadcast(x)
                         px: *f32[16] = offset(xs, two)
                         t: f32[16] = load(px)
                         s: f32 = reduce(t) {fn = add, axis = 0}
                         store(out, s)
                       })");
}

TEST(Recover, LeavesAPadThatIsNotOneNumber) {
  expect_left_alone(R"(kernel k(x: *f32, n: i64, y: f32, out: *f32) {
                         i: i64[16] = iota()
                         end: i64[16] = broadcast(n)
                         mask: bool[16] = lt(i, end)
                         xs: *f32[16] = broadcast(x)
                         px: *f32[16] = offset(xs, i)
                         other: f32[16] = broadcast(y)
                         t: f32[16] = load(px, mask, other)
                         s: f32 = reduce(t) {fn = add, axis = 0}
                         store(out, s)
                       })");
}

TEST(Recover, LeavesNarrowSumsThatMayWrap) {
  expect_left_alone(R"(kernel k(x: *f32, s: i32, out: *f32) {
                         i: i32[16] = iota()
                         all: i32[16] = broadcast(s)
                         at: i32[16] = add(all, i)
                         xs: *f32[16] = broadcast(x)
                         px: *f32[16] = offset(xs, at)
                         t: f32[16] = load(px)
                         r: f32 = reduce(t) {fn = add, axis = 0}
                         store(out, r)
                       })");
}

TEST(Recover, TrustsNarrowSumsThatCannotWrap) {
  // A multiple of 16 and less than 16.
  const Kernel kernel = recovered(parsed_kernel(R"(kernel k(x: *f32, s: i32, out: *f32) {
                         i: i32[16] = iota()
                         first: i32 = mul(s, 16)
                         all: i32[16] = broadcast(first)
                         at: i32[16] = add(all, i)
                         xs: *f32[16] = broadcast(x)
                         px: *f32[16] = offset(xs, at)
                         t: f32[16] = load(px)
                         r: f32 = reduce(t) {fn = add, axis = 0}
                         store(out, r)
                       })"));
  EXPECT_EQ(count_of(kernel, Code::Vload), 1) << to_text(kernel);
}

/// A kernel that copies a tile of one to three axes through pointers that are affine, most of the
/// time, under a mask of random bounds. Memory is so large that no element leaves it.
RandomKernel random_access(std::uint64_t seed) {
  Rng rng(seed);
  Builder b("access");
  const auto flip = [&] { return rng.below(2) == 0; };
  const DType dtype = flip() ? DType::I64 : DType::I32;
  const Type number = Type::scalar(dtype);
  const ValueId x = b.param(Type::pointer(DType::F32), "x");
  const ValueId out = b.param(Type::pointer(DType::F32), "out");
  std::vector<Extents> arguments = {{4000}, {4000}};
  const auto scalar = [&](std::int64_t low, std::int64_t high) {
    const std::int64_t value =
        low + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
    if (flip()) return b.constant(number, Literal{0, value});
    arguments.push_back({value});
    return b.param(number, "n" + std::to_string(arguments.size()));
  };
  const auto rank = 1 + rng.below(3);
  Extents shape;
  for (std::size_t i = 0; i < rank; ++i)
    shape.push_back(1 + static_cast<std::int64_t>(rng.below(6)));
  const ValueId pid = b.cast(b.pid(0), dtype);

  const auto spread = [&](ValueId along, std::size_t axis) {
    Extents ones(rank, 1);
    ones[axis] = shape[axis];
    return b.broadcast(b.reshape(along, ones), shape);
  };
  ValueId offset = b.constant(Type::tile(dtype, shape), 1500.0);
  std::optional<ValueId> mask;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const Extents line = {shape[axis]};
    ValueId first = scalar(-5, 20);
    if (flip())
      first = b.add(first, b.mul(pid, b.constant(number, static_cast<double>(shape[axis]))));
    const ValueId index = b.add(b.broadcast(first, line), b.iota(dtype, shape[axis]));
    const ValueId stride = scalar(-3, 10);
    offset = b.add(offset, spread(b.mul(index, b.broadcast(stride, line)), axis));
    for (int bounds = static_cast<int>(rng.below(3)); bounds > 0; --bounds) {
      const Function functions[] = {Function::Less, Function::LessEqual, Function::Greater,
                                    Function::GreaterEqual, Function::NotEqual};
      const Function f = functions[rng.below(rng.below(8) == 0 ? 5 : 4)];
      const bool upper = f == Function::Less || f == Function::LessEqual;
      ValueId small = flip() ? index : b.iota(dtype, shape[axis]);
      if (rng.below(3) == 0)  // a bound that moves by several
        small = b.add(b.mul(small, b.constant(Type::tile(dtype, line),
                                              static_cast<double>(2 + rng.below(2)))),
                      b.constant(Type::tile(dtype, line), static_cast<double>(rng.below(7)) - 3));
      ValueId limit = b.broadcast(upper ? scalar(-2, 25) : scalar(-6, 6), line);
      if (rng.below(4) == 0) std::swap(small, limit);
      const ValueId in = spread(b.map(f, {small, limit}), axis);
      mask = mask ? b.map(Function::And, {*mask, in}) : in;
    }
  }
  if (rng.below(4) == 0) {
    const ValueId all = b.broadcast(b.map(Function::Less, {pid, scalar(0, 3)}), shape);
    mask = mask ? b.map(Function::And, {*mask, all}) : all;
  }
  if (dtype == DType::I32 && flip()) offset = b.cast(offset, DType::I64);
  const auto pointers = [&](ValueId base) { return b.offset(b.broadcast(base, shape), offset); };
  std::optional<ValueId> other;
  if (mask && flip()) other = b.constant(Type::tile(DType::F32, shape), 7.0);
  const ValueId t = b.load(pointers(x), mask, other);
  b.store(pointers(out), b.add(t, t), flip() ? mask : std::nullopt);
  auto kernel = b.finish();
  EXPECT_TRUE(kernel) << (kernel ? "" : to_string(kernel.error()));
  return launched(*kernel, {3, 1, 1}, arguments, seed);
}

TEST(Recover, KeepsTheMeaningOfAffineAccesses) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomKernel random = random_access(seed);
    expect_same_meaning(recovered, random);
    found += count_of(recovered(random.kernel), Code::Vload);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(found, 100);
}

TEST(Recover, KeepsTheMeaningOfAnyKernel) {
  for_each_random_kernel(
      1, 80, {}, [](const RandomKernel& random) { expect_same_meaning(recovered, random); });
}

}  // namespace
}  // namespace tessera::tile
