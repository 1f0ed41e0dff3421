#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/evaluate.h"

namespace tessera {
namespace {

using testing::evaluate;
using testing::expect_near;
using testing::f32;
using testing::numbers;
using testing::random_f32;
using testing::try_evaluate;

/// A function of each line of a 2 x 3 x 4 tensor along an axis.
template <class F>
std::vector<double> along(int axis, std::vector<double> x, F f) {
  const int sizes[] = {2, 3, 4}, strides[] = {12, 4, 1};
  for (int start = 0; start < 24; ++start) {
    if (start / strides[axis] % sizes[axis] != 0) continue;
    std::vector<double> line;
    for (int i = 0; i < sizes[axis]; ++i) line.push_back(x[start + i * strides[axis]]);
    f(line);
    for (int i = 0; i < sizes[axis]; ++i) x[start + i * strides[axis]] = line[i];
  }
  return x;
}

double log_sum(const std::vector<double>& line) {
  double sum = 0;
  for (const double x : line) sum += std::exp(x);
  return std::log(sum);
}

TEST(Softmax, IsADistributionAlongAnyAxis) {
  const Tensor x = random_f32({2, 3, 4}, 7);
  for (const int axis : {0, 1, 2}) {
    const auto expected = along(axis, numbers(x), [](std::vector<double>& line) {
      const double total = log_sum(line);
      for (double& v : line) v = std::exp(v - total);
    });
    expect_near(evaluate("softmax", {{"axis", axis}}, {x}).at(0), f32({2, 3, 4}, expected));
    expect_near(evaluate("softmax", {{"axis", axis - 3}}, {x}).at(0), f32({2, 3, 4}, expected));
  }
}

TEST(Softmax, DoesNotOverflow) {
  expect_near(evaluate("softmax", {}, {f32({3}, {10000, 10001, -10000})}).at(0),
              f32({3}, {0.26894142, 0.73105858, 0}));
}

TEST(Softmax, RefusesAnAxisThatIsNotThere) {
  EXPECT_FALSE(try_evaluate("softmax", {{"axis", 2}}, {f32({1, 1}, {1})}));
  EXPECT_FALSE(try_evaluate("softmax", {}, {f32({}, {1})}));
}

TEST(LogSoftmax, IsTheLogarithmAlongAnyAxis) {
  const Tensor x = random_f32({2, 3, 4}, 8);
  for (const int axis : {0, 1, 2}) {
    const auto expected = along(axis, numbers(x), [](std::vector<double>& line) {
      const double total = log_sum(line);
      for (double& v : line) v -= total;
    });
    expect_near(evaluate("log_softmax", {{"axis", axis}}, {x}).at(0), f32({2, 3, 4}, expected));
  }
}

TEST(LogSoftmax, DoesNotOverflow) {
  expect_near(evaluate("log_softmax", {}, {f32({2}, {10000, 10001})}).at(0),
              f32({2}, {-1.3132617, -0.31326169}));
}

TEST(Hardmax, MarksTheFirstMaximum) {
  const Tensor x =
      f32({2, 3, 4}, {3, 1, 3, 0, 2, 2, 1, 1, 0, 5, 4, 5, 0, 0, 0, 0, 1, 2, 3, 4, 4, 3, 2, 1});
  for (const int axis : {0, 1, 2}) {
    const auto expected = along(axis, numbers(x), [](std::vector<double>& line) {
      const auto at = std::max_element(line.begin(), line.end()) - line.begin();
      std::fill(line.begin(), line.end(), 0);
      line[static_cast<std::size_t>(at)] = 1;
    });
    expect_near(evaluate("hardmax", {{"axis", axis}}, {x}).at(0), f32({2, 3, 4}, expected));
  }
}

}  // namespace
}  // namespace tessera
