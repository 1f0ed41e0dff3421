#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/ops/catalog.h"
#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::try_evaluate;

struct SliceCase {
  std::int64_t start, end, step;
};

TEST(Slice, FollowsTheRulesOfPythonOnOneAxis) {
  const std::vector<double> elements = {0, 1, 2, 3, 4};
  const SliceCase cases[] = {{0, 5, 1},           {1, 4, 2},
                             {-3, -1, 1},         {-100, 100, 3},
                             {3, 1, 1},           {0, INT64_MAX, 1},
                             {2, INT64_MAX, 1},   {4, 0, -1},
                             {-1, INT64_MIN, -1}, {INT64_MAX, INT64_MIN, -2},
                             {-1, -4, -1},        {1, 3, -1},
                             {5, 5, 1},           {3, -100, -3}};
  for (const SliceCase& c : cases) {
    SCOPED_TRACE(fmt::format("{}:{}:{}", c.start, c.end, c.step));
    const std::int64_t n = 5, low = c.step > 0 ? 0 : -1, high = c.step > 0 ? n : n - 1;
    const auto place = [&](std::int64_t at) { return std::clamp(at < 0 ? at + n : at, low, high); };
    std::vector<double> expected;
    for (std::int64_t i = place(c.start); c.step > 0 ? i < place(c.end) : i > place(c.end);
         i += c.step)
      expected.push_back(elements[static_cast<std::size_t>(i)]);
    expect_op({"slice",
               {},
               {f32({5}, elements), i64({1}, {c.start}), i64({1}, {c.end}), std::nullopt,
                i64({1}, {c.step})},
               {f32({static_cast<std::int64_t>(expected.size())}, expected)}});
  }
}

TEST(Slice, TakesOneElementByAStepLongerThanTheAxis) {
  const Tensor x = f32({3}, {1, 2, 3}), axis = i64({1}, {0});
  for (const std::int64_t step : {INT64_MAX, std::int64_t{4}})
    expect_op(
        {"slice", {}, {x, i64({1}, {1}), i64({1}, {3}), axis, i64({1}, {step})}, {f32({1}, {2})}});
  for (const std::int64_t step : {INT64_MIN, std::int64_t{-4}})
    expect_op(
        {"slice", {}, {x, i64({1}, {1}), i64({1}, {-9}), axis, i64({1}, {step})}, {f32({1}, {2})}});
}

TEST(Slice, CutsSeveralAxes) {
  const Tensor x = f32({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  expect_op({"slice", {}, {x, i64({2}, {1, 0}), i64({2}, {3, 2})}, {f32({2, 2}, {4, 5, 8, 9})}});
  expect_op({"slice",
             {},
             {x, i64({2}, {-1, 0}), i64({2}, {-100, 3}), i64({2}, {-1, 0}), i64({2}, {-2, 2})},
             {f32({2, 2}, {3, 1, 11, 9})}});
  expect_op({"slice",
             {},
             {f32({0}, {}), i64({1}, {-1}), i64({1}, {INT64_MIN}), i64({1}, {0}), i64({1}, {-1})},
             {f32({0}, {})}});
}

TEST(Slice, RefusesStepsAndAxesThatMakeNoSense) {
  const Tensor x = f32({2}, {1, 2}), one = i64({1}, {1});
  EXPECT_FALSE(try_evaluate("slice", {}, {x, one, one, i64({1}, {0}), i64({1}, {0})}));
  EXPECT_FALSE(try_evaluate("slice", {}, {x, one, one, one}));
  EXPECT_FALSE(try_evaluate("slice", {}, {x, one, i64({2}, {1, 1})}));
  EXPECT_FALSE(
      try_evaluate("slice", {}, {x, i64({2}, {0, 0}), i64({2}, {1, 1}), i64({2}, {0, 0})}));
}

/// The size of a slice of an axis of symbolic size.
std::string sliced(const Dim& size, const Dim& start, const Dim& end, std::int64_t step) {
  const auto list = [](const Dim& value) {
    return Argument{.type = {DType::I64, {1}}, .value = std::vector<Dim>{value}};
  };
  const auto definition = find_op("slice")->define(
      {}, {{.type = {DType::F32, {size}}}, list(start), list(end), list(0), list(step)});
  return definition ? definition->outputs[0].shape()[0].to_string() : "?";
}

TEST(Slice, KnowsSymbolicSizes) {
  const Dim n = Dim::symbol("n");
  EXPECT_EQ(sliced(n, 0, INT64_MAX, 1), "n");
  EXPECT_EQ(sliced(n, -1, INT64_MIN, -1), "n");
  EXPECT_EQ(sliced(n, 0, n, 1), "n");
  EXPECT_EQ(sliced(n * 2, 0, INT64_MAX, 2), "n");
  EXPECT_EQ(sliced(n, 0, 3, 1), "min(3, n)");
  EXPECT_EQ(sliced(n + 4, 0, n, 1), "n");
}

TEST(UpdateSlice, ReplacesABoxAndIgnoresWhatLiesOutside) {
  struct Case {
    std::int64_t rows, columns, top, left;
  };
  constexpr std::int64_t m = 4, n = 5;
  for (const Case& c : {Case{2, 3, 1, 1}, Case{1, 5, 3, 0}, Case{4, 5, 0, 0}, Case{2, 2, -1, 4},
                        Case{6, 1, -1, 2}, Case{1, 1, 9, 9}, Case{0, 2, 1, 1}}) {
    SCOPED_TRACE(fmt::format("{} x {} at {}, {}", c.rows, c.columns, c.top, c.left));
    std::vector<double> x, update, expected;
    for (std::int64_t i = 0; i < m * n; ++i) x.push_back(static_cast<double>(i));
    for (std::int64_t i = 0; i < c.rows * c.columns; ++i)
      update.push_back(static_cast<double>(100 + i));
    expected = x;
    for (std::int64_t i = 0; i < c.rows; ++i)
      for (std::int64_t k = 0; k < c.columns; ++k) {
        const std::int64_t row = c.top + i, column = c.left + k;
        if (row >= 0 && row < m && column >= 0 && column < n)
          expected[static_cast<std::size_t>(row * n + column)] =
              update[static_cast<std::size_t>(i * c.columns + k)];
      }
    expect_op({"update_slice",
               {},
               {f32({m, n}, x), f32({c.rows, c.columns}, update), i64({2}, {c.top, c.left})},
               {f32({m, n}, expected)}});
  }
}

TEST(UpdateSlice, NeedsAPositionForEachAxis) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  EXPECT_FALSE(try_evaluate("update_slice", {}, {x, f32({1}, {5}), i64({1}, {0})}));
  EXPECT_FALSE(try_evaluate("update_slice", {}, {x, f32({1, 1}, {5}), i64({1}, {0})}));
  EXPECT_FALSE(try_evaluate("update_slice", {}, {x, i64({1, 1}, {5}), i64({2}, {0, 0})}));
}

TEST(ReverseSequence, ReversesTheBeginningOfEachSequence) {
  expect_op({"reverse_sequence",
             {},
             {f32({4, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}),
              i64({4}, {4, 3, 2, 1})},
             {f32({4, 4}, {12, 9, 6, 3, 8, 5, 2, 7, 4, 1, 10, 11, 0, 13, 14, 15})}});
  expect_op({"reverse_sequence",
             {{"batch_axis", 0}, {"time_axis", 1}},
             {f32({4, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}),
              i64({4}, {1, 2, 3, 4})},
             {f32({4, 4}, {0, 1, 2, 3, 5, 4, 6, 7, 10, 9, 8, 11, 15, 14, 13, 12})}});
  EXPECT_FALSE(try_evaluate("reverse_sequence", {{"batch_axis", 0}},
                            {f32({4, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}),
                             i64({4}, {1, 2, 3, 4})}));
  EXPECT_FALSE(try_evaluate("reverse_sequence", {},
                            {f32({4, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}),
                             i64({4}, {9, 2, 3, 4})}));
}

}  // namespace
}  // namespace tessera
