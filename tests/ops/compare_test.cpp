#include <cmath>

#include <gtest/gtest.h>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::tensor;
using testing::try_evaluate;

Tensor truths(const std::vector<double>& elements) {
  return tensor(DType::Bool, {static_cast<std::int64_t>(elements.size())}, elements);
}

TEST(Compare, OrdersNumbersButNotNan) {
  const Tensor x = f32({4}, {1, 2, 3, NAN}), y = f32({4}, {2, 2, 2, NAN});
  expect_op({"equal", {}, {x, y}, {truths({0, 1, 0, 0})}});
  expect_op({"less", {}, {x, y}, {truths({1, 0, 0, 0})}});
  expect_op({"less_or_equal", {}, {x, y}, {truths({1, 1, 0, 0})}});
  expect_op({"greater", {}, {x, y}, {truths({0, 0, 1, 0})}});
  expect_op({"greater_or_equal", {}, {x, y}, {truths({0, 1, 1, 0})}});
}

TEST(Compare, OrdersIntegersByTheirSignedness) {
  expect_op({"less",
             {},
             {tensor(DType::U64, {1}, {1}), tensor(DType::U64, {1}, {1.8e19})},
             {truths({1})}});
  expect_op({"less", {}, {i64({1}, {-1}), i64({1}, {1})}, {truths({1})}});
  expect_op({"equal",
             {},
             {i64({1}, {(std::int64_t{1} << 53) + 1}), i64({1}, {std::int64_t{1} << 53})},
             {truths({0})}});
}

TEST(Compare, CombinesTruthValues) {
  const Tensor x = truths({0, 0, 1, 1}), y = truths({0, 1, 0, 1});
  expect_op({"logical_and", {}, {x, y}, {truths({0, 0, 0, 1})}});
  expect_op({"logical_or", {}, {x, y}, {truths({0, 1, 1, 1})}});
  expect_op({"logical_xor", {}, {x, y}, {truths({0, 1, 1, 0})}});
  expect_op({"logical_not", {}, {x}, {truths({1, 1, 0, 0})}});
  expect_op({"equal", {}, {x, y}, {truths({1, 0, 0, 1})}});
}

TEST(Compare, FindsWhatIsNoOrdinaryNumber) {
  const Tensor x = f32({4}, {NAN, INFINITY, -INFINITY, 1});
  expect_op({"is_nan", {}, {x}, {truths({1, 0, 0, 0})}});
  expect_op({"is_inf", {}, {x}, {truths({0, 1, 1, 0})}});
  expect_op({"is_inf", {{"detect_negative", 0}}, {x}, {truths({0, 1, 0, 0})}});
  expect_op({"is_inf", {{"detect_positive", 0}}, {x}, {truths({0, 0, 1, 0})}});
}

TEST(Compare, ChoosesByACondition) {
  const Tensor condition = tensor(DType::Bool, {2, 1}, {1, 0});
  expect_op(
      {"where", {}, {condition, f32({2}, {1, 2}), f32({}, {9})}, {f32({2, 2}, {1, 2, 9, 9})}});
  expect_op({"where",
             {},
             {condition, i64({}, {INT64_MAX}), i64({}, {3})},
             {i64({2, 1}, {INT64_MAX, 3})}});
  EXPECT_FALSE(try_evaluate("where", {}, {f32({1}, {1}), f32({1}, {1}), f32({1}, {1})}));
}

}  // namespace
}  // namespace tessera
