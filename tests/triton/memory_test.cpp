#include <algorithm>

#include "tests/triton/launch.h"

namespace tessera::triton {
namespace {

TEST(TritonMemory, AtomicsOfIntegersAndFloats) {
  const auto x = random_integers(64, 1, -10, 40);
  const auto y = random_floats(64, 2);
  std::vector<std::int32_t> counts = {1, 0, 0, 0, 0, -100};
  std::vector<float> most = {-9, -9}, least = {9, 9};
  auto expected = counts;
  auto above = most, below = least;
  for (std::size_t i = 0; i < 64; ++i) {
    if (x[i] >= 0) ++expected[static_cast<std::size_t>(x[i] & 3)];
    expected[5] = std::max(expected[5], x[i]);
    above[i & 1] = std::max(above[i & 1], y[i]);
    if (y[i] < 1) below[i & 1] = std::min(below[i & 1], y[i]);
  }
  for (std::size_t block = 0; block < 64; block += 16) {
    std::int32_t sum = 0;
    for (std::size_t i = block; i < block + 16; ++i) sum += x[i];
    expected[4] ^= sum;
  }
  Launch launch("atomics");
  launch.memory(x).memory(y).memory(counts).memory(most).memory(least);
  for (const Memory& after : launch.run({4, 1, 1})) {
    EXPECT_EQ(after.of<std::int32_t>(2), expected) << after.run;
    EXPECT_EQ(after.of<float>(3), above) << after.run;
    EXPECT_EQ(after.of<float>(4), below) << after.run;
  }
}

TEST(TritonMemory, ALockOrdersPrograms) {
  constexpr std::size_t kPrograms = 50;
  const auto x = random_floats(kPrograms * 8, 1);
  std::vector<double> expected(8);
  for (std::size_t i = 0; i < x.size(); ++i) expected[i % 8] += x[i];
  Launch launch("spin_lock");
  launch.memory(std::vector<std::int32_t>(1)).memory(x).memory(std::vector<float>(8));
  for (const Memory& after : launch.run({kPrograms, 1, 1})) {
    EXPECT_EQ(after.of<std::int32_t>(0)[0], 0) << after.run;
    expect_near(after.of<float>(2), expected, after.run);
  }
}

TEST(TritonMemory, PointersThatAreLoadedFromMemory) {
  // The rows lie behind the scale, in the memory of the last argument.
  auto rows = random_floats(1 + 3 * 16, 1);
  rows[0] = 2;
  const std::vector<std::int32_t> sizes = {16, 0, 5};
  std::vector<double> expected(rows.begin(), rows.end());
  for (std::size_t row = 0; row < 3; ++row)
    for (int i = 0; i < sizes[row]; ++i) expected[1 + row * 16 + static_cast<std::size_t>(i)] *= 2;
  Launch launch("pointers_in_memory");
  launch.memory(std::vector<std::int64_t>(3)).memory(sizes).memory(rows);
  launch.before([](std::span<tile::Argument> arguments) {
    for (std::size_t row = 0; row < 3; ++row) {
      const auto address =
          reinterpret_cast<std::int64_t>(arguments[2].data + sizeof(float) * (1 + row * 16));
      std::memcpy(arguments[0].data + row * sizeof address, &address, sizeof address);
    }
  });
  for (const Memory& after : launch.run({3, 1, 1}))
    expect_near(after.of<float>(2), expected, after.run);
}

TEST(TritonMemory, DescriptorsStopAtTheirBounds) {
  constexpr std::size_t kRows = 13, kCols = 20;
  const auto x = random_floats(kRows * kCols, 1);
  std::vector<double> expected(kRows * kCols + 16, 5);
  for (std::size_t i = 0; i < kRows * kCols; ++i) expected[i] = x[i] * 2;
  Launch launch("descriptors");
  launch.memory(x).memory(std::vector<float>(kRows * kCols + 16, 5)).numbers(kRows, kCols);
  for (const Memory& after : launch.run({2, 2, 1}))
    expect_near(after.of<float>(1), expected, after.run);
}

}  // namespace
}  // namespace tessera::triton
