#include <gtest/gtest.h>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::try_evaluate;

TEST(Concat, JoinsAlongAnAxis) {
  const Tensor x = f32({2, 3}, {0, 1, 2, 3, 4, 5}), y = f32({2, 2}, {-0, -1, -2, -3});
  expect_op({"concat",
             {{"axis", 1}},
             {x, y, x},
             {f32({2, 8}, {0, 1, 2, -0, -1, 0, 1, 2, 3, 4, 5, -2, -3, 3, 4, 5})}});
  expect_op(
      {"concat", {{"axis", -2}}, {x, x}, {f32({4, 3}, {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5})}});
  expect_op({"concat", {{"axis", 0}}, {x}, {x}});
  expect_op({"concat",
             {{"axis", 0}},
             {i64({1}, {INT64_MAX}), i64({0}, {}), i64({1}, {7})},
             {i64({2}, {INT64_MAX, 7})}});
}

TEST(Concat, JoinsManyOfAnySize) {
  // Blocks of positions end in the middle of a part, and hold several.
  constexpr std::int64_t kOuter = 40, kInner = 7;
  std::vector<std::optional<Tensor>> parts;
  std::vector<std::int64_t> all;
  std::int64_t whole = 0;
  for (std::int64_t p = 0; p < 9; ++p) whole += p * 5 % 13;
  all.resize(static_cast<std::size_t>(kOuter * whole * kInner));
  std::int64_t begin = 0;
  for (std::int64_t p = 0; p < 9; ++p) {
    const std::int64_t size = p * 5 % 13;
    std::vector<std::int64_t> numbers;
    for (std::int64_t o = 0; o < kOuter; ++o)
      for (std::int64_t j = 0; j < size * kInner; ++j) {
        numbers.push_back(1000 * p + static_cast<std::int64_t>(numbers.size()));
        all[static_cast<std::size_t>((o * whole + begin) * kInner + j)] = numbers.back();
      }
    parts.push_back(i64({kOuter, size, kInner}, numbers));
    begin += size;
  }
  expect_op({"concat", {{"axis", 1}}, parts, {i64({kOuter, whole, kInner}, all)}});
}

TEST(Concat, RefusesInputsThatDoNotFit) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_FALSE(try_evaluate("concat", {{"axis", 0}}, {x, f32({1, 2}, {1, 2})}));
  EXPECT_FALSE(try_evaluate("concat", {{"axis", 0}}, {x, f32({2}, {1, 2})}));
  EXPECT_FALSE(try_evaluate("concat", {{"axis", 2}}, {x, x}));
  EXPECT_FALSE(try_evaluate("concat", {{"axis", 0}}, {f32({}, {1}), f32({}, {1})}));
}

TEST(Split, CutsIntoParts) {
  const Tensor x = f32({5}, {1, 2, 3, 4, 5});
  expect_op({"split",
             {},
             {x, i64({3}, {1, 0, 4})},
             {f32({1}, {1}), f32({0}, {}), f32({4}, {2, 3, 4, 5})}});
  expect_op({"split", {{"num_outputs", 2}}, {x}, {f32({3}, {1, 2, 3}), f32({2}, {4, 5})}});
  expect_op({"split",
             {{"axis", -1}, {"num_outputs", 2}},
             {f32({2, 2}, {1, 2, 3, 4})},
             {f32({2, 1}, {1, 3}), f32({2, 1}, {2, 4})}});
}

TEST(Split, RefusesSizesThatDoNotAddUp) {
  const Tensor x = f32({5}, {1, 2, 3, 4, 5});
  EXPECT_FALSE(try_evaluate("split", {}, {x, i64({2}, {1, 3})}));
  EXPECT_FALSE(try_evaluate("split", {}, {x, i64({2}, {-1, 6})}));
  EXPECT_FALSE(try_evaluate("split", {}, {x}));
  EXPECT_FALSE(try_evaluate("split", {{"num_outputs", 0}}, {x}));
  EXPECT_FALSE(try_evaluate("split", {{"num_outputs", INT64_MAX}}, {x}));
}

}  // namespace
}  // namespace tessera
