#include <gtest/gtest.h>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::try_evaluate;

TEST(Pad, FillsWithZeroOrAConstant) {
  const Tensor x = f32({2, 3}, {0, 1, 2, 3, 4, 5});
  expect_op({"pad",
             {},
             {x, i64({4}, {1, 0, 0, 2})},
             {f32({3, 5}, {0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 5, 0, 0})}});
  expect_op({"pad",
             {},
             {x, i64({4}, {0, 1, 1, 0}), f32({}, {9})},
             {f32({3, 4}, {9, 0, 1, 2, 9, 3, 4, 5, 9, 9, 9, 9})}});
  expect_op({"pad",
             {},
             {x, i64({2}, {1, 1}), f32({1}, {7}), i64({1}, {-1})},
             {f32({2, 5}, {7, 0, 1, 2, 7, 7, 3, 4, 5, 7})}});
  expect_op({"pad",
             {},
             {i64({1}, {INT64_MAX}), i64({2}, {1, 0}), i64({}, {5})},
             {i64({2}, {5, INT64_MAX})}});
  expect_op({"pad", {}, {f32({0}, {}), i64({2}, {1, 1})}, {f32({2}, {0, 0})}});
}

TEST(Pad, TakesAwayByNegativePads) {
  const Tensor x = f32({4}, {1, 2, 3, 4});
  expect_op({"pad", {}, {x, i64({2}, {-1, 2})}, {f32({5}, {2, 3, 4, 0, 0})}});
  expect_op({"pad",
             {{"mode", std::string("edge")}},
             {x, i64({2}, {-1, 2})},
             {f32({5}, {2, 3, 4, 4, 4})}});
  EXPECT_FALSE(try_evaluate("pad", {}, {x, i64({2}, {-3, -2})}));
}

TEST(Pad, ContinuesTheTensor) {
  const Tensor x = f32({2, 3}, {0, 1, 2, 3, 4, 5}), pads = i64({4}, {3, 5, 2, 7});
  expect_op({"pad",
             {{"mode", std::string("edge")}},
             {x, pads},
             {f32({7, 15},
                  {0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2,
                   2, 2, 2, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 1, 2, 2,
                   2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5, 3, 3, 3, 3, 3, 3,
                   4, 5, 5, 5, 5, 5, 5, 5, 5, 3, 3, 3, 3, 3, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5})}});
  expect_op({"pad",
             {{"mode", std::string("reflect")}},
             {x, pads},
             {f32({7, 15},
                  {4, 3, 4, 5, 4, 3, 4, 5, 4, 3, 4, 5, 4, 3, 4, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2,
                   1, 0, 1, 4, 3, 4, 5, 4, 3, 4, 5, 4, 3, 4, 5, 4, 3, 4, 1, 0, 1, 2, 1, 0, 1, 2, 1,
                   0, 1, 2, 1, 0, 1, 4, 3, 4, 5, 4, 3, 4, 5, 4, 3, 4, 5, 4, 3, 4, 1, 0, 1, 2, 1, 0,
                   1, 2, 1, 0, 1, 2, 1, 0, 1, 4, 3, 4, 5, 4, 3, 4, 5, 4, 3, 4, 5, 4, 3, 4})}});
  expect_op({"pad",
             {{"mode", std::string("wrap")}},
             {x, pads},
             {f32({7, 15},
                  {4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0,
                   1, 2, 0, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 1, 2, 0, 1, 2, 0, 1, 2, 0,
                   1, 2, 0, 1, 2, 0, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 1, 2, 0, 1, 2, 0,
                   1, 2, 0, 1, 2, 0, 1, 2, 0, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5, 3})}});
  expect_op({"pad",
             {{"mode", std::string("reflect")}},
             {f32({1}, {3}), i64({2}, {1, 1})},
             {f32({3}, {3, 3, 3})}});
}

TEST(Pad, WrapsWhatNegativePadsLeave) {
  const auto wrapped = [](std::vector<std::int64_t> pads, std::vector<double> expected) {
    const auto count = static_cast<std::int64_t>(expected.size());
    expect_op({"pad",
               {{"mode", std::string("wrap")}},
               {f32({5}, {1, 2, 3, 4, 5}), i64({2}, std::move(pads))},
               {f32({count}, expected)}});
  };
  wrapped({-2, 4}, {3, 4, 5, 3, 4, 5, 3});
  wrapped({4, -2}, {3, 1, 2, 3, 1, 2, 3});
  wrapped({-1, -2}, {2, 3});
  wrapped({-5, 0}, {});
}

TEST(Pad, RefusesWhatItCannotContinue) {
  const Tensor x = f32({2}, {1, 2});
  EXPECT_FALSE(try_evaluate("pad", {{"mode", std::string("wrap")}}, {x, i64({2}, {-2, 3})}));
  EXPECT_FALSE(try_evaluate("pad", {{"mode", std::string("mirror")}}, {x, i64({2}, {1, 1})}));
  EXPECT_FALSE(
      try_evaluate("pad", {{"mode", std::string("edge")}}, {f32({0}, {}), i64({2}, {1, 1})}));
  EXPECT_FALSE(try_evaluate("pad", {}, {x, i64({3}, {1, 1, 1})}));
  EXPECT_FALSE(try_evaluate("pad", {}, {x, i64({2}, {1, 1}), i64({}, {1})}));
  EXPECT_FALSE(try_evaluate("pad", {}, {x, i64({2}, {INT64_MAX, INT64_MAX})}));
}

TEST(CenterCropPad, KeepsTheCenter) {
  const Tensor x =
      f32({5, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
  expect_op({"center_crop_pad",
             {},
             {x, i64({2}, {2, 7})},
             {f32({2, 7}, {0, 4, 5, 6, 7, 0, 0, 0, 8, 9, 10, 11, 0, 0})}});
  expect_op({"center_crop_pad",
             {{"axes", Ints{-1}}},
             {x, i64({1}, {3})},
             {f32({5, 3}, {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 16, 17, 18})}});
  EXPECT_FALSE(try_evaluate("center_crop_pad", {}, {x, i64({1}, {3})}));
}

}  // namespace
}  // namespace tessera
