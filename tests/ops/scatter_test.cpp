#include <gtest/gtest.h>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::try_evaluate;

Attrs reduced(const char* reduction) {
  return {{"reduction", std::string(reduction)}};
}

TEST(ScatterElements, WritesOneElementForEachIndex) {
  const Tensor x = f32({3, 3}, {0, 0, 0, 0, 0, 0, 0, 0, 0});
  const Tensor indices = i64({2, 3}, {1, 0, 2, 0, 2, -2}),
               updates = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_op(
      {"scatter_elements", {}, {x, indices, updates}, {f32({3, 3}, {4, 2, 0, 1, 0, 6, 0, 5, 3})}});
  expect_op({"scatter_elements",
             {{"axis", 1}},
             {f32({1, 5}, {1, 2, 3, 4, 5}), i64({1, 2}, {1, -2}), f32({1, 2}, {10, 20})},
             {f32({1, 5}, {1, 10, 3, 20, 5})}});
}

TEST(ScatterElements, CombinesWithWhatIsThere) {
  const Tensor x = f32({3}, {1, 2, 3}), indices = i64({3}, {1, 1, 0}),
               updates = f32({3}, {5, 0.5, -4});
  expect_op({"scatter_elements", reduced("none"), {x, indices, updates}, {f32({3}, {-4, 0.5, 3})}});
  expect_op({"scatter_elements", reduced("add"), {x, indices, updates}, {f32({3}, {-3, 7.5, 3})}});
  expect_op({"scatter_elements", reduced("mul"), {x, indices, updates}, {f32({3}, {-4, 5, 3})}});
  expect_op({"scatter_elements", reduced("max"), {x, indices, updates}, {f32({3}, {1, 5, 3})}});
  expect_op({"scatter_elements", reduced("min"), {x, indices, updates}, {f32({3}, {-4, 0.5, 3})}});
  expect_op({"scatter_elements",
             reduced("add"),
             {i64({1}, {INT64_MAX}), i64({1}, {0}), i64({1}, {-1})},
             {i64({1}, {INT64_MAX - 1})}});
}

TEST(ScatterNd, WritesSlicesAtPositions) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  expect_op(
      {"scatter_nd", {}, {x, i64({1, 1}, {1}), f32({1, 2}, {8, 9})}, {f32({2, 2}, {1, 2, 8, 9})}});
  expect_op({"scatter_nd",
             {},
             {x, i64({2, 2}, {0, 1, -1, 0}), f32({2}, {8, 9})},
             {f32({2, 2}, {1, 8, 9, 4})}});
  expect_op({"scatter_nd",
             reduced("add"),
             {x, i64({2, 1}, {0, 0}), f32({2, 2}, {1, 1, 1, 1})},
             {f32({2, 2}, {3, 4, 3, 4})}});
  expect_op({"scatter_nd", {}, {x, i64({0, 1}, {}), f32({0, 2}, {})}, {x}});
}

TEST(Scatter, RefusesWhatDoesNotFit) {
  const Tensor x = f32({2}, {1, 2}), zero = i64({1}, {0});
  EXPECT_FALSE(try_evaluate("scatter_elements", {}, {x, i64({1}, {2}), f32({1}, {1})}));
  EXPECT_FALSE(try_evaluate("scatter_elements", {}, {x, zero, i64({1}, {1})}));
  EXPECT_FALSE(try_evaluate("scatter_elements", reduced("sub"), {x, zero, f32({1}, {1})}));
  EXPECT_FALSE(try_evaluate("scatter_elements", {}, {x, i64({2}, {0, 1}), f32({1}, {1})}));
  EXPECT_FALSE(try_evaluate("scatter_nd", {}, {x, i64({1, 2}, {0, 0}), f32({1}, {1})}));
  EXPECT_FALSE(try_evaluate("scatter_nd", {}, {x, i64({1, 1}, {0}), f32({1, 1}, {1})}));
  EXPECT_FALSE(try_evaluate("scatter_nd", {}, {x, i64({1, 1}, {5}), f32({1}, {1})}));
}

TEST(TensorScatter, WritesFromThePositionOfEachBatchOn) {
  const Tensor cache = f32({2, 4, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Tensor update = f32({2, 2, 1}, {10, 11, 12, 13});
  expect_op({.op = "tensor_scatter",
             .inputs = {cache, update},
             .outputs = {f32({2, 4, 1}, {10, 11, 2, 3, 12, 13, 6, 7})}});
  expect_op({.op = "tensor_scatter",
             .inputs = {cache, update, i64({2}, {2, 1})},
             .outputs = {f32({2, 4, 1}, {0, 1, 10, 11, 4, 12, 13, 7})}});
  expect_op({.op = "tensor_scatter",
             .attrs = {{"mode", "circular"}, {"axis", 1}},
             .inputs = {cache, update, i64({2}, {3, 6})},
             .outputs = {f32({2, 4, 1}, {11, 1, 2, 10, 4, 5, 12, 13})}});
}

TEST(TensorScatter, RefusesWhatDoesNotFitTheCache) {
  const Tensor cache = f32({1, 2, 1}, {0, 1}), update = f32({1, 2, 1}, {2, 3});
  EXPECT_FALSE(try_evaluate("tensor_scatter", {}, {cache, update, i64({1}, {1})}));
  EXPECT_FALSE(try_evaluate("tensor_scatter", {}, {cache, f32({1, 3, 1}, {2, 3, 4})}));
  EXPECT_FALSE(try_evaluate("tensor_scatter", {{"axis", 0}}, {cache, update}));
  EXPECT_FALSE(try_evaluate("tensor_scatter", {{"mode", "ring"}}, {cache, update}));
}

}  // namespace
}  // namespace tessera
