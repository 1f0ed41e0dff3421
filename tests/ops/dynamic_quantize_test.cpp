#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::tensor;

TEST(DynamicQuantizeLinear, CoversTheRangeOfTheDataAndZero) {
  expect_op({.op = "dynamic_quantize_linear",
             .inputs = {f32({6}, {0, 2, -3, -2.5, 1.34, 0.5})},
             .outputs = {tensor(DType::U8, {6}, {153, 255, 0, 26, 221, 179}), f32({}, {0.01960784}),
                         tensor(DType::U8, {}, {153})}});
  expect_op({.op = "dynamic_quantize_linear",
             .inputs = {f32({2, 2}, {1, 2.1, 1.3, 2.5})},
             .outputs = {tensor(DType::U8, {2, 2}, {102, 214, 133, 255}), f32({}, {0.009803922}),
                         tensor(DType::U8, {}, {0})}});
  expect_op({.op = "dynamic_quantize_linear",
             .inputs = {f32({3}, {-1, -2.1, -4})},
             .outputs = {tensor(DType::U8, {3}, {191, 121, 0}), f32({}, {0.01568628}),
                         tensor(DType::U8, {}, {255})}});
}

TEST(DynamicQuantizeLinear, TakesAllZeros) {
  expect_op(
      {.op = "dynamic_quantize_linear",
       .inputs = {f32({2}, {0, 0})},
       .outputs = {tensor(DType::U8, {2}, {0, 0}), std::nullopt, tensor(DType::U8, {}, {0})}});
}

}  // namespace
}  // namespace tessera
