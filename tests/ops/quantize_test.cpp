#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::tensor;
using testing::try_evaluate;

TEST(QuantizeLinear, RoundsToEvenAndSaturates) {
  const Tensor x = f32({8}, {0, 2, 3, 5, -1000, 1000, 0.5, 1.5});
  expect_op({.op = "quantize_linear",
             .inputs = {x, f32({}, {2}), tensor(DType::U8, {}, {128})},
             .outputs = {tensor(DType::U8, {8}, {128, 129, 130, 130, 0, 255, 128, 129})}});
  expect_op({.op = "quantize_linear",
             .attrs = {{"output_dtype", "i8"}},
             .inputs = {x, f32({1}, {1})},
             .outputs = {tensor(DType::I8, {8}, {0, 2, 3, 5, -128, 127, 0, 2})}});
  expect_op({.op = "quantize_linear",
             .inputs = {x, f32({}, {1})},
             .outputs = {tensor(DType::U8, {8}, {0, 2, 3, 5, 0, 255, 0, 2})}});
}

TEST(QuantizeLinear, DividesInThePrecisionOfTheScale) {
  // In double 0.35f / 0.1f is less than 3.5, as a float it is 3.5.
  expect_op({.op = "quantize_linear",
             .inputs = {f32({1}, {0.35}), f32({}, {0.1})},
             .outputs = {tensor(DType::U8, {1}, {4})}});
}

TEST(QuantizeLinear, HasAScalePerIndexOrPerBlock) {
  expect_op({.op = "quantize_linear",
             .inputs = {f32({1, 3, 3, 2}, {-162, 10, -100, 232, -20, -50, -76, 0, 0, 252, 32, -44,
                                           245, -485, -960, -270, -375, -470}),
                        f32({3}, {2, 4, 5}), tensor(DType::U8, {3}, {84, 24, 196})},
             .outputs = {tensor(
                 DType::U8, {1, 3, 3, 2},
                 {3, 89, 34, 200, 74, 59, 5, 24, 24, 87, 32, 13, 245, 99, 4, 142, 121, 102})}});
  expect_op({.op = "quantize_linear",
             .attrs = {{"axis", 1}, {"block_size", 2}, {"output_dtype", "i16"}},
             .inputs = {f32({3, 4}, {6, 12, 50, 5, 1, 8, 4, 5, 0, 20, 10, 4}),
                        f32({3, 2}, {1.5, 2.5, 3, 4.9, 5.1, 6.9})},
             .outputs = {tensor(DType::I16, {3, 4}, {4, 8, 20, 2, 0, 3, 1, 1, 0, 4, 1, 1})}});
}

TEST(QuantizeLinear, RefusesWhatDoesNotFit) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  const auto error = [&](const Attrs& attrs, const Tensor& scale, std::optional<Tensor> zero) {
    const auto result = try_evaluate("quantize_linear", attrs, {x, scale, std::move(zero)});
    return result ? "none" : result.error().id;
  };
  EXPECT_EQ(error({}, f32({1, 2}, {1, 2}), std::nullopt), "op-operands");
  EXPECT_EQ(error({{"axis", 5}}, f32({2}, {1, 2}), std::nullopt), "op-operands");
  EXPECT_EQ(error({}, f32({3}, {1, 2, 3}), std::nullopt), "shape-mismatch");
  EXPECT_EQ(error({{"block_size", -1}}, f32({}, {1}), std::nullopt), "op-operands");
  EXPECT_EQ(error({{"output_dtype", "f8"}}, f32({}, {1}), std::nullopt), "op-operands");
  EXPECT_EQ(error({{"output_dtype", "i8"}}, f32({}, {1}), tensor(DType::U8, {}, {1})),
            "op-operands");
  EXPECT_EQ(error({{"output_dtype", "f8e8m0"}}, f32({}, {1}), std::nullopt), "op-operands");
  EXPECT_EQ(error({{"output_dtype", "i4"}}, f32({}, {1}), tensor(DType::U4, {}, {1})),
            "op-operands");
}

TEST(QuantizeLinear, TakesPowersOfTwoAsScales) {
  const Tensor x = f32({2, 4}, {1, 2, 3, 4, -5, 6, 7, 100});
  const Tensor scale = tensor(DType::F8E8M0, {2, 2}, {0.5, 2, 1, 16});
  const Tensor y = tensor(DType::F4E2M1, {2, 4}, {2, 4, 1.5, 2, -4, 6, 0.5, 6});
  expect_op({.op = "quantize_linear",
             .attrs = {{"block_size", 2}, {"output_dtype", "f4e2m1"}},
             .inputs = {x, scale},
             .outputs = {y}});
  expect_op({.op = "dequantize_linear",
             .attrs = {{"block_size", 2}, {"output_dtype", "f32"}},
             .inputs = {y, scale},
             .outputs = {f32({2, 4}, {1, 2, 3, 4, -4, 6, 8, 96})}});
  EXPECT_FALSE(try_evaluate("dequantize_linear", {{"block_size", 2}}, {y, scale}));
}

TEST(DequantizeLinear, ScalesWhatIsLeftOfTheZeroPoint) {
  expect_op({.op = "dequantize_linear",
             .inputs = {tensor(DType::I16, {2, 2}, {-3, 100, 7, -32768}), f32({2}, {0.5, 2}),
                        tensor(DType::I16, {2}, {1, -2})},
             .outputs = {f32({2, 2}, {-2, 204, 3, -65532})}});
  expect_op({.op = "dequantize_linear",
             .inputs = {tensor(DType::I32, {2}, {-2147483648.0, 5}), f32({}, {2})},
             .outputs = {f32({2}, {-4294967296.0, 10})}});
  expect_op({.op = "dequantize_linear",
             .attrs = {{"axis", 0}, {"block_size", 2}},
             .inputs = {tensor(DType::U8, {3, 1}, {1, 2, 3}), f32({2, 1}, {10, 100}),
                        tensor(DType::U8, {2, 1}, {0, 1})},
             .outputs = {f32({3, 1}, {10, 20, 200})}});
}

TEST(MatmulInteger, SubtractsTheZeroPoints) {
  const std::vector<double> a = {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0}, b = {1, 4, 2, 5, 3, 6};
  expect_op({.op = "matmul_integer",
             .inputs = {tensor(DType::U8, {4, 3}, a), tensor(DType::U8, {3, 2}, b),
                        tensor(DType::U8, {}, {12}), tensor(DType::U8, {}, {0})},
             .outputs = {tensor(DType::I32, {4, 2}, {-38, -83, -44, -98, -50, -113, -56, -128})}});
  expect_op(
      {.op = "matmul_integer",
       .inputs = {tensor(DType::U8, {4, 3}, a), tensor(DType::I8, {3, 2}, b),
                  tensor(DType::U8, {1}, {12}), tensor(DType::I8, {2}, {1, -2})},
       .outputs = {tensor(DType::I32, {4, 2}, {-23, -113, -26, -134, -29, -155, -32, -176})}});
  // One zero point per row: (11 - 1) + (7 - 1) + (3 - 1) = 18, …
  expect_op({.op = "matmul_integer",
             .inputs = {tensor(DType::U8, {2, 3}, {11, 7, 3, 10, 6, 2}),
                        tensor(DType::U8, {3, 1}, {1, 1, 1}), tensor(DType::U8, {2}, {1, 2})},
             .outputs = {tensor(DType::I32, {2, 1}, {18, 12})}});
}

TEST(QlinearMatmul, QuantizesItsSums) {
  expect_op({.op = "qlinear_matmul",
             .inputs = {tensor(DType::U8, {2, 4}, {208, 236, 0, 238, 3, 214, 255, 29}),
                        f32({}, {0.0066}), tensor(DType::U8, {}, {113}),
                        tensor(DType::U8, {4, 3},
                               {152, 51, 244, 60, 26, 255, 0, 127, 246, 127, 254, 247}),
                        f32({}, {0.00705}), tensor(DType::U8, {}, {114}), f32({}, {0.0107}),
                        tensor(DType::U8, {}, {118})},
             .outputs = {tensor(DType::U8, {2, 3}, {168, 115, 255, 1, 66, 151})}});
}

}  // namespace
}  // namespace tessera
