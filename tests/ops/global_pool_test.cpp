#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;

TEST(GlobalPool, ReducesTheSpatialAxes) {
  expect_op({.op = "global_average_pool",
             .inputs = {f32({2, 2, 2, 2}, {0.47, 0, 0.38, 0.39, -0.99, -0.92, -0.7, -0.57, -0.59,
                                           -0.9, -0.57, 0.2, 0.77, -0.3, -0.27, -0.17})},
             .outputs = {f32({2, 2, 1, 1}, {0.31, -0.795, -0.465, 0.007499989})}});
  expect_op({.op = "global_max_pool",
             .inputs = {f32({2, 2, 2, 2}, {0.47, 0, 0.38, 0.39, -0.99, -0.92, -0.7, -0.57, -0.59,
                                           -0.9, -0.57, 0.2, 0.77, -0.3, -0.27, -0.17})},
             .outputs = {f32({2, 2, 1, 1}, {0.47, -0.57, 0.2, 0.77})}});
  expect_op({.op = "global_lp_pool",  // 100^3 is more than f16 holds
             .attrs = {{"p", 3}},
             .inputs = {testing::tensor(DType::F16, {1, 1, 2}, {100, 0})},
             .outputs = {testing::tensor(DType::F16, {1, 1, 1}, {100})}});
  expect_op({.op = "global_lp_pool",
             .inputs = {f32({2, 2, 2, 2}, {0.47, 0, 0.38, 0.39, -0.99, -0.92, -0.7, -0.57, -0.59,
                                           -0.9, -0.57, 0.2, 0.77, -0.3, -0.27, -0.17})},
             .outputs = {f32({2, 2, 1, 1}, {0.7193052, 1.625238, 1.234099, 0.8858329})}});
  expect_op({.op = "global_lp_pool",
             .attrs = {{"p", 3}},
             .inputs = {f32({2, 2, 2, 2}, {0.47, 0, 0.38, 0.39, -0.99, -0.92, -0.7, -0.57, -0.59,
                                           -0.9, -0.57, 0.2, 0.77, -0.3, -0.27, -0.17})},
             .outputs = {f32({2, 2, 1, 1}, {0.601859, 1.315626, 1.040834, 0.7979787})}});
}

TEST(GlobalPool, KeepsAnImageWithoutSpatialAxes) {
  const Tensor x = f32({1, 2}, {-1, 2});
  expect_op({.op = "global_average_pool", .inputs = {x}, .outputs = {x}});
}

}  // namespace
}  // namespace tessera
