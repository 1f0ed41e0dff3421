#include <gtest/gtest.h>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::evaluate;
using testing::expect_op;
using testing::f32;
using testing::random_f32;
using testing::try_evaluate;

TEST(Transpose, ReordersAxes) {
  const Tensor x = f32({2, 3, 4}, {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                   12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
  expect_op({"transpose", {}, {x}, {f32({4, 3, 2}, {0, 12, 4, 16, 8,  20, 1, 13, 5, 17, 9,  21,
                                                    2, 14, 6, 18, 10, 22, 3, 15, 7, 19, 11, 23})}});
  expect_op({"transpose",
             {{"perm", Ints{1, 0, 2}}},
             {x},
             {f32({3, 2, 4}, {0,  1,  2,  3,  12, 13, 14, 15, 4,  5,  6,  7,
                              16, 17, 18, 19, 8,  9,  10, 11, 20, 21, 22, 23})}});
  expect_op({"transpose", {}, {f32({}, {1})}, {f32({}, {1})}});
  EXPECT_FALSE(try_evaluate("transpose", {{"perm", Ints{0, 0, 1}}}, {x}));
  EXPECT_FALSE(try_evaluate("transpose", {{"perm", Ints{0, 1}}}, {x}));
}

TEST(Transpose, MovesBlocksBetweenDepthAndSpace) {
  const Tensor x =
      f32({1, 8, 2, 3}, {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                         16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                         32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47});
  expect_op({"depth_to_space",
             {{"blocksize", 2}},
             {x},
             {f32({1, 2, 4, 6}, {0,  12, 1,  13, 2,  14, 24, 36, 25, 37, 26, 38, 3,  15, 4,  16, 5,
                                 17, 27, 39, 28, 40, 29, 41, 6,  18, 7,  19, 8,  20, 30, 42, 31, 43,
                                 32, 44, 9,  21, 10, 22, 11, 23, 33, 45, 34, 46, 35, 47})}});
  expect_op({"depth_to_space",
             {{"blocksize", 2}, {"mode", std::string("CRD")}},
             {x},
             {f32({1, 2, 4, 6}, {0,  6,  1,  7,  2,  8,  12, 18, 13, 19, 14, 20, 3,  9,  4,  10, 5,
                                 11, 15, 21, 16, 22, 17, 23, 24, 30, 25, 31, 26, 32, 36, 42, 37, 43,
                                 38, 44, 27, 33, 28, 34, 29, 35, 39, 45, 40, 46, 41, 47})}});
  EXPECT_FALSE(try_evaluate("depth_to_space", {{"blocksize", 3}}, {x}));
  EXPECT_FALSE(try_evaluate("depth_to_space", {{"blocksize", 0}}, {x}));
}

TEST(Transpose, MovesBlocksThereAndBack) {
  const Tensor x = random_f32({2, 12, 3, 5}, 1);
  for (const char* mode : {"DCR", "CRD"}) {
    const Attrs attrs{{"blocksize", 2}, {"mode", std::string(mode)}};
    expect_op({"space_to_depth", attrs, {evaluate("depth_to_space", attrs, {x}).at(0)}, {x}});
  }
  EXPECT_FALSE(try_evaluate("space_to_depth", {{"blocksize", 1}, {"mode", std::string("X")}}, {x}));
}

TEST(Transpose, MovesBlocksBetweenSpaceAndDepth) {
  expect_op({"space_to_depth",
             {{"blocksize", 2}},
             {f32({1, 2, 4, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})},
             {f32({1, 8, 2, 1}, {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15})}});
}

}  // namespace
}  // namespace tessera
