#include <gtest/gtest.h>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::try_evaluate;

TEST(Cumulative, FoldsWhatComesBefore) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6}), one = i64({}, {1});
  const Attrs exclusive{{"exclusive", 1}}, reverse{{"reverse", 1}},
      both{{"exclusive", 1}, {"reverse", 1}};
  expect_op({"cum_sum", {}, {x, one}, {f32({2, 3}, {1, 3, 6, 4, 9, 15})}});
  expect_op({"cum_sum", {}, {x, i64({1}, {-2})}, {f32({2, 3}, {1, 2, 3, 5, 7, 9})}});
  expect_op({"cum_sum", exclusive, {x, one}, {f32({2, 3}, {0, 1, 3, 0, 4, 9})}});
  expect_op({"cum_sum", reverse, {x, one}, {f32({2, 3}, {6, 5, 3, 15, 11, 6})}});
  expect_op({"cum_sum", both, {x, one}, {f32({2, 3}, {5, 3, 0, 11, 6, 0})}});
  expect_op({"cum_prod", {}, {x, one}, {f32({2, 3}, {1, 2, 6, 4, 20, 120})}});
  expect_op({"cum_prod", exclusive, {i64({3}, {2, 3, 4}), i64({}, {0})}, {i64({3}, {1, 2, 6})}});
  expect_op({"cum_sum", {}, {f32({0}, {}), i64({}, {0})}, {f32({0}, {})}});
  EXPECT_FALSE(try_evaluate("cum_sum", {}, {x, i64({}, {2})}));
}

}  // namespace
}  // namespace tessera
