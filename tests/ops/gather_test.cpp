#include <gtest/gtest.h>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::tensor;
using testing::try_evaluate;

TEST(Gather, TakesSlicesAtIndices) {
  const Tensor x = f32({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
               indices = i64({2, 2}, {0, -1, 1, 1});
  expect_op({"gather",
             {},
             {x, indices},
             {f32({2, 2, 4}, {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 4, 5, 6, 7})}});
  expect_op({"gather",
             {{"axis", -1}},
             {x, indices},
             {f32({3, 2, 2}, {0, 3, 1, 1, 4, 7, 5, 5, 8, 11, 9, 9})}});
  expect_op({"gather", {{"axis", 1}}, {x, tensor(DType::I32, {}, {2})}, {f32({3}, {2, 6, 10})}});
  expect_op({"gather", {}, {x, i64({0}, {})}, {f32({0, 4}, {})}});
}

TEST(Gather, ReportsAnIndexOutOfRange) {
  EXPECT_FALSE(try_evaluate("gather", {}, {f32({2}, {1, 2}), i64({1}, {2})}));
  EXPECT_FALSE(try_evaluate("gather", {}, {f32({2}, {1, 2}), i64({1}, {-3})}));
  EXPECT_FALSE(try_evaluate("gather", {}, {f32({2}, {1, 2}), f32({1}, {0})}));
  EXPECT_FALSE(try_evaluate("gather", {}, {f32({}, {1}), i64({1}, {0})}));
}

TEST(GatherElements, TakesOneElementForEachIndex) {
  const Tensor x = f32({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  expect_op({"gather_elements", {}, {x, i64({2, 2}, {0, 2, -1, 1})}, {f32({2, 2}, {0, 9, 8, 5})}});
  expect_op({"gather_elements",
             {{"axis", 1}},
             {x, i64({2, 2}, {0, 2, -1, 1})},
             {f32({2, 2}, {0, 2, 7, 5})}});
  EXPECT_FALSE(try_evaluate("gather_elements", {}, {x, i64({1}, {0})}));
}

TEST(GatherNd, TakesSlicesAtPositions) {
  const Tensor y = f32({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect_op({"gather_nd", {}, {y, i64({2, 2}, {0, 1, 1, 0})}, {f32({2, 2}, {2, 3, 4, 5})}});
  expect_op({"gather_nd",
             {},
             {y, i64({1, 2, 1}, {1, -2})},
             {f32({1, 2, 2, 2}, {4, 5, 6, 7, 0, 1, 2, 3})}});
  expect_op({"gather_nd", {}, {y, i64({3}, {1, 0, 1})}, {f32({}, {5})}});
  expect_op(
      {"gather_nd", {{"batch_dims", 1}}, {y, i64({2, 1}, {1, 0})}, {f32({2, 2}, {2, 3, 4, 5})}});
  EXPECT_FALSE(try_evaluate("gather_nd", {}, {y, i64({4}, {0, 0, 0, 0})}));
  EXPECT_FALSE(try_evaluate("gather_nd", {{"batch_dims", 2}}, {y, i64({2, 1}, {1, 0})}));
  EXPECT_FALSE(try_evaluate("gather_nd", {{"batch_dims", -1}}, {y, i64({2, 1}, {1, 0})}));
}

}  // namespace
}  // namespace tessera
