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
  const auto rounded = try_evaluate(
      "cast", {{"to", std::string("f8e8m0")}, {"round_mode", std::string("away")}}, {f32({}, {1})});
  ASSERT_FALSE(rounded);
  EXPECT_EQ(to_string(rounded.error()),
            "error[op-operands]: round_mode is away\n  note: it has to be up, down or nearest");
}

TEST(Cast, IsWhatComputesWithSmallTypes) {
  const Tensor i4 = tensor(DType::I4, {2, 2}, {1, 2, 3, 4});
  const Tensor f8 = tensor(DType::F8E5M2, {2, 2}, {1, 2, INFINITY, NAN});
  for (const char* op : {"add", "mul", "matmul", "max", "sum"})
    for (const Tensor& x : {i4, f8}) {
      const auto result = try_evaluate(op, {}, {x, x});
      ASSERT_FALSE(result) << op;
      EXPECT_EQ(
          to_string(result.error()),
          fmt::format(
              "error[op-operands]: {} computes with elements of type {}\n"
              "  note: elements of this type are moved, compared and converted: cast them to a "
              "wider type",
              op, to_string(x.dtype)));
    }
  for (const char* op : {"neg", "relu", "exp", "reduce_sum", "reduce_max", "softmax", "arg_max"})
    EXPECT_FALSE(try_evaluate(op, {}, {f8})) << op;
  expect_op({"is_nan", {}, {f8}, {tensor(DType::Bool, {2, 2}, {0, 0, 0, 1})}});
  expect_op({"is_inf", {}, {f8}, {tensor(DType::Bool, {2, 2}, {0, 0, 1, 0})}});
  expect_op({"equal", {}, {i4, i4}, {tensor(DType::Bool, {2, 2}, {1, 1, 1, 1})}});
  expect_op({"scatter_elements",
             {},
             {i4, i64({1, 2}, {1, 0}), tensor(DType::I4, {1, 2}, {-8, 7})},
             {tensor(DType::I4, {2, 2}, {1, 7, -8, 4})}});
  EXPECT_FALSE(try_evaluate("scatter_elements", {{"reduction", std::string("add")}},
                            {i4, i64({1, 2}, {1, 0}), tensor(DType::I4, {1, 2}, {-8, 7})}));
}

}  // namespace
}  // namespace tessera
