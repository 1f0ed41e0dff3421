#include <algorithm>

#include "tests/triton/launch.h"

namespace tessera::triton {
namespace {

TEST(TritonShape, GathersRows) {
  const auto x = random_floats(8 * 16, 1);
  const auto index = random_integers(4 * 16, 2, 0, 8);
  std::vector<double> expected(64);
  for (std::size_t i = 0; i < 64; ++i)
    expected[i] = x[static_cast<std::size_t>(index[i]) * 16 + i % 16];
  Launch launch("gathered");
  launch.memory(x).memory(index).memory(std::vector<float>(64));
  for (const Memory& after : launch.run({1, 1, 1}))
    expect_near(after.of<float>(2), expected, after.run);
}

TEST(TritonShape, JoinsSplitsTransposesAndConcatenates) {
  const auto x = random_floats(16, 1), y = random_floats(16, 2);
  std::vector<double> expected(64);
  // The pairs (x0, y0), (x1, y1), … turned so that x and y lie one after the other again.
  std::copy(x.begin(), x.end(), expected.begin());
  std::copy(y.begin(), y.end(), expected.begin() + 16);
  std::copy(expected.begin(), expected.begin() + 32, expected.begin() + 32);
  std::sort(expected.begin() + 32, expected.end());
  Launch launch("rearranged");
  launch.memory(x).memory(y).memory(std::vector<float>(64));
  for (const Memory& after : launch.run({1, 1, 1}))
    expect_near(after.of<float>(2), expected, after.run);
}

TEST(TritonShape, DotOfABatch) {
  const auto a = random_floats(2 * 4 * 4, 1), b = random_floats(2 * 4 * 8, 2);
  std::vector<double> expected(2 * 4 * 8);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t batch = i / 32, m = i / 8 % 4, n = i % 8;
    for (std::size_t k = 0; k < 4; ++k)
      expected[i] += double{a[batch * 16 + m * 4 + k]} * b[batch * 32 + k * 8 + n];
  }
  Launch launch("dot_3d");
  launch.memory(a).memory(b).memory(std::vector<float>(64));
  for (const Memory& after : launch.run({1, 1, 1}))
    expect_near(after.of<float>(2), expected, after.run);
}

/// Float8 with 4 bits of exponent and float4, by the tables of the OCP MX specification.
double e4m3_number(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return bits >> 7 != 0 ? -magnitude : magnitude;
}
double e2m1_number(int bits) {
  constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return bits >> 3 != 0 ? -kMagnitudes[bits & 7] : kMagnitudes[bits & 7];
}

TEST(TritonShape, DotOfMicroscalingFormats) {
  Rng rng(1);
  std::vector<std::uint8_t> a(16 * 64), a_scale(16 * 2), b(32 * 16), b_scale(16 * 2);
  for (auto& x : a) {
    do x = static_cast<std::uint8_t>(rng.below(256));
    while ((x & 0x7f) == 0x7f);  // NaN
  }
  for (auto& x : b) x = static_cast<std::uint8_t>(rng.below(256));
  for (auto* scales : {&a_scale, &b_scale})
    for (auto& x : *scales) x = static_cast<std::uint8_t>(120 + rng.below(10));
  std::vector<double> expected(256);
  for (std::size_t m = 0; m < 16; ++m)
    for (std::size_t n = 0; n < 16; ++n)
      for (std::size_t k = 0; k < 64; ++k) {
        const int packed = b[k / 2 * 16 + n];
        expected[m * 16 + n] += e4m3_number(a[m * 64 + k]) *
                                std::ldexp(1, a_scale[m * 2 + k / 32] - 127) *
                                e2m1_number(k % 2 == 0 ? packed & 15 : packed >> 4) *
                                std::ldexp(1, b_scale[n * 2 + k / 32] - 127);
      }
  Launch launch("dot_scaled");
  launch.memory(a).memory(a_scale).memory(b).memory(b_scale).memory(std::vector<float>(256));
  for (const Memory& after : launch.run({1, 1, 1}, 1e-4))
    expect_near(after.of<float>(4), expected, after.run, 1e-4);
}

}  // namespace
}  // namespace tessera::triton
