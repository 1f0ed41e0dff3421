#include "tests/ops/expect_op.h"
#include "tests/ops/image.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::image_4x4;
using testing::tensor;
using testing::try_evaluate;

TEST(MaxPool, TakesTheLargestUnderTheWindow) {
  expect_op({.op = "max_pool",
             .attrs = {{"kernel_shape", Ints{2, 2}}},
             .inputs = {image_4x4()},
             .outputs = {f32({1, 1, 3, 3}, {6, 7, 8, 10, 11, 12, 14, 15, 16})}});
  expect_op({.op = "max_pool",
             .attrs = {{"kernel_shape", Ints{2, 2}}, {"dilations", Ints{3, 2}}},
             .inputs = {image_4x4()},
             .outputs = {f32({1, 1, 1, 2}, {15, 16})}});
}

TEST(MaxPool, RoundsUpToAWindowThatStartsInTheImage) {
  expect_op({.op = "max_pool",
             .attrs = {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", 1}},
             .inputs = {image_4x4()},
             .outputs = {f32({1, 1, 2, 2}, {11, 12, 15, 16})}});
  expect_op({.op = "max_pool",
             .attrs = {{"kernel_shape", Ints{1}}, {"strides", Ints{2}}, {"ceil_mode", 1}},
             .inputs = {f32({1, 1, 2}, {1, 2})},
             .outputs = {f32({1, 1, 1}, {1})}});
}

TEST(MaxPool, SaysWhereTheLargestIs) {
  const Tensor x = f32({1, 1, 3, 4}, {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8});
  const Attrs attrs = {
      {"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 0}}};
  const Tensor y = f32({1, 1, 2, 2}, {3, 4, 9, 8});
  expect_op({.op = "max_pool",
             .attrs = attrs,
             .inputs = {x},
             .outputs = {y, i64({1, 1, 2, 2}, {0, 2, 5, 11})}});
  Attrs columns = attrs;
  columns.set("storage_order", std::int64_t{1});
  expect_op({.op = "max_pool",
             .attrs = columns,
             .inputs = {x},
             .outputs = {y, i64({1, 1, 2, 2}, {0, 6, 4, 11})}});
}

TEST(MaxPoolGradient, GivesEachElementThatOfTheWindowsThatNameIt) {
  // Windows of 3 at every second position share elements: 5 is the maximum of two of them.
  expect_op({.op = "max_pool_gradient",
             .attrs = {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"sizes", Ints{7}}},
             .inputs = {f32({1, 2, 3}, {1, 2, 4, 8, 16, 32}), i64({1, 2, 3}, {2, 2, 6, 0, 3, 4})},
             .outputs = {f32({1, 2, 7}, {0, 0, 3, 0, 0, 0, 4, 8, 0, 0, 16, 32, 0, 0})}});
}

TEST(MaxPoolGradient, AgreesWithWritesToTheIndices) {
  struct Case {
    std::vector<std::int64_t> image;
    Ints kernel, strides, pads, dilations;
    std::int64_t ceil_mode;
  };
  const Case cases[] = {{{2, 3, 9, 8}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 0},
                        {{1, 2, 7, 10}, {2, 3}, {1, 2}, {0, 1, 1, 0}, {2, 1}, 0},
                        {{1, 5, 8, 7}, {3, 2}, {2, 3}, {1, 0, 1, 0}, {1, 2}, 1},
                        {{1, 1, 4, 5, 6}, {2, 2, 2}, {2, 1, 2}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}, 0}};
  for (const Case& c : cases) {
    const Tensor x = testing::random_f32(c.image, 1);
    Attrs attrs = {{"kernel_shape", c.kernel},
                   {"strides", c.strides},
                   {"pads", c.pads},
                   {"dilations", c.dilations},
                   {"ceil_mode", c.ceil_mode}};
    const auto pooled = try_evaluate("max_pool", attrs, {x});
    ASSERT_TRUE(pooled.has_value());
    const std::int64_t plane = [&] {
      std::int64_t all = 1;
      for (std::size_t i = 2; i < c.image.size(); ++i) all *= c.image[i];
      return all;
    }();
    const Tensor dy = testing::random_f32((*pooled)[0].shape, 2);
    const std::vector<double> from = numbers(dy), of_all = numbers((*pooled)[1]);
    std::vector<double> expected(numbers(x).size(), 0.0);
    std::vector<std::int64_t> indices;
    for (std::size_t i = 0; i < of_all.size(); ++i) {
      const auto at = static_cast<std::int64_t>(of_all[i]);
      expected[static_cast<std::size_t>(at)] += from[i];
      indices.push_back(at % plane);
    }
    attrs.set("sizes", Ints(c.image.begin() + 2, c.image.end()));
    expect_op({.op = "max_pool_gradient",
               .attrs = attrs,
               .inputs = {dy, i64((*pooled)[1].shape, indices)},
               .outputs = {f32(c.image, expected)},
               .tolerance = 1e-6});
  }
}

TEST(MaxPoolGradient, RefusesWhatDoesNotFit) {
  const Tensor dy = f32({1, 1, 2}, {1, 2}), indices = i64({1, 1, 2}, {0, 2});
  const auto error = [&](const Attrs& attrs) {
    const auto result = try_evaluate("max_pool_gradient", attrs, {dy, indices});
    return result ? "none" : result.error().id;
  };
  const Ints two{2};
  EXPECT_EQ(error({{"kernel_shape", two}, {"strides", two}, {"sizes", Ints{4}}}), "none");
  EXPECT_EQ(error({{"kernel_shape", two}, {"strides", two}}), "op-attribute");
  EXPECT_EQ(error({{"kernel_shape", two}, {"sizes", Ints{4, 4}}}), "op-operands");
  EXPECT_EQ(error({{"kernel_shape", two}, {"sizes", Ints{0}}}), "op-operands");
}

TEST(MaxPool, LetsTheSmallestIntegerWinAgainstPadding) {
  expect_op({.op = "max_pool",
             .attrs = {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 0}}},
             .inputs = {tensor(DType::I8, {1, 2, 2}, {-128, -128, -5, 7})},
             .outputs = {tensor(DType::I8, {1, 2, 2}, {-128, -128, -5, 7}),
                         i64({1, 2, 2}, {0, 0, 2, 3})}});
}

TEST(AveragePool, CountsThePaddingOnlyIfAsked) {
  Attrs attrs = {{"kernel_shape", Ints{3, 3}},
                 {"strides", Ints{2, 2}},
                 {"ceil_mode", 1},
                 {"pads", Ints{1, 1, 0, 0}}};
  expect_op({.op = "average_pool",
             .attrs = attrs,
             .inputs = {image_4x4()},
             .outputs = {f32({1, 1, 2, 2}, {3.5, 5, 9.5, 11})}});
  attrs.set("count_include_pad", std::int64_t{1});
  expect_op({.op = "average_pool",
             .attrs = attrs,
             .inputs = {image_4x4()},
             .outputs = {f32({1, 1, 2, 2}, {14.0 / 9, 30.0 / 9, 57.0 / 9, 11})}});
}

TEST(AveragePool, NeverCountsWhatLiesBeyondThePadding) {
  expect_op({.op = "average_pool",
             .attrs = {{"kernel_shape", Ints{3}},
                       {"strides", Ints{2}},
                       {"ceil_mode", 1},
                       {"count_include_pad", 1}},
             .inputs = {f32({1, 1, 4}, {1, 2, 3, 4})},
             .outputs = {f32({1, 1, 2}, {2, 3.5})}});
}

TEST(AveragePool, SolvesAutomaticPadding) {
  expect_op({.op = "average_pool",
             .attrs = {{"kernel_shape", Ints{2, 2}}, {"auto_pad", "SAME_LOWER"}},
             .inputs = {f32({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})},
             .outputs = {f32({1, 1, 3, 3}, {1, 1.5, 2.5, 2.5, 3, 4, 5.5, 6, 7})}});
}

TEST(LpPool, TakesTheNorm) {
  const Tensor x = f32({1, 1, 3, 3}, {1, 2, 3, 4, -5, 6, 7, 8, 9});
  expect_op({.op = "lp_pool",
             .attrs = {{"kernel_shape", Ints{2, 2}}, {"p", 3}},
             .inputs = {x},
             .outputs = {f32({1, 1, 2, 2}, {5.828477, 7.217653, 10.14457, 11.65205})}});
  expect_op({.op = "lp_pool",
             .attrs = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}},
             .inputs = {x},
             .outputs = {f32({1, 1, 1, 1}, {6.78233})}});
}

TEST(Pool, RefusesWhatDoesNotFit) {
  const auto error = [](std::string_view op, const Attrs& attrs, const Tensor& x) {
    const auto result = try_evaluate(op, attrs, {x});
    return result ? "none" : result.error().id;
  };
  EXPECT_EQ(error("max_pool", {}, image_4x4()), "op-attribute");
  EXPECT_EQ(error("max_pool", {{"kernel_shape", Ints{}}}, image_4x4()), "op-operands");
  EXPECT_EQ(error("max_pool", {{"kernel_shape", Ints{2, 0}}}, image_4x4()), "op-operands");
  EXPECT_EQ(error("max_pool", {{"kernel_shape", Ints{9, 9}}}, image_4x4()), "shape-negative");
  EXPECT_EQ(error("lp_pool", {{"kernel_shape", Ints{2, 2}}, {"p", 0}}, image_4x4()), "op-operands");
  EXPECT_NE(error("average_pool", {{"kernel_shape", Ints{1}}}, i64({1, 1, 2}, {1, 2})), "none");
  EXPECT_EQ(error("max_pool", {{"kernel_shape", Ints{1}}}, f32({2}, {1, 2})), "op-operands");
}

}  // namespace
}  // namespace tessera
