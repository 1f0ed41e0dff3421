#include <array>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::evaluate;
using testing::expect_near;
using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::numbers;
using testing::random_f32;
using testing::tensor;
using testing::try_evaluate;

/// 1, 2, 3, …
Tensor counting(std::vector<std::int64_t> shape) {
  std::vector<double> elements(static_cast<std::size_t>(*element_count(shape)));
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<double>(i + 1);
  return f32(std::move(shape), elements);
}

struct Convolution {
  std::array<std::int64_t, 2> stride, dilation, before, after;
  std::int64_t group;
};

/// A plain loop over an N C H W image.
Tensor convolved(const Tensor& x, const Tensor& w, const Tensor& b, const Convolution& c) {
  const auto positions = [&](std::size_t i) {
    const std::int64_t reach = (w.shape[2 + i] - 1) * c.dilation[i] + 1;
    return (x.shape[2 + i] + c.before[i] + c.after[i] - reach) / c.stride[i] + 1;
  };
  const std::vector<std::int64_t> shape = {x.shape[0], w.shape[0], positions(0), positions(1)};
  const std::vector<double> image = numbers(x), weight = numbers(w), bias = numbers(b);
  std::vector<double> out;
  for (std::int64_t n = 0; n < shape[0]; ++n)
    for (std::int64_t f = 0; f < shape[1]; ++f)
      for (std::int64_t y = 0; y < shape[2]; ++y)
        for (std::int64_t z = 0; z < shape[3]; ++z) {
          double sum = bias[static_cast<std::size_t>(f)];
          for (std::int64_t k = 0; k < w.shape[1]; ++k)
            for (std::int64_t r = 0; r < w.shape[2]; ++r)
              for (std::int64_t s = 0; s < w.shape[3]; ++s) {
                const std::int64_t channel = f / (w.shape[0] / c.group) * w.shape[1] + k;
                const std::int64_t i = y * c.stride[0] + r * c.dilation[0] - c.before[0];
                const std::int64_t j = z * c.stride[1] + s * c.dilation[1] - c.before[1];
                if (i < 0 || j < 0 || i >= x.shape[2] || j >= x.shape[3]) continue;
                const auto at = static_cast<std::size_t>(
                    ((n * x.shape[1] + channel) * x.shape[2] + i) * x.shape[3] + j);
                const auto tap = static_cast<std::size_t>(
                    ((f * w.shape[1] + k) * w.shape[2] + r) * w.shape[3] + s);
                sum += image[at] * weight[tap];
              }
          out.push_back(sum);
        }
  return f32(shape, out);
}

TEST(Conv, AgreesWithAPlainLoop) {
  const Tensor x = random_f32({2, 4, 6, 7}, 1), w = random_f32({6, 2, 3, 2}, 2);
  const Tensor b = random_f32({6}, 3);
  expect_op({.op = "conv",
             .attrs = {{"strides", Ints{2, 1}},
                       {"dilations", Ints{1, 2}},
                       {"pads", Ints{1, 0, 2, 3}},
                       {"group", 2}},
             .inputs = {x, w, b},
             .outputs = {convolved(x, w, b, {{2, 1}, {1, 2}, {1, 0}, {2, 3}, 2})}});
}

TEST(Conv, SolvesAutomaticPadding) {
  const Tensor x = random_f32({1, 1, 5, 6}, 1), w = random_f32({1, 1, 2, 4}, 2), b = f32({1}, {0});
  // Rows: 3 positions need 6 of 5 rows; columns: 3 need 8 of 6.
  expect_op({.op = "conv",
             .attrs = {{"strides", Ints{2, 2}}, {"auto_pad", "SAME_UPPER"}},
             .inputs = {x, w},
             .outputs = {convolved(x, w, b, {{2, 2}, {1, 1}, {0, 1}, {1, 1}, 1})}});
  expect_op({.op = "conv",
             .attrs = {{"strides", Ints{2, 2}}, {"auto_pad", "SAME_LOWER"}},
             .inputs = {x, w},
             .outputs = {convolved(x, w, b, {{2, 2}, {1, 1}, {1, 1}, {0, 1}, 1})}});
  expect_op(
      {.op = "conv",
       .attrs = {{"strides", Ints{2, 2}}, {"auto_pad", "VALID"}, {"kernel_shape", Ints{2, 4}}},
       .inputs = {x, w},
       .outputs = {convolved(x, w, b, {{2, 2}, {1, 1}, {0, 0}, {0, 0}, 1})}});
}

TEST(Conv, RefusesWhatDoesNotFit) {
  const Tensor x = counting({1, 1, 3, 3}), w = counting({1, 1, 2, 2});
  const auto error = [&](const Attrs& attrs, const Tensor& image, const Tensor& weight) {
    const auto result = try_evaluate("conv", attrs, {image, weight});
    return result ? "none" : result.error().id;
  };
  EXPECT_EQ(error({{"strides", Ints{1}}}, x, w), "op-operands");
  EXPECT_EQ(error({{"strides", Ints{0, 1}}}, x, w), "op-operands");
  EXPECT_EQ(error({{"group", 0}}, x, w), "op-operands");
  EXPECT_EQ(error({{"auto_pad", "SAME"}}, x, w), "op-operands");
  EXPECT_EQ(error({{"kernel_shape", Ints{3, 3}}}, x, w), "shape-mismatch");
  EXPECT_EQ(error({}, x, counting({1, 2, 2, 2})), "shape-mismatch");
  EXPECT_EQ(error({}, x, counting({1, 1, 2})), "op-operands");
  EXPECT_EQ(error({}, counting({3}), counting({3})), "op-operands");
  EXPECT_EQ(error({{"dilations", Ints{9, 9}}}, x, w), "shape-negative");
}

TEST(ConvTranspose, SpreadsEveryPixel) {
  expect_op({.op = "conv_transpose",
             .attrs = {{"strides", Ints{2, 2}},
                       {"pads", Ints{1, 1, 1, 1}},
                       {"output_padding", Ints{1, 1}}},
             .inputs = {counting({1, 1, 2, 2}), counting({1, 2, 3, 3})},
             .outputs = {f32({1, 2, 4, 4},
                             {5,  14, 10, 12, 14, 36,  24, 30, 15, 34, 20, 24, 24, 55,  32, 36,
                              14, 41, 28, 30, 50, 126, 78, 84, 42, 97, 56, 60, 51, 118, 68, 72})}});
  // The transpose of conv: <conv(x, w), y> = <x, conv_transpose(y, w)>.
  const Attrs attrs = {
      {"strides", Ints{2, 3}}, {"dilations", Ints{2, 1}}, {"group", 2}, {"pads", Ints{1, 0, 1, 2}}};
  const Tensor x = random_f32({1, 4, 7, 7}, 1), w = random_f32({6, 2, 3, 3}, 2);
  const std::vector<double> forth = numbers(evaluate("conv", attrs, {x, w}).at(0));
  const Tensor y = random_f32({1, 6, 3, 3}, 3);
  const Tensor transposed = evaluate("conv_transpose", attrs, {y, w}).at(0);
  ASSERT_EQ(transposed.shape, x.shape);
  const std::vector<double> back = numbers(transposed), xs = numbers(x), ys = numbers(y);
  ASSERT_EQ(forth.size(), ys.size());
  double left = 0, right = 0;
  for (std::size_t i = 0; i < ys.size(); ++i) left += forth[i] * ys[i];
  for (std::size_t i = 0; i < xs.size(); ++i) right += back[i] * xs[i];
  EXPECT_NEAR(left, right, 1e-4);
}

TEST(ConvTranspose, HasTheShapeThatIsAskedFor) {
  const Tensor x = counting({1, 1, 2, 2});
  expect_op(
      {.op = "conv_transpose",
       .attrs = {{"strides", Ints{2, 2}}, {"auto_pad", "SAME_UPPER"}},
       .inputs = {x, counting({1, 1, 3, 3})},
       .outputs = {f32({1, 1, 4, 4}, {1, 2, 5, 4, 4, 5, 14, 10, 10, 14, 36, 24, 12, 15, 34, 20})}});
  expect_op({.op = "conv_transpose",
             .attrs = {{"strides", Ints{2, 2}}, {"output_shape", Ints{5, 3}}},
             .inputs = {x, f32({1, 1, 2, 2}, {1, 1, 1, 1}), f32({1}, {10})},
             .outputs = {
                 f32({1, 1, 5, 3}, {11, 12, 12, 11, 12, 12, 13, 14, 14, 13, 14, 14, 10, 10, 10})}});
}

/// A plain loop over an N C H W image, the gradient of the result, and the taps of the weights.
Tensor weight_gradient(const Tensor& x, const Tensor& dy, std::array<std::int64_t, 2> window,
                       const Convolution& c) {
  const std::int64_t channels = x.shape[1] / c.group, filters = dy.shape[1] / c.group;
  const std::vector<double> image = numbers(x), gradient = numbers(dy);
  std::vector<double> out;
  for (std::int64_t f = 0; f < dy.shape[1]; ++f)
    for (std::int64_t k = 0; k < channels; ++k)
      for (std::int64_t r = 0; r < window[0]; ++r)
        for (std::int64_t s = 0; s < window[1]; ++s) {
          double sum = 0;
          for (std::int64_t n = 0; n < x.shape[0]; ++n)
            for (std::int64_t y = 0; y < dy.shape[2]; ++y)
              for (std::int64_t z = 0; z < dy.shape[3]; ++z) {
                const std::int64_t i = y * c.stride[0] + r * c.dilation[0] - c.before[0];
                const std::int64_t j = z * c.stride[1] + s * c.dilation[1] - c.before[1];
                if (i < 0 || j < 0 || i >= x.shape[2] || j >= x.shape[3]) continue;
                const std::int64_t channel = f / filters * channels + k;
                sum += image[static_cast<std::size_t>(
                           ((n * x.shape[1] + channel) * x.shape[2] + i) * x.shape[3] + j)] *
                       gradient[static_cast<std::size_t>(
                           ((n * dy.shape[1] + f) * dy.shape[2] + y) * dy.shape[3] + z)];
              }
          out.push_back(sum);
        }
  return f32({dy.shape[1], channels, window[0], window[1]}, out);
}

TEST(ConvWeightGradient, AgreesWithAPlainLoop) {
  const auto expect = [](const Tensor& x, const Tensor& dy, std::array<std::int64_t, 2> window,
                         const Convolution& c) {
    expect_op({.op = "conv_weight_gradient",
               .attrs = {{"kernel_shape", Ints{window[0], window[1]}},
                         {"strides", Ints{c.stride[0], c.stride[1]}},
                         {"dilations", Ints{c.dilation[0], c.dilation[1]}},
                         {"pads", Ints{c.before[0], c.before[1], c.after[0], c.after[1]}},
                         {"group", c.group}},
               .inputs = {x, dy},
               .outputs = {weight_gradient(x, dy, window, c)},
               .tolerance = 1e-5});
  };
  expect(random_f32({2, 3, 6, 5}, 1), random_f32({2, 4, 6, 5}, 2), {3, 3},
         {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1});
  expect(random_f32({1, 4, 7, 8}, 3), random_f32({1, 6, 4, 3}, 4), {3, 2},
         {{2, 3}, {1, 2}, {1, 0}, {2, 0}, 2});
  expect(random_f32({3, 4, 5, 5}, 5), random_f32({3, 8, 3, 3}, 6), {3, 3},
         {{2, 2}, {1, 1}, {1, 1}, {1, 1}, 4});
}

TEST(ConvWeightGradient, RefusesWhatDoesNotFit) {
  const Tensor x = counting({1, 2, 4, 4}), dy = counting({1, 2, 4, 4});
  const auto error = [](const Attrs& attrs, const Tensor& image, const Tensor& gradient) {
    const auto result = try_evaluate("conv_weight_gradient", attrs, {image, gradient});
    return result ? "none" : result.error().id;
  };
  EXPECT_EQ(error({}, x, dy), "op-operands");
  EXPECT_EQ(error({{"kernel_shape", Ints{3}}}, x, dy), "op-operands");
  EXPECT_EQ(error({{"kernel_shape", Ints{3, 3}}}, x, counting({2, 2, 4, 4})), "shape-mismatch");
  EXPECT_EQ(error({{"kernel_shape", Ints{3, 3}}, {"group", 3}}, x, dy), "shape-mismatch");
}

TEST(ConvInteger, SubtractsTheZeroPointsBeforeItPads) {
  expect_op({.op = "conv_integer",
             .attrs = {{"pads", Ints{1, 1, 1, 1}}},
             .inputs = {tensor(DType::U8, {1, 1, 3, 3}, {2, 3, 4, 5, 6, 7, 8, 9, 10}),
                        tensor(DType::U8, {1, 1, 2, 2}, {1, 1, 1, 1}), tensor(DType::U8, {}, {1})},
             .outputs = {tensor(DType::I32, {1, 1, 4, 4},
                                {1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9})}});
}

TEST(QlinearConv, QuantizesItsSums) {
  expect_op(
      {.op = "qlinear_conv",
       .attrs = {{"pads", Ints{0, 0, 1, 1}}},
       .inputs = {tensor(DType::U8, {1, 1, 3, 3}, {255, 174, 162, 25, 203, 168, 1, 2, 3}),
                  f32({}, {0.00369}), tensor(DType::U8, {}, {132}),
                  tensor(DType::U8, {2, 1, 2, 2}, {0, 3, 250, 7, 9, 100, 0, 1}),
                  f32({2}, {0.00172, 0.01}), tensor(DType::U8, {2}, {255, 3}), f32({}, {0.00162}),
                  tensor(DType::U8, {}, {123}), tensor(DType::I32, {2}, {10, -2000})},
       .outputs = {tensor(
           DType::U8, {1, 2, 3, 3},
           {0, 15, 92, 255, 144, 90, 255, 255, 252, 191, 143, 79, 235, 181, 91, 0, 0, 60})}});
}

TEST(Col2im, AddsOverlappingBlocks) {
  expect_op({.op = "col2im",
             .inputs = {counting({1, 4, 4}), i64({2}, {3, 3}), i64({2}, {2, 2})},
             .outputs = {f32({1, 1, 3, 3}, {1, 7, 6, 12, 34, 22, 11, 27, 16})}});
  // It adds up in each pixel the windows that see it.
  expect_op(
      {.op = "col2im",
       .attrs = {{"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 0}}},
       .inputs = {f32({1, 4, 4}, std::vector<double>(16, 1)), i64({2}, {3, 4}), i64({2}, {2, 2})},
       .outputs = {f32({1, 1, 3, 4}, std::vector<double>(12, 1))}});
}

TEST(DeformConv, ReadsBetweenPixels) {
  std::vector<double> offset(32, 0);
  for (std::size_t i = 0; i < 4; ++i) offset[i] = 0.5;  // the first tap, down by half a pixel
  expect_op({.op = "deform_conv",
             .inputs = {counting({1, 1, 3, 3}), f32({1, 1, 2, 2}, {1, 1, 1, 1}),
                        f32({1, 8, 2, 2}, offset), f32({1}, {1})},
             .outputs = {f32({1, 1, 2, 2}, {14.5, 18.5, 26.5, 30.5})}});
}

TEST(DeformConv, WithoutOffsetsIsConv) {
  const Tensor x = random_f32({1, 4, 5, 5}, 1), w = random_f32({2, 2, 3, 3}, 2);
  const Attrs attrs = {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}, {"group", 2}};
  Attrs shared = attrs;
  shared.set("offset_group", std::int64_t{2});
  const Tensor half = f32({1, 18, 3, 3}, std::vector<double>(162, 0.5));
  const Tensor still = f32({1, 36, 3, 3}, std::vector<double>(324, 0));
  std::vector<double> expected = numbers(evaluate("conv", attrs, {x, w}).at(0));
  for (double& y : expected) y /= 2;
  expect_near(evaluate("deform_conv", shared, {x, w, still, std::nullopt, half}).at(0),
              f32({1, 2, 3, 3}, expected));
}

}  // namespace
}  // namespace tessera
