#include "tessera/tile/builder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/tile/text.h"

namespace tessera::tile {
namespace {

const Type kIndex = Type::scalar(DType::I64);

std::string printed(Builder& b) {
  const auto kernel = b.finish();
  return kernel ? to_text(*kernel) : to_string(kernel.error());
}

TEST(TileBuilder, InfersTypesAsItGoes) {
  Builder b("k");
  const ValueId x = b.param(Type::view(DType::F16, {kDynamic, 8}), "x");
  const ValueId t = b.vload(x, {b.pid(0), b.index(0)}, {4, 8});
  EXPECT_EQ(b.type(t), Type::tile(DType::F16, {4, 8}));
  EXPECT_EQ(b.type(b.permute(t, {1, 0})), Type::tile(DType::F16, {8, 4}));
  EXPECT_EQ(b.type(b.concat({t, t}, 1)), Type::tile(DType::F16, {4, 16}));
  EXPECT_EQ(b.type(b.reduce(Function::Max, t, 1)), Type::tile(DType::F16, {4}));
  EXPECT_EQ(b.type(b.map(Function::Less, {t, t})), Type::tile(DType::Bool, {4, 8}));
  EXPECT_EQ(b.type(b.base(x)), Type::pointer(DType::F16));
  EXPECT_EQ(b.type(b.load(b.base(x))), Type::scalar(DType::F16));
  EXPECT_EQ(b.type(b.dim(x, 0)), kIndex);
  EXPECT_TRUE(b.finish());
}

TEST(TileBuilder, CarriesValuesThroughLoops) {
  Builder b("k");
  const ValueId n = b.param(kIndex, "n");
  const ValueId zero = b.index(0);
  b.name(zero, "zero");
  const ValueId one = b.index(1);
  b.name(one, "one");
  const auto sums = b.for_loop(zero, n, one, {zero}, [&](ValueId i, const auto& carried) {
    b.name(i, "i");
    b.name(carried[0], "sum");
    return std::vector{b.add(carried[0], i)};
  });
  b.name(sums[0], "total");
  EXPECT_EQ(printed(b),
            "kernel k(n: i64) {\n"
            "  zero: i64 = 0\n"
            "  one: i64 = 1\n"
            "  total: i64 = for (i: i64 = zero to n step one, sum: i64 = zero) {\n"
            "    v0: i64 = add(sum, i)\n"
            "    yield(v0)\n"
            "  }\n"
            "}\n");
}

TEST(TileBuilder, BuildsBothBranches) {
  Builder b("k");
  const ValueId c = b.param(Type::scalar(DType::Bool), "c");
  const ValueId x = b.param(Type::scalar(DType::F32), "x");
  const auto results = b.if_else(
      c, [&] { return std::vector{x}; }, [&] { return std::vector{b.map(Function::Neg, {x})}; });
  b.name(results[0], "y");
  EXPECT_EQ(printed(b),
            "kernel k(c: bool, x: f32) {\n"
            "  y: f32 = if (c) {\n"
            "    yield(x)\n"
            "  } else {\n"
            "    v0: f32 = neg(x)\n"
            "    yield(v0)\n"
            "  }\n"
            "}\n");
}

TEST(TileBuilder, KeepsTheFirstMistake) {
  Builder b("k");
  const ValueId x = b.param(Type::scalar(DType::F32), "x");
  const ValueId n = b.param(kIndex, "n");
  b.at({"a.cpp", 1});
  b.add(x, n);
  b.at({"a.cpp", 2});
  b.reduce(Function::Add, x, 7);
  EXPECT_TRUE(b.failed());
  EXPECT_EQ(printed(b),
            "a.cpp: line 1: error[tile-type]: add(f32, i64) does not fit\n"
            "  note: operands of equal types");
}

TEST(TileBuilder, SurvivesWhatIsBuiltAfterAMistake) {
  Builder b("k");
  const ValueId x = b.param(Type::scalar(DType::F32), "x");
  const ValueId wrong = b.permute(x, {5, -1});
  b.slice(b.concat({wrong, x}, 3), {0, 0, 0}, {1});
  b.gather(wrong, b.dot(x, wrong, x), -4);
  b.vstore(x, {wrong}, x);
  b.for_loop(x, x, x, {wrong}, [](ValueId, const auto&) { return std::vector<ValueId>{}; });
  EXPECT_FALSE(b.finish());
}

TEST(TileBuilder, ReportsAYieldOfAnotherType) {
  Builder b("k");
  const ValueId n = b.param(kIndex, "n");
  b.for_loop(n, n, n, {n}, [&](ValueId, const auto&) {
    return std::vector{b.constant(Type::scalar(DType::F32), 0.0)};
  });
  EXPECT_EQ(printed(b),
            "error[tile-type]: for(i64, i64, i64, i64) does not fit\n"
            "  note: a region that yields (i64), not (f32)");
}

TEST(TileBuilder, RoundsNumbersIntoIntegerLiterals) {
  EXPECT_EQ(literal_of(DType::I64, 1e30).integer, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(literal_of(DType::I64, -1e30).integer, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(literal_of(DType::I32, NAN).integer, 0);
  EXPECT_EQ(literal_of(DType::F32, 0.5).number, 0.5);
}

}  // namespace
}  // namespace tessera::tile
