#include <cmath>

#include <gtest/gtest.h>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::evaluate;
using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::tensor;
using testing::try_evaluate;

TEST(Reduce, FoldsTheAxesThatAreNamed) {
  const Tensor x = f32({2, 3, 4}, {0.0500000007, 1.79999995,    -1.41999996,
                                   1.78999996,   -0.75,         -0.310000002,
                                   1.30999994,   -0.360000014,  0.200000003,
                                   -1.88999999,  1.00999999,    0.150000006,
                                   -0.680000007, 1.14999998,    -0.790000021,
                                   -0.189999998, -1.46000004,   -0.389999986,
                                   -1.19000006,  -0.949999988,  1,
                                   -0.879999995, -0.0599999987, 1.91999996}),
               axes = i64({2}, {-1, 0});
  const Attrs drop{{"keepdims", 0}};
  expect_op({"reduce_sum", drop, {x, axes}, {f32({3}, {1.7099998, -4.0999999, 1.45000005})}});
  expect_op({"reduce_mean", drop, {x, axes}, {f32({3}, {0.213749975, -0.512499988, 0.181250006})}});
  expect_op({"reduce_max", drop, {x, axes}, {f32({3}, {1.79999995, 1.30999994, 1.91999996})}});
  expect_op({"reduce_min", drop, {x, axes}, {f32({3}, {-1.41999996, -1.46000004, -1.88999999})}});
  expect_op(
      {"reduce_prod", drop, {x, axes}, {f32({3}, {0.0268516671, -0.0705805197, -0.00580549939})}});
  expect_op({"reduce_l1", drop, {x, axes}, {f32({3}, {7.86999989, 6.72000027, 7.10999966})}});
  expect_op({"reduce_l2", drop, {x, axes}, {f32({3}, {3.30274105, 2.66582084, 3.18105316})}});
  expect_op(
      {"reduce_sum_square", drop, {x, axes}, {f32({3}, {10.9080992, 7.10660076, 10.1190996})}});
  expect_op(
      {"reduce_log_sum_exp", drop, {x, axes}, {f32({3}, {2.90568161, 1.97545767, 2.78350997})}});
  expect_op({"reduce_log_sum",
             drop,
             {f32({2, 2}, {1, 2, 3, 4}), i64({1}, {1})},
             {f32({2}, {std::log(3), std::log(7)})}});
}

TEST(Reduce, KeepsOrDropsTheAxes) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  expect_op({"reduce_sum", {}, {x, i64({1}, {1})}, {f32({2, 1}, {3, 7})}});
  expect_op({"reduce_sum", {}, {x}, {f32({1, 1}, {10})}});
  expect_op({"reduce_sum", {{"keepdims", 0}}, {x}, {f32({}, {10})}});
  expect_op({"reduce_sum", {}, {x, i64({0}, {})}, {f32({1, 1}, {10})}});
}

TEST(Reduce, LeavesTheFoldOutWhereAskedTo) {
  const Tensor x = f32({2}, {-2, 3});
  const Attrs noop{{"noop_with_empty_axes", 1}};
  expect_op({"reduce_sum", noop, {x, i64({0}, {})}, {x}});
  expect_op({"reduce_max", noop, {x}, {x}});
  expect_op({"reduce_sum_square", noop, {x}, {f32({2}, {4, 9})}});
  expect_op({"reduce_l1", noop, {x}, {f32({2}, {2, 3})}});
}

TEST(Reduce, StartsFromNeutralElements) {
  const Tensor none = f32({2, 0}, {}), axes = i64({1}, {1});
  const Attrs drop{{"keepdims", 0}};
  expect_op({"reduce_sum", drop, {none, axes}, {f32({2}, {0, 0})}});
  expect_op({"reduce_prod", drop, {none, axes}, {f32({2}, {1, 1})}});
  expect_op({"reduce_max", drop, {none, axes}, {f32({2}, {-INFINITY, -INFINITY})}});
  expect_op({"reduce_min", drop, {none, axes}, {f32({2}, {INFINITY, INFINITY})}});
  expect_op({"reduce_log_sum_exp", drop, {none, axes}, {f32({2}, {-INFINITY, -INFINITY})}});
  expect_op({"reduce_max",
             drop,
             {tensor(DType::I8, {1, 0}, {}), axes},
             {tensor(DType::I8, {1}, {-128})}});
}

TEST(Reduce, AddsLargeExponentsWithoutOverflow) {
  const Attrs drop{{"keepdims", 0}};
  const Tensor x = f32({4, 2}, {1000, 1000, -1000, -1000, -INFINITY, -INFINITY, INFINITY, 1});
  const double l2 = std::log(2.0);
  expect_op({"reduce_log_sum_exp",
             drop,
             {x, i64({1}, {1})},
             {f32({4}, {1000 + l2, -1000 + l2, -INFINITY, INFINITY})}});
}

TEST(Reduce, FoldsTruthValuesAndIntegers) {
  const Attrs drop{{"keepdims", 0}};
  const Tensor t = tensor(DType::Bool, {2, 2}, {0, 1, 0, 0}), axes = i64({1}, {1});
  expect_op({"reduce_max", drop, {t, axes}, {tensor(DType::Bool, {2}, {1, 0})}});
  expect_op({"reduce_min", drop, {t, axes}, {tensor(DType::Bool, {2}, {0, 0})}});
  expect_op(
      {"reduce_sum", drop, {tensor(DType::I32, {3}, {1, 2, 3})}, {tensor(DType::I32, {}, {6})}});
  expect_op(
      {"reduce_mean", drop, {tensor(DType::I32, {3}, {1, 2, 4})}, {tensor(DType::I32, {}, {2})}});
  expect_op({"reduce_sum",
             drop,
             {tensor(DType::U64, {2}, {9e18, 9e18})},
             {tensor(DType::U64, {}, {1.8e19})}});
  expect_op({"reduce_max",
             drop,
             {tensor(DType::U64, {2}, {1, 1.8e19})},
             {tensor(DType::U64, {}, {1.8e19})}});
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(integers_of(evaluate("reduce_sum", drop, {i64({2}, {big, 0})})[0])[0], big);
}

TEST(Reduce, PropagatesNan) {
  expect_op({"reduce_max", {{"keepdims", 0}}, {f32({3}, {1, NAN, 2})}, {f32({}, {NAN})}});
}

TEST(Reduce, FindsExtremaAndBreaksTiesByPosition) {
  const Tensor x = f32({2, 4}, {1, 3, 3, 2, -1, -5, -5, 0});
  const Attrs rows{{"axis", 1}, {"keepdims", 0}},
      last{{"axis", 1}, {"keepdims", 0}, {"select_last_index", 1}};
  expect_op({"arg_max", rows, {x}, {i64({2}, {1, 3})}});
  expect_op({"arg_max", last, {x}, {i64({2}, {2, 3})}});
  expect_op({"arg_min", rows, {x}, {i64({2}, {0, 1})}});
  expect_op({"arg_min", last, {x}, {i64({2}, {0, 2})}});
  expect_op({"arg_max", {}, {x}, {i64({1, 4}, {0, 0, 0, 0})}});
  expect_op({"arg_max", rows, {f32({2, 2}, {-INFINITY, -INFINITY, 1, NAN})}, {i64({2}, {0, 1})}});
  expect_op({"arg_min", rows, {tensor(DType::I8, {1, 2}, {127, 127})}, {i64({1}, {0})}});
}

TEST(Reduce, RefusesAxesThatAreNotThere) {
  EXPECT_FALSE(try_evaluate("reduce_sum", {}, {f32({2}, {1, 2}), i64({1}, {1})}));
  EXPECT_FALSE(try_evaluate("reduce_sum", {}, {f32({2}, {1, 2}), i64({2}, {0, -1})}));
  EXPECT_FALSE(try_evaluate("arg_max", {{"axis", -2}}, {f32({2}, {1, 2})}));
  EXPECT_FALSE(try_evaluate("arg_max", {}, {f32({0}, {})}));
}

}  // namespace
}  // namespace tessera
