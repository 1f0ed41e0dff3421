#include "tessera/tile/passes/facts.h"

#include <fmt/format.h>

#include <map>

#include "tessera/tile/passes/affine_scalars.h"
#include "tests/tile/passes/pass_check.h"

namespace tessera::tile {
namespace {

using namespace tessera::testing;  // NOLINT(google-build-using-namespace): the checks

/// Facts by the names of the values.
std::map<std::string, Facts> facts_in(const std::string& body) {
  const Kernel kernel =
      parsed_kernel("kernel k(n: i64, m: i32, p: *f32, v: view f32[?, 64]) {" + body + "}");
  const std::vector<Facts> facts = facts_of(kernel);
  std::map<std::string, Facts> named;
  for (std::size_t i = 0; i < facts.size(); ++i) named[kernel.values[i].name] = facts[i];
  return named;
}

void expect_range(const Facts& facts, std::optional<std::int64_t> low,
                  std::optional<std::int64_t> high) {
  EXPECT_EQ(facts.low, low);
  EXPECT_EQ(facts.high, high);
}

TEST(Facts, FollowATileThatStartsAtAMultiple) {
  const auto facts = facts_in(R"(
    i: i64 = pid() {axis = 0}
    first: i64 = mul(i, 128)
    all: i64[64] = broadcast(first)
    j: i64[64] = iota()
    at: i64[64] = add(all, j))");
  EXPECT_EQ(facts.at("at").contiguity, (std::vector<std::int64_t>{64}));
  EXPECT_EQ(facts.at("at").divisor, 128);
  EXPECT_EQ(facts.at("all").constancy, (std::vector<std::int64_t>{64}));
  expect_range(facts.at("at"), 0, ((std::int64_t{1} << 31) - 1) * 128 + 63);
}

TEST(Facts, SayWhatDividesBytesOfPointers) {
  const auto facts = facts_in(R"(
    j: i64[64] = iota()
    base: *f32[64] = broadcast(p)
    q: *f32[64] = offset(base, j)
    eight: i64[64] = 8
    r: i64[64] = mul(j, eight)
    s: *f32[64] = offset(base, r))");
  EXPECT_EQ(facts.at("p").divisor, 4);
  EXPECT_EQ(facts.at("q").contiguity, (std::vector<std::int64_t>{64}));
  EXPECT_EQ(facts.at("q").divisor, 4);
  EXPECT_EQ(facts.at("s").contiguity, (std::vector<std::int64_t>{1}));
}

TEST(Facts, KnowQuotientsAndRemainders) {
  const auto facts = facts_in(R"(
    j: i64[64] = iota()
    q: i64[64] = div(j, 16)
    r: i64[64] = rem(j, 16)
    a: i64[64] = and(j, 7))");
  EXPECT_EQ(facts.at("q").constancy, (std::vector<std::int64_t>{16}));
  expect_range(facts.at("q"), 0, 3);
  EXPECT_EQ(facts.at("r").contiguity, (std::vector<std::int64_t>{16}));
  expect_range(facts.at("r"), 0, 15);
  EXPECT_EQ(facts.at("a").contiguity, (std::vector<std::int64_t>{8}));
}

TEST(Facts, KnowThatAComparisonChangesOnlyAtItsBound) {
  const auto facts = facts_in(R"(
    j: i64[64] = iota()
    e: i64 = mul(n, 8)
    end: i64[64] = broadcast(e)
    mask: bool[64] = lt(j, end)
    sure: bool[64] = lt(j, 64))");
  EXPECT_EQ(facts.at("mask").constancy, (std::vector<std::int64_t>{8}));
  expect_range(facts.at("sure"), 1, 1);
}

TEST(Facts, BoundTheIndexOfALoopAndWhatItCarries) {
  const auto facts = facts_in(R"(
    zero: i64 = 0
    (a: i64, b: i64) = for (i: i64 = 5 to 100 step 10, x: i64 = zero, y: i64 = zero) {
      c: i64 = add(x, 16)
      d: i64 = min(y, 3)
      yield(c, d)
    })");
  expect_range(facts.at("i"), 5, 95);
  EXPECT_EQ(facts.at("i").divisor, 5);
  EXPECT_EQ(facts.at("x").divisor, 16);
  expect_range(facts.at("a"), 0, std::nullopt);
  expect_range(facts.at("b"), 0, 0);
}

TEST(Facts, UseAssumptionsAndHints) {
  const auto facts = facts_in(R"(
    r: i64 = rem(n, 16)
    c: bool = eq(r, 0)
    assume(c)
    d: bool = lt(n, 1000)
    assume(d)
    h: i32 = hint(m) {multiple_of = [8]})");
  EXPECT_EQ(facts.at("n").divisor, 16);
  expect_range(facts.at("n"), std::nullopt, 999);
  EXPECT_EQ(facts.at("h").divisor, 8);
}

TEST(Facts, DoNotUseAnAssumptionOfOneBranch) {
  const auto facts = facts_in(R"(
    c: bool = gt(m, 3)
    if (c) {
      d: bool = lt(n, 1000)
      assume(d)
    })");
  expect_range(facts.at("n"), std::nullopt, std::nullopt);
}

TEST(Facts, KnowThatNarrowSumsMayWrap) {
  const auto facts = facts_in(R"(
    j: i32[64] = iota()
    all: i32[64] = broadcast(m)
    at: i32[64] = add(all, j)
    wide: i64[64] = cast(at)
    three: i32 = mul(m, 3))");
  EXPECT_EQ(facts.at("wide").contiguity, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(facts.at("three").divisor, 1);
  expect_range(facts.at("at"), -(std::int64_t{1} << 31), (std::int64_t{1} << 31) - 1);
}

/// Where a value really is what its facts say, by what the interpreter stores of it.
TEST(Facts, HoldOfEveryElement) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Builder b("facts");
    const ValueId out = b.param(Type::view(DType::I64, {4, 4, 6}), "out");
    const ValueId n = b.param(Type::scalar(DType::I32), "n");
    const Extents shape = {4, 6};
    std::vector<ValueId> tiles;
    for (const DType dtype : {DType::I32, DType::U8, DType::I64}) {
      tiles.push_back(b.broadcast(b.reshape(b.iota(dtype, 6), {1, 6}), shape));
      tiles.push_back(b.broadcast(b.reshape(b.iota(dtype, 4), {4, 1}), shape));
      tiles.push_back(b.broadcast(b.cast(n, dtype), shape));
    }
    const Function functions[] = {Function::Add, Function::Sub, Function::Mul, Function::Div,
                                  Function::Rem, Function::Min, Function::Max, Function::And,
                                  Function::Or,  Function::Shl, Function::Shr};
    for (int i = 0; i < 12; ++i) {
      const ValueId x = tiles[rng.below(tiles.size())];
      const Type type = b.type(x);
      if (rng.below(5) == 0) {
        const DType to[] = {DType::I32, DType::U8, DType::I64, DType::I16, DType::U32};
        tiles.push_back(b.cast(x, to[rng.below(5)]));
        continue;
      }
      const double constants[] = {0, 1, 2, 3, 4, 8, 100};
      ValueId y = b.constant(type, constants[rng.below(7)]);
      for (const ValueId tile : tiles) {
        if (b.type(tile) == type && rng.below(3) == 0) y = tile;
      }
      const ValueId made = b.map(functions[rng.below(11)], {x, y});
      tiles.push_back(made);
      if (rng.below(3) == 0)
        tiles.push_back(b.map(Function::Select, {b.map(Function::Less, {made, x}), made, y}));
    }
    // Of the last tiles, which depend on the others.
    const std::size_t first = tiles.size() - 4;
    for (std::size_t i = 0; i < 4; ++i) {
      const ValueId wide = b.reshape(b.cast(tiles[first + i], DType::I64), {1, 4, 6});
      b.vstore(out, {b.index(static_cast<std::int64_t>(i)), b.index(0), b.index(0)}, wide);
    }
    const auto kernel = b.finish();
    ASSERT_TRUE(kernel) << to_string(kernel.error());
    const std::vector<Facts> facts = facts_of(*kernel);
    const std::int64_t numbers[] = {0, 1, -1, 37, 2147483647, -2147483648, 64};
    RandomKernel launch = launched(*kernel, {1, 1, 1}, {{4, 4, 6}, {numbers[rng.below(7)]}}, seed);
    const auto arguments = launch.arguments(launch.memory);
    ASSERT_TRUE(interpret(*kernel, arguments, {1, 1, 1}));
    for (std::size_t i = 0; i < 4; ++i) {
      const ValueId id = tiles[first + i];
      if (kernel->type(id).dtype == DType::U64) continue;
      const Facts& known = facts[id];
      std::int64_t x[4][6];
      std::memcpy(x, launch.memory[0].data() + i * sizeof x, sizeof x);
      for (int r = 0; r < 4; ++r) {
        for (int c = 0; c < 6; ++c) {
          const auto where = [&] {
            return fmt::format("element {}, {} of tile {} in\n{}", r, c, i, to_text(*kernel));
          };
          if (known.low) {
            ASSERT_GE(x[r][c], *known.low) << where();
          }
          if (known.high) {
            ASSERT_LE(x[r][c], *known.high) << where();
          }
          const int modulus = 8 * byte_width(kernel->type(id).dtype);
          const auto wraps = [&](std::int64_t by) {  // equal as numbers of the dtype
            return modulus == 64 ? by == 0 : by % (std::int64_t{1} << modulus) == 0;
          };
          const bool down = r % known.contiguity[0] != 0, right = c % known.contiguity[1] != 0;
          if (down) {
            ASSERT_TRUE(wraps(x[r][c] - x[r - 1][c] - 1)) << where();
          }
          if (right) {
            ASSERT_TRUE(wraps(x[r][c] - x[r][c - 1] - 1)) << where();
          }
          if (!down && !right) {
            ASSERT_EQ(x[r][c] % known.divisor, 0) << where();
          }
          if (r % known.constancy[0] != 0) {
            ASSERT_EQ(x[r][c], x[r - 1][c]) << where();
          }
          if (c % known.constancy[1] != 0) {
            ASSERT_EQ(x[r][c], x[r][c - 1]) << where();
          }
        }
      }
    }
  }
}

TEST(AffineScalars, TakesSumsAndProductsApart) {
  const Kernel kernel = parsed_kernel(R"(kernel k(n: i64, m: i64, out: *i64) {
    a: i64 = mul(n, 8)
    b: i64 = sub(a, m)
    c: i64 = add(b, 5)
    d: i64 = add(c, m)
    e: i64 = mul(n, m)
    f: i64 = add(d, e)
    store(out, f)
  })");
  std::map<std::string, ValueId> id;
  for (std::size_t i = 0; i < kernel.values.size(); ++i)
    id[kernel.values[i].name] = static_cast<ValueId>(i);
  const AffineScalar c{.base = 5, .terms = {{id["n"], 8}, {id["m"], -1}}};
  EXPECT_EQ(AffineScalars(kernel).of(id["c"]), c);
  const AffineScalar f{.base = 5, .terms = {{id["n"], 8}, {id["e"], 1}}};
  EXPECT_EQ(AffineScalars(kernel).of(id["f"]), f);
}

TEST(AffineScalars, KeepsWhatMayWrap) {
  const Kernel kernel = parsed_kernel(R"(kernel k(n: i32, out: *i64) {
    a: i32 = add(n, 1)
    b: i64 = cast(a)
    store(out, b)
  })");
  const ValueId a = kernel.ops[1].out[0];
  const AffineScalar form = AffineScalars(kernel).of(kernel.ops[2].out[0]);
  EXPECT_EQ(form, AffineScalar::of(a));
}

}  // namespace
}  // namespace tessera::tile
