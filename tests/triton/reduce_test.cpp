#include <algorithm>
#include <numeric>

#include "tests/triton/launch.h"

namespace tessera::triton {
namespace {

TEST(TritonReduce, ArgMaxAndArgMinTakeTheFirstOfEqualOnes) {
  auto x = random_floats(8 * 32, 1);
  for (float& v : x) v = std::round(v * 2);  // many are equal
  std::vector<std::int32_t> most, least;
  for (std::size_t row = 0; row < 8; ++row) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(row * 32), last = first + 32;
    most.push_back(static_cast<std::int32_t>(std::max_element(first, last) - first));
    least.push_back(static_cast<std::int32_t>(std::min_element(first, last) - first));
  }
  Launch launch("arg_reduce");
  launch.memory(x).memory(std::vector<std::int32_t>(8)).memory(std::vector<std::int32_t>(8));
  for (const Memory& after : launch.run({1, 1, 1})) {
    EXPECT_EQ(after.of<std::int32_t>(1), most) << after.run;
    EXPECT_EQ(after.of<std::int32_t>(2), least) << after.run;
  }
}

TEST(TritonReduce, WelfordIsMeanAndVariance) {
  for (const std::size_t cols : {32, 20, 1}) {
    const auto x = random_floats(4 * cols, 1);
    std::vector<double> means, variances;
    for (std::size_t row = 0; row < 4; ++row) {
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < cols; ++i) sum += x[row * cols + i];
      const double mean = sum / static_cast<double>(cols);
      for (std::size_t i = 0; i < cols; ++i) squares += std::pow(x[row * cols + i] - mean, 2);
      means.push_back(mean);
      variances.push_back(squares / static_cast<double>(cols));
    }
    Launch launch("welford");
    launch.memory(x).memory(std::vector<float>(4)).memory(std::vector<float>(4)).numbers(cols);
    for (const Memory& after : launch.run({1, 1, 1})) {
      expect_near(after.of<float>(1), means, after.run);
      expect_near(after.of<float>(2), variances, after.run);
    }
  }
}

TEST(TritonReduce, ScansForwardBackwardAndByARegion) {
  const auto a = random_floats(64, 1), x = random_floats(64, 2);
  std::vector<double> sums(64), reversed(64), recurrence(64);
  for (std::size_t row = 0; row < 4; ++row) {
    double sum = 0, y = 0;
    for (std::size_t i = row * 16; i < row * 16 + 16; ++i) {
      sums[i] = sum += x[i];
      recurrence[i] = y = y * a[i] + x[i];
      for (std::size_t below = i; below < 64; below += 16) reversed[i] += x[below];
    }
  }
  Launch launch("scans");
  launch.memory(a).memory(x);
  for (int i = 0; i < 3; ++i) launch.memory(std::vector<float>(64));
  for (const Memory& after : launch.run({1, 1, 1}, 1e-4)) {
    expect_near(after.of<float>(2), sums, after.run);
    expect_near(after.of<float>(3), reversed, after.run);
    expect_near(after.of<float>(4), recurrence, after.run, 1e-4);
  }
}

TEST(TritonReduce, HistogramCountsWhatItsMaskAllows) {
  const auto x = random_integers(64, 1, -2, 12);  // some are in no bin
  for (const int n : {64, 50, 0}) {
    std::vector<std::int32_t> expected(8);
    for (int i = 0; i < n; ++i) {
      const auto bin = x[static_cast<std::size_t>(i)];
      if (bin >= 0 && bin < 8) ++expected[static_cast<std::size_t>(bin)];
    }
    Launch launch("histogram");
    launch.memory(x).memory(std::vector<std::int32_t>(8)).numbers(n);
    for (const Memory& after : launch.run({1, 1, 1}))
      EXPECT_EQ(after.of<std::int32_t>(1), expected) << after.run;
  }
}

TEST(TritonReduce, FoldsOfIntegers) {
  const auto x = random_integers(64, 1, -1000, 2000);
  std::vector<std::int32_t> expected(49);
  for (std::size_t i = 0; i < 16; ++i) {
    std::int32_t least = x[i];
    std::uint32_t most = 0, bits = 0;
    for (std::size_t at = i; at < 64; at += 16) {
      least = std::min(least, x[at]);
      most = std::max(most, static_cast<std::uint32_t>(x[at]));
      bits ^= static_cast<std::uint32_t>(x[at]);
    }
    expected[i] = least;
    expected[16 + i] = static_cast<std::int32_t>(most);
    expected[32 + i] = static_cast<std::int32_t>(bits);
  }
  expected[48] = std::accumulate(x.begin(), x.end(), 0);
  Launch launch("folds");
  launch.memory(x).memory(std::vector<std::int32_t>(49));
  for (const Memory& after : launch.run({1, 1, 1}))
    EXPECT_EQ(after.of<std::int32_t>(1), expected) << after.run;
}

TEST(TritonReduce, SortsDescending) {
  const auto x = random_integers(32, 1, -9, 20);
  auto expected = x;
  std::sort(expected.rbegin(), expected.rend());
  Launch launch("sort");
  launch.memory(x).memory(std::vector<std::int32_t>(32));
  for (const Memory& after : launch.run({1, 1, 1}))
    EXPECT_EQ(after.of<std::int32_t>(1), expected) << after.run;
}

}  // namespace
}  // namespace tessera::triton
