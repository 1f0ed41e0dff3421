#include "tessera/expr/scalar.h"

#include <gtest/gtest.h>

#include <limits>

#include "tessera/expr/text.h"
#include "tessera/support/check.h"

namespace tessera {
namespace {

const Operand kX{"x", DType::F32, {Dim::symbol("#i")}};

TEST(Scalar, HasTheSortOfWhatItIsMadeOf) {
  EXPECT_EQ(Scalar(1.0).sort(), Sort::Value);
  EXPECT_EQ(Scalar(1).sort(), Sort::Integer);
  EXPECT_EQ((Scalar(1) + Scalar(1.0)).sort(), Sort::Value);
  EXPECT_EQ((Scalar(1) < Scalar(2)).sort(), Sort::Bool);
  EXPECT_EQ(exp(Scalar(1)).sort(), Sort::Value);
  EXPECT_EQ(select(truth(true), Scalar(1), Scalar(1.0)).sort(), Sort::Value);
  EXPECT_EQ(cast(DType::U64, kX({0})).sort(), Sort::Unsigned);
  EXPECT_EQ(sum({}, Scalar(1)).sort(), Sort::Integer);
}

TEST(Scalar, FoldsConstantsOfIndexArithmetic) {
  const Scalar i = index_of("i");
  EXPECT_EQ(to_text(i * 1 + 0), "i");
  EXPECT_EQ(to_text(Scalar(2) * Scalar(3) + Scalar(1)), "7");
  EXPECT_EQ(to_text(i - 0), "i");
  EXPECT_EQ(to_text(floor_div(i, 1)), "i");
}

TEST(Scalar, KeepsArithmeticOnValuesAsItIsWritten) {
  EXPECT_EQ(to_text(kX({index_of("i")}) * 1.0 + 0.0), "x[i] * 1.0 + 0.0");
}

TEST(Scalar, NamesEachFunctionOnce) {
  for (int i = 0; i <= static_cast<int>(Fn::Select); ++i) {
    const Fn fn = static_cast<Fn>(i);
    EXPECT_EQ(parse_fn(to_string(fn)), fn);
  }
  EXPECT_EQ(parse_fn("frob"), std::nullopt);
}

TEST(Scalar, TellsASimpleFoldByItsFunction) {
  const auto fn_of = [](const Scalar& scalar) {
    return std::get<node::Component>(scalar.node()).fold->simple();
  };
  EXPECT_EQ(fn_of(sum({}, 1.0)), Fn::Add);
  EXPECT_EQ(fn_of(max_of({}, 1.0)), Fn::Max);
  EXPECT_EQ(fn_of(any_of({}, truth(true))), Fn::Or);
  const Tuple other = fold({}, {0.0}, {1.0}, [](const Tuple& left, const Tuple& right) -> Tuple {
    return {exp(left[0]) + right[0]};
  });
  EXPECT_EQ(fn_of(other[0]), std::nullopt);
}

TEST(Scalar, KnowsTheLimitsOfDtypes) {
  EXPECT_EQ(lowest(DType::I8).integer(), -128);
  EXPECT_EQ(highest(DType::U16).integer(), 65535);
  EXPECT_EQ(to_text(highest(DType::U64)), "18446744073709551615u");
  EXPECT_EQ(to_text(lowest(DType::F16)), "-inf");
  EXPECT_EQ(to_text(highest(DType::Bool)), "true");
}

TEST(Scalar, MadeWithTheWrongNumberOfPartsIsOurBug) {
  EXPECT_THROW(apply(Fn::Add, {1.0}), InternalError);
  EXPECT_THROW(kX({0, 0}), InternalError);
  EXPECT_THROW(fold({}, {0.0, 1.0}, {0.0}, [](const Tuple& left, const Tuple&) { return left; }),
               InternalError);
}

TEST(Scalar, OfAMergedAxisIsItsPosition) {
  EXPECT_EQ(to_text(merge({"g", 2}, {"c"})), "g * #c + c");
}

}  // namespace
}  // namespace tessera
