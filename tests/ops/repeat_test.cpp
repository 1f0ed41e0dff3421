#include <gtest/gtest.h>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::try_evaluate;

TEST(Tile, RepeatsAlongEachAxis) {
  expect_op({"tile",
             {},
             {f32({2, 3}, {0, 1, 2, 3, 4, 5}), i64({2}, {2, 3})},
             {f32({4, 9}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5, 3, 4, 5,
                           0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5, 3, 4, 5})}});
  expect_op({"tile", {}, {f32({2, 3}, {0, 1, 2, 3, 4, 5}), i64({2}, {1, 0})}, {f32({2, 0}, {})}});
  EXPECT_FALSE(try_evaluate("tile", {}, {f32({2, 3}, {0, 1, 2, 3, 4, 5}), i64({1}, {2})}));
  EXPECT_FALSE(try_evaluate("tile", {}, {f32({2, 3}, {0, 1, 2, 3, 4, 5}), i64({2}, {-1, 1})}));
}

TEST(Expand, BroadcastsBothWays) {
  const Tensor x = f32({3, 1}, {0, 1, 2});
  expect_op({"expand",
             {},
             {x, i64({3}, {2, 1, 2})},
             {f32({2, 3, 2}, {0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2})}});
  expect_op({"expand", {}, {x, i64({1}, {2})}, {f32({3, 2}, {0, 0, 1, 1, 2, 2})}});
  expect_op({"expand", {}, {x, i64({2}, {1, 1})}, {x}});
  expect_op({"expand", {}, {x, i64({2}, {3, 0})}, {f32({3, 0}, {})}});
  EXPECT_FALSE(try_evaluate("expand", {}, {x, i64({2}, {2, 2})}));
  EXPECT_FALSE(try_evaluate("expand", {}, {x, i64({2}, {3, -2})}));
}

}  // namespace
}  // namespace tessera
