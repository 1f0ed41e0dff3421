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

TEST(Range, CountsUpAndDown) {
  expect_op({"range", {}, {i64({}, {1}), i64({}, {8}), i64({}, {3})}, {i64({3}, {1, 4, 7})}});
  expect_op({"range", {}, {i64({}, {5}), i64({}, {0}), i64({}, {-2})}, {i64({3}, {5, 3, 1})}});
  expect_op({"range", {}, {i64({}, {5}), i64({}, {5}), i64({}, {1})}, {i64({0}, {})}});
  expect_op({"range", {}, {i64({}, {5}), i64({}, {0}), i64({}, {1})}, {i64({0}, {})}});
  expect_op({"range", {}, {f32({}, {0}), f32({}, {1}), f32({}, {0.4})}, {f32({3}, {0, 0.4, 0.8})}});
  EXPECT_FALSE(try_evaluate("range", {}, {i64({}, {0}), i64({}, {5}), i64({}, {0})}));
  EXPECT_FALSE(try_evaluate("range", {}, {f32({}, {0}), f32({}, {5}), f32({}, {0})}));
  EXPECT_FALSE(try_evaluate("range", {}, {f32({}, {0}), f32({}, {NAN}), f32({}, {1})}));
}

TEST(ConstantOfShape, FillsWithOneValue) {
  expect_op({"constant_of_shape", {}, {i64({2}, {1, 2})}, {f32({1, 2}, {0, 0})}});
  expect_op({"constant_of_shape",
             {{"value", i64({1}, {INT64_MAX})}},
             {i64({1}, {2})},
             {i64({2}, {INT64_MAX, INT64_MAX})}});
  expect_op({"constant_of_shape",
             {{"value", tensor(DType::Bool, {1}, {1})}},
             {i64({0}, {})},
             {tensor(DType::Bool, {}, {1})}});
  EXPECT_FALSE(try_evaluate("constant_of_shape", {}, {i64({1}, {-1})}));
}

TEST(EyeLike, HasOnesOnADiagonal) {
  const Tensor x = tensor(DType::I32, {2, 3}, {0, 0, 0, 0, 0, 0});
  expect_op({"eye_like", {}, {x}, {tensor(DType::I32, {2, 3}, {1, 0, 0, 0, 1, 0})}});
  expect_op({"eye_like",
             {{"k", 1}, {"dtype", std::string("f32")}},
             {x},
             {f32({2, 3}, {0, 1, 0, 0, 0, 1})}});
  expect_op({"eye_like",
             {{"k", -1}, {"dtype", std::string("bool")}},
             {x},
             {tensor(DType::Bool, {2, 3}, {0, 0, 0, 1, 0, 0})}});
  EXPECT_FALSE(try_evaluate("eye_like", {}, {f32({2}, {1, 2})}));
}

TEST(OneHot, MarksThePositionAlongANewAxis) {
  const Tensor indices = i64({3}, {0, -1, 7}), depth = i64({}, {3}), values = f32({2}, {-1, 5});
  expect_op(
      {"one_hot", {}, {indices, depth, values}, {f32({3, 3}, {5, -1, -1, -1, -1, 5, -1, -1, -1})}});
  expect_op({"one_hot",
             {{"axis", 0}},
             {indices, f32({1}, {3}), values},
             {f32({3, 3}, {5, -1, -1, -1, -1, -1, -1, 5, -1})}});
  expect_op({"one_hot", {}, {f32({}, {1}), depth, i64({2}, {0, 1})}, {i64({3}, {0, 1, 0})}});
  EXPECT_FALSE(try_evaluate("one_hot", {}, {indices, depth, f32({3}, {1, 2, 3})}));
  EXPECT_FALSE(try_evaluate("one_hot", {}, {indices, i64({}, {-3}), values}));
}

TEST(Shape, TellsTheSizes) {
  const Tensor x = f32({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  expect_op({"shape", {}, {x}, {i64({3}, {2, 1, 3})}});
  expect_op({"shape", {{"start", 1}}, {x}, {i64({2}, {1, 3})}});
  expect_op({"shape", {{"start", -3}, {"end", -1}}, {x}, {i64({2}, {2, 1})}});
  expect_op({"shape", {{"start", 2}, {"end", 1}}, {x}, {i64({0}, {})}});
  expect_op({"shape", {}, {f32({}, {1})}, {i64({0}, {})}});
  expect_op({"size", {}, {x}, {i64({}, {6})}});
  expect_op({"size", {}, {f32({}, {1})}, {i64({}, {1})}});
}

TEST(Trilu, KeepsATriangle) {
  const Tensor x = f32({2, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18});
  expect_op({"trilu",
             {},
             {x},
             {f32({2, 3, 3}, {1, 2, 3, 0, 5, 6, 0, 0, 9, 10, 11, 12, 0, 14, 15, 0, 0, 18})}});
  expect_op({"trilu",
             {{"upper", 0}},
             {x},
             {f32({2, 3, 3}, {1, 0, 0, 4, 5, 0, 7, 8, 9, 10, 0, 0, 13, 14, 0, 16, 17, 18})}});
  expect_op({"trilu",
             {},
             {x, i64({}, {-1})},
             {f32({2, 3, 3}, {1, 2, 3, 4, 5, 6, 0, 8, 9, 10, 11, 12, 13, 14, 15, 0, 17, 18})}});
  expect_op({"trilu",
             {{"upper", 0}},
             {x, i64({1}, {1})},
             {f32({2, 3, 3}, {1, 2, 0, 4, 5, 6, 7, 8, 9, 10, 11, 0, 13, 14, 15, 16, 17, 18})}});
  expect_op({"trilu",
             {},
             {tensor(DType::Bool, {2, 2}, {1, 1, 1, 1})},
             {tensor(DType::Bool, {2, 2}, {1, 1, 0, 1})}});
}

}  // namespace
}  // namespace tessera
