#include <cmath>

#include <gtest/gtest.h>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::evaluate;
using testing::expect_near;
using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::tensor;
using testing::try_evaluate;

Tensor converted(const Tensor& x, const char* to) {
  const std::vector<Tensor> out = evaluate("cast", {{"to", std::string(to)}}, {x});
  return out.empty() ? Tensor{} : out[0];
}

TEST(Cast, TruncatesNumbersTowardsZero) {
  expect_near(converted(f32({4}, {1.9, -1.9, 0.5, -0.5}), "i32"),
              tensor(DType::I32, {4}, {1, -1, 0, 0}));
}

TEST(Cast, WrapsIntegers) {
  expect_near(converted(i64({3}, {300, -1, 128}), "u8"), tensor(DType::U8, {3}, {44, 255, 128}));
  expect_near(converted(i64({3}, {300, -1, 128}), "i8"), tensor(DType::I8, {3}, {44, -1, -128}));
}

TEST(Cast, MakesTruthValuesOfWhatIsNotZero) {
  expect_near(converted(f32({4}, {0, -0.0, 0.3, NAN}), "bool"),
              tensor(DType::Bool, {4}, {0, 0, 1, 1}));
  expect_near(converted(i64({2}, {256, 0}), "bool"), tensor(DType::Bool, {2}, {1, 0}));
  expect_near(converted(tensor(DType::Bool, {2}, {1, 0}), "f32"), f32({2}, {1, 0}));
  expect_near(converted(tensor(DType::Bool, {2}, {1, 0}), "i64"), i64({2}, {1, 0}));
}

TEST(Cast, RoundsToNarrowFloats) {
  expect_near(converted(f32({2}, {1.0009765, 70000}), "f16"),
              tensor(DType::F16, {2}, {1.0009765625, INFINITY}), 0);
  expect_near(converted(f32({1}, {1.01}), "bf16"), tensor(DType::BF16, {1}, {1.0078125}), 0);
}

TEST(Cast, TakesTheTypeOfAnotherTensor) {
  expect_op({"cast_like", {}, {f32({2}, {1.5, 2.5}), i64({0}, {})}, {i64({2}, {1, 2})}});
}

TEST(Cast, LeavesTheIdentityAlone) {
  const std::int64_t big = (std::int64_t{1} << 60) + 1;
  EXPECT_EQ(integers_of(evaluate("identity", {}, {i64({}, {big})})[0])[0], big);
  expect_op(
      {"identity", {}, {tensor(DType::Bool, {2}, {0, 1})}, {tensor(DType::Bool, {2}, {0, 1})}});
}

TEST(Cast, RefusesATypeThatThereIsNot) {
  EXPECT_FALSE(try_evaluate("cast", {{"to", std::string("f8")}}, {f32({}, {1})}));
}

}  // namespace
}  // namespace tessera
