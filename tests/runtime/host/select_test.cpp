#include <algorithm>
#include <cmath>
#include <map>

#include "tessera/support/rng.h"
#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

Attrs top(std::int64_t axis, std::int64_t largest = 1) {
  return {{"axis", axis}, {"largest", largest}, {"sorted", std::int64_t{1}}};
}

TEST(TopK, TakesTheLargestAlongAnAxis) {
  const Tensor x = floats({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto out = results_of({"top_k", {x, integers({1}, {3})}, top(-1), 2});
  expect_tensor(out[0], floats({3, 3}, {3, 2, 1, 7, 6, 5, 11, 10, 9}));
  expect_tensor(out[1], integers({3, 3}, {3, 2, 1, 3, 2, 1, 3, 2, 1}));
}

TEST(TopK, TakesTheSmallestAlongAnInnerAxis) {
  const Tensor x = floats({2, 3, 2}, {5, 0, 3, 9, 4, 1, /**/ 7, 7, 8, 6, 6, 5});
  const auto out = results_of({"top_k", {x, integers({1}, {2})}, top(1, 0), 2});
  expect_tensor(out[0], floats({2, 2, 2}, {3, 0, 4, 1, 6, 5, 7, 6}));
  expect_tensor(out[1], integers({2, 2, 2}, {1, 0, 2, 2, 2, 2, 0, 1}));
}

TEST(TopK, PutsTheLowerIndexFirstAmongEquals) {
  const Tensor x = floats({5}, {1, 2, 2, 1, 2});
  EXPECT_EQ(integers_of(results_of({"top_k", {x, scalar(4)}, top(0), 2})[1].tensor()),
            (std::vector<std::int64_t>{1, 2, 4, 0}));
  EXPECT_EQ(integers_of(results_of({"top_k", {x, scalar(4)}, top(0, 0), 2})[1].tensor()),
            (std::vector<std::int64_t>{0, 3, 1, 2}));
}

TEST(TopK, TakesNanForTheLargest) {
  const Tensor x = floats({4}, {kNan, 1, kNan, 3});
  expect_result({"top_k", {x, scalar(3)}, top(0)}, floats({3}, {kNan, kNan, 3}));
  expect_result({"top_k", {x, scalar(3)}, top(0, 0)}, floats({3}, {1, 3, kNan}));
}

TEST(TopK, AgreesWithSortingForEveryDtype) {
  Rng rng(1);
  for (const DType dtype : number_dtypes()) {
    std::vector<double> values(24);
    for (double& value : values) value = static_cast<double>(rng.below(9));
    const Tensor x = numbers(dtype, {4, 6}, values);
    std::vector<double> expected;
    for (std::size_t row = 0; row < 4; ++row) {
      std::vector<double> lane(values.begin() + 6 * static_cast<std::ptrdiff_t>(row),
                               values.begin() + 6 * static_cast<std::ptrdiff_t>(row + 1));
      std::ranges::sort(lane, std::greater<>());
      expected.insert(expected.end(), lane.begin(), lane.begin() + 2);
    }
    expect_result({"top_k", {x, scalar(2)}, top(1)}, numbers(dtype, {4, 2}, expected));
  }
}

TEST(TopK, TellsLargeUnsignedNumbersApart) {
  const std::vector<std::uint64_t> values = {0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF, 1};
  const Tensor x = Tensor::of<std::uint64_t>(DType::U64, {3}, values);
  EXPECT_EQ(integers_of(results_of({"top_k", {x, scalar(3)}, top(0), 2})[1].tensor()),
            (std::vector<std::int64_t>{1, 0, 2}));
}

TEST(TopK, RefusesBadInput) {
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  expect_refused({"top_k", {x, scalar(3)}, top(0), 2}, "k=3 of 2 elements");
  expect_refused({"top_k", {x, scalar(-1)}, top(0), 2}, "k=-1 of 2 elements");
  expect_refused({"top_k", {x, scalar(1)}, top(2), 2}, "axis 2 is out of range");
  expect_refused({"top_k", {floats({}, {1}), scalar(1)}, top(0), 2}, "axis 0 is out of range");
  expect_refused({"top_k", {x, integers({2}, {1, 1})}, top(0), 2}, "input 1 has 2 elements");
  expect_refused({"top_k", {texts({1}, {"a"}), scalar(1)}, top(0), 2}, "input 0 has dtype string");
}

TEST(TopK, OfNoLanesTakesNoTime) {
  const std::int64_t many = std::int64_t{1} << 40;
  expect_result({"top_k", {floats({many, 0}, {}), scalar(0)}, top(1)}, floats({many, 0}, {}));
}

Attrs ordered(std::int64_t sorted) {
  return {{"sorted", sorted}};
}
Attrs ordered(std::int64_t sorted, std::int64_t axis) {
  return {{"sorted", sorted}, {"axis", axis}};
}

TEST(Unique, SortsTheElements) {
  const auto out = results_of({"unique", {floats({2, 3}, {2, 1, 1, 3, 4, 3})}, ordered(1), 4});
  expect_tensor(out[0], floats({4}, {1, 2, 3, 4}));
  expect_tensor(out[1], integers({4}, {1, 0, 3, 4}));
  expect_tensor(out[2], integers({6}, {1, 0, 0, 2, 3, 2}));
  expect_tensor(out[3], integers({4}, {2, 1, 2, 1}));
}

TEST(Unique, KeepsTheOrderOfTheFirstOccurrences) {
  const auto out = results_of({"unique", {floats({6}, {2, 1, 1, 3, 4, 3})}, ordered(0), 4});
  expect_tensor(out[0], floats({4}, {2, 1, 3, 4}));
  expect_tensor(out[1], integers({4}, {0, 1, 3, 4}));
  expect_tensor(out[2], integers({6}, {0, 1, 1, 2, 3, 2}));
  expect_tensor(out[3], integers({4}, {1, 2, 2, 1}));
}

TEST(Unique, ComparesSlicesAlongAnAxis) {
  const Tensor x = floats({2, 4, 2}, {1, 1, 0, 1, 2, 1, 0, 1, 1, 1, 0, 1, 2, 1, 0, 1});
  const auto out = results_of({"unique", {x}, ordered(1, 1), 4});
  expect_tensor(out[0], floats({2, 3, 2}, {0, 1, 1, 1, 2, 1, 0, 1, 1, 1, 2, 1}));
  expect_tensor(out[1], integers({3}, {1, 0, 2}));
  expect_tensor(out[2], integers({4}, {1, 0, 2, 0}));
  expect_tensor(out[3], integers({3}, {2, 1, 1}));
}

TEST(Unique, CountsANegativeAxisFromTheBack) {
  const Tensor x = floats({3, 3}, {1, 0, 0, 1, 0, 0, 2, 3, 3});
  expect_result({"unique", {x}, ordered(1, -1)}, floats({3, 2}, {0, 1, 0, 1, 3, 2}));
}

TEST(Unique, TakesTextsAndTruthValues) {
  expect_result({"unique", {texts({3}, {"b", "a", "b"})}, ordered(1)}, texts({2}, {"a", "b"}));
  expect_result({"unique", {bools({3}, {1, 0, 1})}, ordered(0)}, bools({2}, {1, 0}));
}

TEST(Unique, TakesAllNansForOne) {
  const auto out = results_of({"unique", {floats({3}, {kNan, 1, kNan})}, ordered(1), 4});
  expect_tensor(out[0], floats({2}, {1, kNan}));
  expect_tensor(out[3], integers({2}, {1, 2}));
}

TEST(Unique, AgreesWithAMapForEveryDtype) {
  Rng rng(2);
  for (const DType dtype : number_dtypes()) {
    std::vector<double> values(50);
    for (double& value : values) value = static_cast<double>(rng.below(20));
    std::map<double, double> counts;
    for (const double value : values) ++counts[value];
    std::vector<double> keys;
    std::vector<std::int64_t> times;
    for (const auto& [key, count] : counts) {
      keys.push_back(key);
      times.push_back(static_cast<std::int64_t>(count));
    }
    const auto size = static_cast<std::int64_t>(keys.size());
    const auto out = results_of({"unique", {numbers(dtype, {50}, values)}, ordered(1), 4});
    expect_tensor(out[0], numbers(dtype, {size}, keys));
    expect_tensor(out[3], integers({size}, times));
  }
}

TEST(Unique, OfNothingIsNothing) {
  expect_result({"unique", {floats({0}, {})}, ordered(1)}, floats({0}, {}));
}

TEST(Unique, RefusesBadInput) {
  expect_refused({"unique", {floats({1}, {1})}, ordered(1, 1)}, "axis 1 is out of range");
  const std::int64_t many = std::int64_t{1} << 40;
  expect_too_large({"unique", {floats({many, 0}, {})}, ordered(1, 0)},
                   "1099511627776 elements of 8 bytes");
}

TEST(NonZero, ListsTheCoordinates) {
  expect_result({"non_zero", {floats({2, 2}, {1, 0, 1, 1})}}, integers({2, 3}, {0, 1, 1, 0, 0, 1}));
  expect_result({"non_zero", {texts({3}, {"", "a", ""})}}, integers({1, 1}, {1}));
  expect_result({"non_zero", {floats({2}, {-0.0f, kNan})}}, integers({1, 1}, {1}));
}

TEST(NonZero, OfAScalarHasNoCoordinates) {
  expect_result({"non_zero", {floats({}, {3})}}, integers({0, 1}, {}));
}

TEST(NonZero, WorksForEveryDtype) {
  for (const DType dtype : number_dtypes())
    expect_result({"non_zero", {numbers(dtype, {4}, {0, 1, 0, 5})}}, integers({1, 2}, {1, 3}));
}

TEST(Compress, TakesSlicesAlongAnAxis) {
  const Tensor x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  expect_result({"compress", {x, bools({3}, {0, 1, 1})}, {{"axis", std::int64_t{0}}}},
                floats({2, 2}, {3, 4, 5, 6}));
  expect_result({"compress", {x, bools({2}, {0, 1})}, {{"axis", std::int64_t{-1}}}},
                floats({3, 1}, {2, 4, 6}));
}

TEST(Compress, WithoutAnAxisTakesElements) {
  const Tensor x = texts({3, 2}, {"1", "2", "3", "4", "5", "6"});
  expect_result({"compress", {x, bools({5}, {0, 1, 0, 0, 1})}}, texts({2}, {"2", "5"}));
}

TEST(Compress, RefusesBadInput) {
  const Tensor x = floats({2}, {1, 2});
  expect_refused({"compress", {x, bools({3}, {0, 0, 1})}}, "the condition selects 2 of 2");
  expect_refused({"compress", {x, floats({1}, {1})}}, "the condition is f32[1]");
  expect_refused({"compress", {x, bools({1, 1}, {1})}}, "the condition is bool[1, 1]");
  expect_refused({"compress", {x, bools({1}, {1})}, {{"axis", std::int64_t{-2}}}},
                 "axis -2 is out of range");
}

}  // namespace
}  // namespace tessera::host
