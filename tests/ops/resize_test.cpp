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

/// Resized by scales.
void expect_scaled(const Attrs& attrs, const Tensor& x, const std::vector<double>& scales,
                   const Tensor& expected) {
  const auto count = static_cast<std::int64_t>(scales.size());
  expect_op({.op = "resize",
             .attrs = attrs,
             .inputs = {x, std::nullopt, f32({count}, scales)},
             .outputs = {expected}});
}

/// Resized to sizes.
void expect_sized(const Attrs& attrs, const Tensor& x, const std::vector<std::int64_t>& sizes,
                  const Tensor& expected) {
  const auto count = static_cast<std::int64_t>(sizes.size());
  expect_op({.op = "resize",
             .attrs = attrs,
             .inputs = {x, std::nullopt, std::nullopt, i64({count}, sizes)},
             .outputs = {expected}});
}

TEST(Resize, RepeatsTheNearestPixel) {
  const Tensor x = f32({1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor larger =
      f32({1, 1, 4, 6}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4});
  expect_scaled({}, x, {1, 1, 2, 3}, larger);
  expect_sized({}, x, {1, 1, 4, 6}, larger);
  expect_scaled({{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}}, x,
                {1, 1, 2, 3}, larger);
  expect_scaled({{"axes", Ints{3, -2}}}, x, {3, 2}, larger);
}

TEST(Resize, ComputesPointsOfNearestPixelsInSinglePrecision) {
  // 3 / 0.6f is 4.9999998, and 5 in single precision.
  expect_scaled({{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}},
                f32({8}, {0, 1, 2, 3, 4, 5, 6, 7}), {0.6}, f32({4}, {0, 1, 3, 5}));
}

TEST(Resize, RoundsAsItIsTold) {
  // The points are 0, 2/3, 4/3, 2, 8/3 and 10/3.
  const Tensor x = f32({4}, {1, 2, 3, 4});
  const auto nearest = [&](const char* mode, const std::vector<double>& expected) {
    expect_scaled({{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", mode}}, x,
                  {1.5}, f32({6}, expected));
  };
  nearest("floor", {1, 1, 2, 3, 3, 4});
  nearest("ceil", {1, 2, 3, 3, 4, 4});
  nearest("round_prefer_floor", {1, 2, 2, 3, 4, 4});
  nearest("round_prefer_ceil", {1, 2, 2, 3, 4, 4});
  // Ties: the points are 0.5 and 2.5.
  const auto tie = [&](const char* mode, const std::vector<double>& expected) {
    expect_scaled({{"nearest_mode", mode}}, x, {0.5}, f32({2}, expected));
  };
  tie("round_prefer_floor", {1, 3});
  tie("round_prefer_ceil", {2, 4});
}

TEST(Resize, InterpolatesBetweenPixels) {
  expect_scaled({{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}},
                f32({1, 1, 2, 2}, {1, 2, 3, 4}), {1, 1, 2, 2},
                f32({1, 1, 4, 4}, {1, 4.0 / 3, 5.0 / 3, 2, 5.0 / 3, 2, 7.0 / 3, 8.0 / 3, 7.0 / 3,
                                   8.0 / 3, 3, 10.0 / 3, 3, 10.0 / 3, 11.0 / 3, 4}));
  expect_scaled({{"mode", "linear"}, {"coordinate_transformation_mode", "half_pixel_symmetric"}},
                f32({1, 1, 1, 4}, {1, 2, 3, 4}), {1, 1, 1, 0.6},
                f32({1, 1, 1, 2}, {1.666667, 3.333333}));
  expect_sized({{"mode", "linear"}, {"coordinate_transformation_mode", "pytorch_half_pixel"}},
               image_4x4(), {1, 1, 3, 1}, f32({1, 1, 3, 1}, {1.666667, 7, 12.33333}));
  expect_scaled({{"mode", "cubic"}}, image_4x4(), {1, 1, 0.8, 0.8},
                f32({1, 1, 3, 3}, {1.471191, 2.78125, 4.08252, 6.711426, 8.021484, 9.322754,
                                   11.9165, 13.22656, 14.52783}));
  expect_scaled({{"mode", "cubic"}, {"exclude_outside", 1}, {"cubic_coeff_a", -0.5}}, image_4x4(),
                {1, 1, 0.8, 0.8},
                f32({1, 1, 3, 3}, {1.368127, 2.669501, 4.013337, 6.573626, 7.875, 9.218835,
                                   11.94897, 13.25034, 14.59418}));
}

// The specification has 0 for the one element of an axis, where half a pixel would reach outside.
TEST(Resize, TakesTheFirstPixelForTheOnlyOneAsPyTorchDoes) {
  expect_sized({{"mode", "cubic"}, {"coordinate_transformation_mode", "pytorch_half_pixel"}},
               f32({1, 1, 3}, {1, 2, 4}), {1, 1, 1}, f32({1, 1, 1}, {1}));
}

TEST(Resize, WidensItsKernelAgainstAliasing) {
  expect_scaled({{"mode", "linear"}, {"antialias", 1}}, image_4x4(), {1, 1, 0.6, 0.6},
                f32({1, 1, 2, 2}, {2.875, 4.5, 9.375, 11}));
  expect_scaled({{"mode", "cubic"}, {"antialias", 1}}, image_4x4(), {1, 1, 0.6, 0.6},
                f32({1, 1, 2, 2}, {2.51807, 4.285886, 9.589335, 11.35715}));
}

TEST(Resize, CropsAndFillsTheOutside) {
  expect_op({.op = "resize",
             .attrs = {{"mode", "linear"},
                       {"coordinate_transformation_mode", "tf_crop_and_resize"},
                       {"extrapolation_value", 10.0}},
             .inputs = {image_4x4(), f32({8}, {0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7}), std::nullopt,
                        i64({4}, {1, 1, 3, 3})},
             .outputs = {f32({1, 1, 3, 3}, {7.6, 10, 10, 12.4, 10, 10, 10, 10, 10})}});
}

TEST(Resize, KeepsTheAspectRatio) {
  expect_sized({{"keep_aspect_ratio_policy", "not_larger"}, {"axes", Ints{2, 3}}},
               f32({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), {7, 8},
               f32({1, 1, 4, 8}, {1, 1, 2, 2, 3, 3, 4, 4, 1, 1, 2, 2, 3, 3, 4, 4,
                                  5, 5, 6, 6, 7, 7, 8, 8, 5, 5, 6, 6, 7, 7, 8, 8}));
}

TEST(Resize, RoundsAndSaturatesIntegers) {
  expect_sized({{"mode", "linear"}}, tensor(DType::U8, {1, 1, 1, 2}, {0, 255}), {1, 1, 1, 4},
               tensor(DType::U8, {1, 1, 1, 4}, {0, 64, 191, 255}));
}

TEST(Resize, RefusesWhatDoesNotFit) {
  const auto error = [](const Attrs& attrs, std::optional<Tensor> scales,
                        std::optional<Tensor> sizes) {
    const auto result = try_evaluate(
        "resize", attrs, {image_4x4(), std::nullopt, std::move(scales), std::move(sizes)});
    return result ? "none" : result.error().id;
  };
  const Tensor scales = f32({4}, {1, 1, 2, 2});
  EXPECT_EQ(error({}, std::nullopt, std::nullopt), "op-operands");
  EXPECT_EQ(error({}, scales, i64({4}, {1, 1, 2, 2})), "op-operands");
  EXPECT_EQ(error({}, f32({2}, {2, 2}), std::nullopt), "op-operands");
  EXPECT_EQ(error({}, f32({4}, {1, 1, -2, 2}), std::nullopt), "op-operands");
  EXPECT_EQ(error({}, f32({4}, {1, 1, 1e30, 2}), std::nullopt), "shape-negative");
  EXPECT_EQ(error({{"mode", "quintic"}}, scales, std::nullopt), "op-operands");
  EXPECT_EQ(error({{"coordinate_transformation_mode", "tf_crop_and_resize"}}, scales, std::nullopt),
            "op-operands");
  EXPECT_EQ(error({}, std::nullopt, i64({4}, {1, 1, -2, 2})), "shape-negative");
}

}  // namespace
}  // namespace tessera
