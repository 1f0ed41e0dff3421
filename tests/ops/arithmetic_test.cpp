#include <cmath>

#include <gtest/gtest.h>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::evaluate;
using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::tensor;
using testing::try_evaluate;

TEST(Arithmetic, BroadcastsItsOperands) {
  const Tensor x = f32({2, 2}, {1.5, -2, 0, 7}), y = f32({2}, {2, -0.5});
  expect_op({"add", {}, {x, y}, {f32({2, 2}, {3.5, -2.5, 2, 6.5})}});
  expect_op({"sub", {}, {x, y}, {f32({2, 2}, {-0.5, -1.5, -2, 7.5})}});
  expect_op({"mul", {}, {x, y}, {f32({2, 2}, {3, 1, 0, -3.5})}});
  expect_op({"div", {}, {x, y}, {f32({2, 2}, {0.75, 4, 0, -14})}});
  expect_op({"add",
             {},
             {f32({2, 1}, {1, 2}), f32({1, 3}, {10, 20, 30})},
             {f32({2, 3}, {11, 21, 31, 12, 22, 32})}});
  expect_op({"mul", {}, {f32({}, {3}), f32({0, 2}, {})}, {f32({0, 2}, {})}});
}

TEST(Arithmetic, DividesIntegersTowardsZero) {
  const Tensor x = tensor(DType::I32, {4}, {7, -7, 7, -7}),
               y = tensor(DType::I32, {4}, {2, 2, -2, -2});
  expect_op({"div", {}, {x, y}, {tensor(DType::I32, {4}, {3, -3, -3, 3})}});
  expect_op({"div", {}, {i64({2}, {5, INT64_MIN}), i64({2}, {0, -1})}, {i64({2}, {0, INT64_MIN})}});
}

TEST(Arithmetic, TakesTheRemainderWithEitherSign) {
  const Tensor x = tensor(DType::I32, {4}, {7, -7, 7, -7}),
               y = tensor(DType::I32, {4}, {2, 2, -2, -2});
  expect_op({"mod", {}, {x, y}, {tensor(DType::I32, {4}, {1, 1, -1, -1})}});
  expect_op({"mod", {{"fmod", 1}}, {x, y}, {tensor(DType::I32, {4}, {1, -1, 1, -1})}});
  const Tensor u = f32({6}, {5.5, -5.5, 5.5, -5.5, 3, -1}),
               v = f32({6}, {2, 2, -2, -2, INFINITY, 0.1});
  expect_op({"mod", {{"fmod", 1}}, {u, v}, {f32({6}, {1.5, -1.5, 1.5, -1.5, 3, -0.0999999851})}});
}

TEST(Arithmetic, WrapsIntegers) {
  expect_op({"add",
             {},
             {tensor(DType::U8, {2}, {250, 1}), tensor(DType::U8, {2}, {10, 1})},
             {tensor(DType::U8, {2}, {4, 2})}});
  expect_op({"mul",
             {},
             {tensor(DType::I8, {1}, {100}), tensor(DType::I8, {1}, {2})},
             {tensor(DType::I8, {1}, {-56})}});
  expect_op({"add", {}, {i64({1}, {INT64_MAX}), i64({1}, {1})}, {i64({1}, {INT64_MIN})}});
}

TEST(Arithmetic, KeepsIntegersExactBeyondDouble) {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(integers_of(evaluate("mul", {}, {i64({1}, {big}), i64({1}, {3})})[0])[0], 3 * big);
  EXPECT_EQ(integers_of(evaluate("max", {}, {i64({1}, {big}), i64({1}, {big - 1})})[0])[0], big);
}

TEST(Arithmetic, RaisesToPowersInTheTypeOfTheBase) {
  expect_op({"pow", {}, {f32({3}, {2, 9, -2}), f32({3}, {3, 0.5, 3})}, {f32({3}, {8, 3, -8})}});
  expect_op({"pow", {}, {f32({2}, {2, 3}), i64({}, {2})}, {f32({2}, {4, 9})}});
  expect_op({"pow", {}, {i64({3}, {3, -2, 7}), i64({3}, {4, 3, 0})}, {i64({3}, {81, -8, 1})}});
  expect_op({"pow",
             {},
             {tensor(DType::I32, {2}, {2, 16}), f32({2}, {3, 0.5})},
             {tensor(DType::I32, {2}, {8, 4})}});
}

TEST(Arithmetic, HasSignsAndMagnitudes) {
  const Tensor x = f32({5}, {-1.5, -0.0, 0, 2, NAN});
  expect_op({"neg", {}, {x}, {f32({5}, {1.5, 0, 0, -2, NAN})}});
  expect_op({"abs", {}, {x}, {f32({5}, {1.5, 0, 0, 2, NAN})}});
  expect_op({"sign", {}, {x}, {f32({5}, {-1, 0, 0, 1, NAN})}});
  expect_op({"relu", {}, {x}, {f32({5}, {0, 0, 0, 2, NAN})}});
  expect_op({"sign", {}, {tensor(DType::U64, {2}, {0, 9})}, {tensor(DType::U64, {2}, {0, 1})}});
  expect_op({"abs", {}, {i64({2}, {-3, 3})}, {i64({2}, {3, 3})}});
}

TEST(Arithmetic, TakesAnyNumberOfOperands) {
  const Tensor x = f32({3}, {3, 1, 4}), y = f32({3}, {1, 5, 9}), z = f32({1}, {2});
  expect_op({"max", {}, {x, y, z}, {f32({3}, {3, 5, 9})}});
  expect_op({"min", {}, {x, y, z}, {f32({3}, {1, 1, 2})}});
  expect_op({"sum", {}, {x, y, z}, {f32({3}, {6, 8, 15})}});
  expect_op({"mean", {}, {x, y, z}, {f32({3}, {2, 8 / 3.0, 5})}});
  expect_op({"max", {}, {x}, {x}});
  expect_op({"max", {}, {f32({2}, {NAN, 1}), f32({2}, {1, NAN})}, {f32({2}, {NAN, NAN})}});
}

TEST(Arithmetic, ClipsBetweenTheLimitsThatAreGiven) {
  const Tensor x = f32({4}, {-3, -1, 1, 3}), low = f32({}, {-2}), high = f32({}, {2});
  expect_op({"clip", {}, {x, low, high}, {f32({4}, {-2, -1, 1, 2})}});
  expect_op({"clip", {}, {x, std::nullopt, high}, {f32({4}, {-3, -1, 1, 2})}});
  expect_op({"clip", {}, {x, low}, {f32({4}, {-2, -1, 1, 3})}});
  expect_op({"clip", {}, {x}, {x}});
  expect_op({"clip", {}, {x, high, low}, {f32({4}, {-2, -2, -2, -2})}});
}

TEST(Arithmetic, WorksOnBits) {
  const Tensor x = tensor(DType::U8, {3}, {12, 255, 1}), y = tensor(DType::U8, {3}, {10, 15, 3});
  expect_op({"bitwise_and", {}, {x, y}, {tensor(DType::U8, {3}, {8, 15, 1})}});
  expect_op({"bitwise_or", {}, {x, y}, {tensor(DType::U8, {3}, {14, 255, 3})}});
  expect_op({"bitwise_xor", {}, {x, y}, {tensor(DType::U8, {3}, {6, 240, 2})}});
  expect_op({"bitwise_not", {}, {x}, {tensor(DType::U8, {3}, {243, 0, 254})}});
  expect_op({"bit_shift",
             {{"direction", std::string("LEFT")}},
             {x, y},
             {tensor(DType::U8, {3}, {0, 0, 8})}});
  expect_op({"bit_shift",
             {{"direction", std::string("RIGHT")}},
             {x, tensor(DType::U8, {}, {2})},
             {tensor(DType::U8, {3}, {3, 63, 0})}});
}

TEST(Arithmetic, ShiftsTheSignInByAnyAmount) {
  const Attrs right{{"direction", std::string("RIGHT")}};
  expect_op({"bit_shift",
             right,
             {i64({4}, {-8, -8, -8, 8}), i64({4}, {1, 64, -1, 100})},
             {i64({4}, {-4, -1, -1, 0})}});
}

TEST(Arithmetic, RefusesOperandsOfTypesThatDoNotFit) {
  EXPECT_FALSE(try_evaluate("add", {}, {f32({1}, {1}), i64({1}, {1})}));
  EXPECT_FALSE(try_evaluate("add", {}, {f32({2}, {1, 2}), f32({3}, {1, 2, 3})}));
  EXPECT_FALSE(try_evaluate("bitwise_and", {}, {f32({1}, {1}), f32({1}, {1})}));
  EXPECT_FALSE(
      try_evaluate("sub", {}, {tensor(DType::Bool, {1}, {1}), tensor(DType::Bool, {1}, {1})}));
  EXPECT_FALSE(try_evaluate("clip", {}, {f32({1}, {1}), f32({2}, {0, 1})}));
  EXPECT_FALSE(try_evaluate("bit_shift", {{"direction", std::string("UP")}},
                            {i64({1}, {1}), i64({1}, {1})}));
}

}  // namespace
}  // namespace tessera
