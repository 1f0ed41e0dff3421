#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::evaluate;
using testing::expect_near;
using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::random_f32;
using testing::try_evaluate;

TEST(GridSample, InterpolatesAndPads) {
  const Tensor x = f32({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor grid =
      f32({1, 2, 3, 2}, {-1, -1, -0.5, -0.5, -0.2, -1.5, 0.3, 0.2, 1, 1, 1.4, -0.6});
  struct Case {
    const char *mode, *padding;
    std::vector<double> expected;
  };
  for (const Case& c : std::vector<Case>{
           {"linear", "zeros", {0.25, 1.5, 0, 4.4, 1.5, 0.22}},
           {"bilinear", "border", {1, 1.5, 1.3, 4.4, 6, 2.2}},
           {"linear", "reflection", {1, 1.5, 1.8, 4.4, 6, 2.2}},
           {"nearest", "zeros", {1, 1, 0, 4, 0, 0}},
           {"nearest", "border", {1, 1, 1, 4, 6, 2}},
           {"nearest", "reflection", {1, 1, 1, 4, 6, 2}},
           {"cubic", "zeros", {0.109375, 1.488281, -0.1564892, 5.459991, 1.640625, 0.1934631}},
           {"bicubic", "border", {0.71875, 1.382812, 1.279, 4.602503, 6.28125, 2.157248}},
           {"cubic", "reflection", {0.4375, 1.382812, 1.661813, 4.602503, 6.5625, 2.217998}},
       }) {
    SCOPED_TRACE(std::string(c.mode) + " " + c.padding);
    expect_op({.op = "grid_sample",
               .attrs = {{"mode", c.mode}, {"padding_mode", c.padding}},
               .inputs = {x, grid},
               .outputs = {f32({1, 1, 2, 3}, c.expected)}});
  }
  expect_op({.op = "grid_sample",
             .attrs = {{"align_corners", 1}},
             .inputs = {x, grid},
             .outputs = {f32({1, 1, 2, 3}, {1, 2.25, 0.7, 4.05, 6, 2.24})}});
}

TEST(GridSample, OfTheIdentityGridIsTheImage) {
  for (const std::int64_t aligned : {0, 1}) {
    const Tensor x = random_f32({2, 2, 3, 4, 2}, 1);
    std::vector<double> identity;
    for (int n = 0; n < 2; ++n)
      for (const double v : {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}) identity.push_back(v);
    const Tensor grid = evaluate("affine_grid", {{"align_corners", aligned}},
                                 {f32({2, 3, 4}, identity), i64({5}, {2, 2, 3, 4, 2})})
                            .at(0);
    expect_near(evaluate("grid_sample", {{"align_corners", aligned}}, {x, grid}).at(0), x, 1e-5);
  }
}

TEST(AffineGrid, MapsThePixels) {
  const Tensor theta = f32({1, 2, 3}, {1, 0.5, 0.25, -0.5, 1, 0}), size = i64({4}, {1, 1, 2, 3});
  expect_op(
      {.op = "affine_grid",
       .inputs = {theta, size},
       .outputs = {f32({1, 2, 3, 2}, {-0.6666667, -0.1666667, 0, -0.5, 0.6666667, -0.8333333,
                                      -0.1666667, 0.8333333, 0.5, 0.5, 1.166667, 0.1666667})}});
  expect_op({.op = "affine_grid",
             .attrs = {{"align_corners", 1}},
             .inputs = {theta, size},
             .outputs = {f32({1, 2, 3, 2}, {-1.25, -0.5, -0.25, -1, 0.75, -1.5, -0.25, 1.5, 0.75, 1,
                                            1.75, 0.5})}});
  // As ONNX has it for the depth: the one pixel of an axis is at -1.
  expect_op({.op = "affine_grid",
             .attrs = {{"align_corners", 1}},
             .inputs = {theta, i64({4}, {1, 1, 1, 2})},
             .outputs = {f32({1, 1, 2, 2}, {-1.25, -0.5, 0.75, -1.5})}});
}

/// 1 … 20.
Tensor image_4x5() {
  return f32({1, 1, 4, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20});
}

TEST(RoiAlign, PoolsSamplesOfEachBox) {
  const Tensor rois = f32({2, 4}, {0, 0, 3, 3, 1.5, 0.5, 4, 2}), batch = i64({2}, {0, 0});
  expect_op({.op = "roi_align",
             .attrs = {{"output_height", 2}, {"output_width", 2}},
             .inputs = {image_4x5(), rois, batch},
             .outputs = {f32({2, 1, 2, 2}, {2.875, 4.3125, 10.0625, 11.5, 4.5, 5.75, 8.25, 9.5})}});
  expect_op({.op = "roi_align",
             .attrs = {{"output_height", 2},
                       {"output_width", 2},
                       {"mode", "max"},
                       {"sampling_ratio", 2},
                       {"coordinate_transformation_mode", "output_half_pixel"}},
             .inputs = {image_4x5(), rois, batch},
             .outputs = {f32({2, 1, 2, 2}, {5.359375, 6.125, 9.296875, 9.953125, 6.09375, 7.910156,
                                            8.582031, 10.66406})}});
}

TEST(RoiAlign, RefusesAnImageThatIsNotThere) {
  EXPECT_FALSE(
      try_evaluate("roi_align", {}, {image_4x5(), f32({1, 4}, {0, 0, 3, 3}), i64({1}, {7})}));
}

TEST(MaxRoiPool, TakesTheLargestOfEachBin) {
  expect_op({.op = "max_roi_pool",
             .attrs = {{"pooled_shape", Ints{2, 2}}},
             .inputs = {image_4x5(), f32({2, 5}, {0, 0, 0, 2, 2, 0, 1, 1, 9, 3})},
             .outputs = {f32({2, 1, 2, 2}, {7, 8, 12, 13, 15, 0, 20, 0})}});
}

TEST(Sample, RefusesWhatDoesNotFit) {
  const auto error = [](std::string_view op, const Attrs& attrs,
                        const std::vector<std::optional<Tensor>>& inputs) {
    const auto result = try_evaluate(op, attrs, inputs);
    return result ? "none" : result.error().id;
  };
  const Tensor grid = f32({1, 1, 1, 2}, {0, 0});
  EXPECT_EQ(error("grid_sample", {{"mode", "sharp"}}, {image_4x5(), grid}), "op-operands");
  EXPECT_EQ(error("grid_sample", {}, {image_4x5(), f32({1, 1, 2}, {0, 0})}), "op-operands");
  EXPECT_EQ(error("grid_sample", {}, {image_4x5(), f32({1, 1, 1, 3}, {0, 0, 0})}),
            "shape-mismatch");
  EXPECT_EQ(error("max_roi_pool", {{"pooled_shape", Ints{0, 1}}},
                  {image_4x5(), f32({1, 5}, {0, 0, 0, 1, 1})}),
            "op-operands");
  EXPECT_EQ(error("affine_grid", {}, {f32({1, 1, 2}, {1, 0}), i64({2}, {1, 1})}), "op-operands");
}

}  // namespace
}  // namespace tessera
