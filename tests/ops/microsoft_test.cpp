#include "tessera/ops/catalog.h"
#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;

TEST(Microsoft, AddsABiasBeforeGelu) {
  expect_op({.op = "ms_bias_gelu",
             .inputs = {f32({2, 3}, {-0.83, 0.23, -0.38, -0.26, 0.99, 0.14}),
                        f32({3}, {-0.05, 0.59, -0.22})},
             .outputs = {f32(
                 {2, 3}, {-0.1666981, 0.6509914, -0.1645519, -0.1172669, 1.489856, -0.03744949})}});
  expect_op({.op = "ms_fast_gelu",
             .inputs = {f32({2, 3}, {-0.83, 0.23, -0.38, -0.26, 0.99, 0.14}),
                        f32({3}, {-0.05, 0.59, -0.22})},
             .outputs = {f32(
                 {2, 3}, {-0.1668085, 0.650901, -0.1645848, -0.1172698, 1.489663, -0.0374495})}});
  expect_op({.op = "ms_fast_gelu",
             .inputs = {f32({2, 3}, {-0.83, 0.23, -0.38, -0.26, 0.99, 0.14})},
             .outputs = {f32(
                 {2, 3}, {-0.1688072, 0.1359186, -0.1337558, -0.1033337, 0.8303746, 0.07779368})}});
  expect_op({.op = "ms_quick_gelu",
             .inputs = {f32({2, 3}, {-0.83, 0.23, -0.38, -0.26, 0.99, 0.14})},
             .outputs = {f32(
                 {2, 3}, {-0.1625263, 0.1372258, -0.1306136, -0.1016966, 0.8351272, 0.07830057})}});
}

TEST(Microsoft, NormalizesASum) {
  expect_op(
      {.op = "ms_skip_layer_normalization",
       .attrs = {{"epsilon", 0.01}},
       .inputs = {f32({1, 2, 3}, {-0.83, 0.23, -0.38, -0.26, 0.99, 0.14}),
                  f32({1, 2, 3}, {-0.76, -0.08, 0.09, 0.57, 1, -0.51}),
                  f32({3}, {-0.74, 0.96, -0.68}), f32({3}, {0.8, 0.95, -0.06}),
                  f32({3}, {-0.05, 0.59, -0.22})},
       .outputs = {f32({1, 2, 3}, {1.686026, 2.138736, -0.03216456, 1.069901, 2.257675, 0.6182521}),
                   std::nullopt, std::nullopt,
                   f32({1, 2, 3}, {-1.64, 0.74, -0.51, 0.26, 2.58, -0.59})}});
  expect_op({.op = "ms_skip_simplified_layer_normalization",
             .attrs = {{"epsilon", 0.01}},
             .inputs = {f32({1, 2, 3}, {-0.83, 0.23, -0.38, -0.26, 0.99, 0.14}),
                        f32({1, 2, 3}, {-0.76, -0.08, 0.09, 0.57, 1, -0.51}),
                        f32({3}, {-0.74, 0.96, -0.68})},
             .outputs = {f32({1, 2, 3},
                             {1.248433, 0.1527914, 0.2092394, -0.1933474, 1.610161, 0.2120585})}});
}

TEST(Microsoft, NormalizesASmallSum) {
  // The default epsilon is 1e-12, not that of LayerNormalization.
  expect_op({.op = "ms_skip_layer_normalization",
             .inputs = {f32({1, 1, 2}, {0.0001, 0}), f32({1, 1, 2}, {0.0001, 0}),
                        f32({2}, {1, 1})},
             .outputs = {f32({1, 1, 2}, {0.99995, -0.99995})}});
  expect_op({.op = "ms_skip_simplified_layer_normalization",
             .inputs = {f32({1, 1, 2}, {0.0001, 0.0001}), f32({1, 1, 2}, {0, 0}),
                        f32({2}, {1, 1})},
             .outputs = {f32({1, 1, 2}, {0.99995, 0.99995})}});
}

TEST(Microsoft, DividesByTheRootOfTheMeanSquare) {
  expect_op({.op = "ms_simplified_layer_normalization",
             .attrs = {{"epsilon", 0.01}},
             .inputs = {f32({2, 3}, {-0.83, 0.23, -0.38, -0.26, 0.99, 0.14}),
                        f32({3}, {-0.74, 0.96, -0.68})},
             .outputs = {
                 f32({2, 3}, {1.111413, 0.3995439, 0.4675823, 0.3181288, 1.571464, -0.1574109})}});
}

TEST(Microsoft, MultipliesTransposedMatrices) {
  expect_op({.op = "ms_fused_matmul",
             .attrs = {{"transB", 1}, {"alpha", 0.5}},
             .inputs = {f32({2, 2, 3}, {-0.22, -0.64, 0.33, -0.44, -0.52, 0.1, 0.05, 0.69, 0.64,
                                        0.87, -0.78, -0.89}),
                        f32({2, 3}, {0.5, -0.2, -0.89, 0.06, -0.36, -0.57})},
             .outputs = {f32({2, 2, 2}, {-0.13785, 0.01455, -0.1025, 0.0519, -0.3413, -0.3051,
                                         0.69155, 0.42015})}});
  expect_op({.op = "ms_fused_matmul",
             .attrs = {{"transA", 1}},
             .inputs = {f32({2, 2, 3}, {0.33, 0.47, -0.48, 0.33, -0.55, 0.77, -0.2, -0.05, -0.66,
                                        -0.07, -0.45, 0.57}),
                        f32({2, 2, 2}, {-0.73, 0.07, -0.19, 0.83, 0.31, 0.13, -0.71, -0.79})},
             .outputs = {f32({2, 3, 2}, {-0.3036, 0.297, -0.2386, -0.4236, 0.2041, 0.6055, -0.0123,
                                         0.0293, 0.304, 0.349, -0.6093, -0.5361})}});
  expect_op({.op = "ms_fused_matmul",
             .attrs = {{"transBatchA", 1}, {"transBatchB", 1}, {"transB", 1}},
             .inputs = {f32({2, 3, 2}, {0.21, 0.84, -0.84, -0.16, -0.26, -0.96, 0.25, -0.07, -0.04,
                                        0.66, 0.25, -0.52}),
                        f32({2, 3, 2}, {0.92, 0.85, 0.39, -0.76, 0.27, -1, -0.43, -0.13, -0.08,
                                        0.58, 0.12, 0.3})},
             .outputs = {f32({3, 2, 2}, {0.9072, -0.1995, 0.1705, -0.0984, -0.206, -0.0256, -0.5172,
                                         0.386, 0.8898, -0.3192, 0.5875, -0.126})}});
  expect_op(
      {.op = "ms_fused_matmul",
       .attrs = {{"transBatchA", 1}, {"transBatchB", 1}, {"transA", 1}},
       .inputs = {f32({2, 3, 2},
                      {-0.1, 0.46, -0.63, 0.8, 0.68, 0.83, 0.9, 0.57, -0.42, 0.83, 0.62, -0.06}),
                  f32({2, 3, 2}, {-0.8, 0.95, -0.57, -0.65, 0.11, 0.72, -0.46, -0.58, 0.57, 0.13,
                                  0.14, 0.19})},
       .outputs = {f32({3, 2, 2}, {-0.334, -0.617, -0.6302, 0.1064, 0.1197, 0.3549, 0.01709998,
                                   -0.4121, 0.1616, 0.6074001, 0.0829, 0.5862})}});
}

TEST(Microsoft, AppliesAnActivationToAConvolution) {
  const Tensor x = f32({1, 1, 2, 3}, {1, -2, 3, 0.5, 4, -1});
  const Tensor w = f32({2, 1, 1, 2}, {1, 2, -1, 0.5});
  const Tensor b = f32({2}, {0.5, -0.25});
  const Tensor z = f32({1, 2, 2, 2}, {1, 1, 1, 1, 0, 0, 0, 0});
  expect_op({.op = "ms_fused_conv",
             .attrs = {{"activation", "Relu"}},
             .inputs = {x, w, b},
             .outputs = {f32({1, 2, 2, 2}, {0, 4.5, 9, 2.5, 0, 3.25, 1.25, 0})}});
  expect_op({.op = "ms_fused_conv",
             .attrs = {{"activation", "LeakyRelu"}, {"activation_params", Floats{0.1}}},
             .inputs = {x, w, b, z},
             .outputs = {f32({1, 2, 2, 2}, {-0.15, 5.5, 10, 3.5, -0.225, 3.25, 1.25, -0.475})}});
  expect_op({.op = "ms_fused_conv",
             .attrs = {{"activation", "Clip"}, {"activation_params", Floats{0, 6}}},
             .inputs = {x, w},
             .outputs = {f32({1, 2, 2, 2}, {0, 4, 6, 2, 0, 3.5, 1.5, 0})}});
  expect_op({.op = "ms_fused_conv",
             .inputs = {x, w, std::nullopt, z},
             .outputs = {f32({1, 2, 2, 2}, {-2, 5, 9.5, 3, -2, 3.5, 1.5, -4.5})}});
}

TEST(Microsoft, AppliesAnActivationToAProduct) {
  expect_op(
      {.op = "ms_fused_gemm",
       .attrs = {{"activation", "LeakyRelu"}, {"activation_alpha", 0.5}, {"transB", 1}},
       .inputs = {f32({1, 2}, {1, -2}), f32({3, 2}, {1, 0, 2, 3, -1, -1}), f32({3}, {1, 2, -3})},
       .outputs = {f32({1, 3}, {2, -1, -1})}});
}

TEST(Microsoft, TakesGeluFromAnotherDomain) {
  expect_op({.op = "ms_gelu",
             .inputs = {f32({3}, {-1, 0, 2})},
             .outputs = {f32({3}, {-0.1586553, 0, 1.9544997})}});
}

// What ONNX Runtime answers.
TEST(Microsoft, ComputesWithWhatQuantizedTensorsStandFor) {
  const auto u8 = [](std::vector<std::int64_t> shape, const std::vector<double>& values) {
    return testing::tensor(DType::U8, std::move(shape), values);
  };
  const Tensor a = u8({2, 3}, {10, 200, 128, 0, 255, 77}), b = u8({3}, {5, 90, 255});
  const Tensor ten = u8({}, {10}), middle = u8({}, {128}), zero = u8({}, {0});
  const auto scale = [](double value) { return f32({}, {value}); };
  const double fine = 0.00390625;
  expect_op({.op = "ms_qlinear_add",
             .inputs = {a, scale(0.1), middle, b, scale(0.05), ten, scale(0.125), u8({}, {100})},
             .outputs = {u8({2, 3}, {4, 190, 198, 0, 234, 157})}});
  expect_op({.op = "ms_qlinear_mul",
             .inputs = {a, scale(0.1), middle, b, scale(0.05), ten, scale(0.5), u8({}, {100})},
             .outputs = {u8({2, 3}, {106, 158, 100, 106, 202, 0})}});
  expect_op({.op = "ms_qlinear_leaky_relu",
             .attrs = {{"alpha", 0.2}},
             .inputs = {a, scale(0.1), middle, scale(0.06), u8({}, {30})},
             .outputs = {u8({2, 3}, {0, 150, 30, 0, 242, 13})}});
  expect_op({.op = "ms_qlinear_sigmoid",
             .inputs = {a, scale(0.05), middle, scale(fine), zero},
             .outputs = {u8({2, 3}, {1, 249, 128, 0, 255, 19})}});
  expect_op({.op = "ms_qlinear_softmax",
             .attrs = {{"opset", 13}},
             .inputs = {a, scale(0.02), middle, scale(fine), zero},
             .outputs = {u8({2, 3}, {5, 203, 48, 2, 247, 7})}});
  expect_op({.op = "ms_qlinear_concat",
             .attrs = {{"axis", 1}},
             .inputs = {scale(0.1), ten, a, scale(0.2), middle,
                        u8({2, 3}, {5, 90, 255, 5, 90, 255}), scale(0.05), ten},
             .outputs = {u8({2, 6}, {0, 154, 10, 8, 50, 132, 0, 255, 0, 8, 50, 132})}});
  expect_op({.op = "ms_qgemm",
             .inputs = {a, scale(0.1), middle,
                        testing::tensor(DType::I8, {3, 2}, {1, -3, 7, 120, -128, 5}),
                        f32({2}, {0.01, 0.02}), testing::tensor(DType::I8, {2}, {0, 1}),
                        testing::tensor(DType::I32, {2}, {1000, -50}), scale(0.3), u8({}, {100})},
             .outputs = {u8({2, 2}, {105, 160, 128, 202})}});
  const Tensor weights = testing::tensor(DType::I8, {3, 2}, {1, -3, 7, 120, -128, 5});
  expect_op({.op = "ms_matmul_integer_to_float",
             .inputs = {a, weights, scale(0.1), f32({2}, {0.01, 0.02}), middle,
                        testing::tensor(DType::I8, {2}, {0, 1}), f32({2}, {0.5, -1})},
             .outputs = {f32({2, 2}, {0.886, 17.08, 7.789, 29.842})}});
  expect_op({.op = "ms_matmul_integer_to_float",
             .inputs = {a, weights, scale(0.1), scale(0.01)},
             .outputs = {f32({2, 2}, {-14.974, 24.61, -8.071, 30.985})}});
  const Tensor x = f32({2, 3}, {1, -2, 0.5, 3, 0.25, -1});
  expect_op({.op = "ms_dynamic_quantize_matmul",
             .inputs = {x, weights, f32({2}, {0.01, 0.02}), testing::tensor(DType::I8, {2}, {0, 1}),
                        f32({2}, {0.5, -1})},
             .outputs = {f32({2, 2}, {-0.282549, -5.7992158, 1.827843, -0.71333337})}});
  expect_op({.op = "ms_dynamic_quantize_matmul",
             .inputs = {x, weights, scale(0.01)},
             .outputs = {f32({2, 2}, {-0.782549, -2.4045098, 1.327843, 0.16588235})}});
}

TEST(Microsoft, PoolsWhatQuantizedImagesStandFor) {
  std::vector<double> even;
  for (int i = 0; i < 128; i += 2) even.push_back(i);
  const Tensor x = testing::tensor(DType::U8, {1, 4, 4, 4}, even);
  const Tensor three = testing::tensor(DType::U8, {}, {3}),
               seven = testing::tensor(DType::U8, {}, {7});
  expect_op({.op = "ms_qlinear_global_average_pool",
             .inputs = {x, f32({}, {0.1}), three, f32({}, {0.05}), seven},
             .outputs = {testing::tensor(DType::U8, {1, 4, 1, 1}, {31, 95, 159, 223})}});
  even.resize(16);
  expect_op(
      {.op = "ms_qlinear_average_pool",
       .attrs = {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 0, 0}}, {"strides", Ints{2, 2}}},
       .inputs = {testing::tensor(DType::U8, {1, 1, 4, 4}, even), f32({}, {0.1}), three,
                  f32({}, {0.05}), seven},
       .outputs = {testing::tensor(DType::U8, {1, 1, 2, 2}, {11, 17, 35, 41})}});
  std::vector<double> more;
  for (int i = 0; i < 64; i += 2) more.push_back(i);
  const Tensor last = testing::tensor(DType::U8, {1, 4, 4, 2}, more);
  const Attrs window = {
      {"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 0, 0}}, {"strides", Ints{2, 2}}};
  Attrs with_channels_last = window;
  with_channels_last.set("channels_last", 1);
  expect_op({.op = "ms_qlinear_global_average_pool",
             .attrs = {{"channels_last", 1}},
             .inputs = {last, f32({}, {0.1}), three, f32({}, {0.05}), seven},
             .outputs = {testing::tensor(DType::U8, {1, 1, 1, 2}, {61, 65})}});
  expect_op(
      {.op = "ms_qlinear_average_pool",
       .attrs = with_channels_last,
       .inputs = {last, f32({}, {0.1}), three, f32({}, {0.05}), seven},
       .outputs = {testing::tensor(DType::U8, {1, 2, 2, 2}, {21, 25, 33, 37, 69, 73, 81, 85})}});
  expect_op(
      {.op = "ms_nhwc_max_pool",
       .attrs = window,
       .inputs = {last},
       .outputs = {testing::tensor(DType::U8, {1, 2, 2, 2}, {20, 22, 28, 30, 52, 54, 60, 62})}});
  // The operator of ONNX Runtime has no dilations.
  EXPECT_FALSE(completed(*find_op("ms_qlinear_average_pool"),
                         {{"kernel_shape", Ints{3, 3}}, {"dilations", Ints{2, 2}}}));
}

TEST(Microsoft, ConvolvesQuantizedImagesWhoseChannelsComeLast) {
  std::vector<double> even;
  for (int i = 0; i < 64; i += 2) even.push_back(i);
  const auto scale = [](double value) { return f32({}, {value}); };
  expect_op(
      {.op = "ms_qlinear_conv",
       .attrs = {{"channels_last", 1}, {"pads", Ints{1, 0, 0, 1}}, {"strides", Ints{2, 1}}},
       .inputs = {testing::tensor(DType::U8, {1, 4, 4, 2}, even), scale(0.1),
                  testing::tensor(DType::U8, {}, {3}),
                  testing::tensor(DType::I8, {3, 2, 2, 2},
                                  {1,   -2, 3,  4,   -5, 6, 7,  -8, 2, -4, 6,  8,
                                   -10, 12, 14, -16, -1, 2, -3, -4, 5, -6, -7, 8}),
                  f32({3}, {0.02, 0.01, 0.03}), testing::tensor(DType::I8, {3}, {0, 0, 0}),
                  scale(0.05), testing::tensor(DType::U8, {}, {100}),
                  testing::tensor(DType::I32, {3}, {50, -20, 7})},
       .outputs = {testing::tensor(DType::U8, {1, 2, 4, 3},
                                   {101, 98,  103, 102, 99,  101, 102, 100, 100, 106, 104, 94,
                                    109, 107, 90,  110, 108, 89,  111, 108, 87,  115, 112, 82})}});
}

}  // namespace
}  // namespace tessera
