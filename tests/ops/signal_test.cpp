#include <cmath>
#include <complex>
#include <numbers>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::evaluate;
using testing::expect_near;
using testing::expect_op;
using testing::f32;
using testing::i64;
using testing::numbers;
using testing::random_f32;
using testing::try_evaluate;

TEST(Windows, AreSumsOfCosines) {
  const auto expect_window = [](std::string_view op, std::int64_t periodic,
                                const std::vector<double>& expected) {
    expect_op({.op = op,
               .attrs = {{"periodic", periodic}},
               .inputs = {i64({}, {5})},
               .outputs = {f32({5}, expected)}});
  };
  expect_window("hann_window", 0, {0, 0.5, 1, 0.5, 0});
  expect_window("hann_window", 1, {0, 0.3454915, 0.9045085, 0.9045085, 0.3454915});
  expect_window("hamming_window", 0, {0.08695652, 0.5434783, 1, 0.5434783, 0.08695652});
  expect_window("hamming_window", 1, {0.08695652, 0.4024053, 0.9128121, 0.9128121, 0.4024053});
  expect_window("blackman_window", 0, {0, 0.34, 1, 0.34, 0});
  expect_window("blackman_window", 1, {0, 0.2007701, 0.8492299, 0.8492299, 0.2007701});
}

TEST(Dft, AgreesWithItsSum) {
  const Tensor x = random_f32({2, 6, 3, 2}, 1);
  const std::vector<double> parts = numbers(x);
  std::vector<double> expected;
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t k = 0; k < 8; ++k)
      for (std::size_t c = 0; c < 3; ++c) {
        std::complex<double> sum = 0;
        for (std::size_t m = 0; m < 6; ++m) {
          const std::size_t at = ((b * 6 + m) * 3 + c) * 2;
          sum += std::complex(parts[at], parts[at + 1]) *
                 std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k * m) / 8);
        }
        expected.push_back(sum.real());
        expected.push_back(sum.imag());
      }
  expect_op({.op = "dft",
             .inputs = {x, i64({}, {8}), i64({}, {1})},
             .outputs = {f32({2, 8, 3, 2}, expected)}});
}

TEST(Dft, CutsOffTheRedundantHalf) {
  const Tensor x = f32({1, 5, 1}, {1, 2, -1, 3, 0.5});
  expect_op({.op = "dft",
             .inputs = {x},
             .outputs = {f32({1, 5, 2}, {5.5, 0, 0.1545085, 0.9245563, -0.4045085, -4.685904,
                                         -0.4045085, 4.685904, 0.1545085, -0.9245563})}});
  expect_op({.op = "dft",
             .attrs = {{"onesided", 1}},
             .inputs = {x, i64({}, {4})},
             .outputs = {f32({1, 3, 2}, {5, 0, 2, 1, -5, 0})}});
}

TEST(Dft, IsUndoneByItsInverse) {
  const Tensor complex = random_f32({2, 5, 2}, 1), real = random_f32({2, 6, 1}, 2);
  const Tensor there = evaluate("dft", {}, {complex}).at(0);
  expect_near(evaluate("dft", {{"inverse", 1}}, {there}).at(0), complex, 1e-6);
  const Tensor half = evaluate("dft", {{"onesided", 1}}, {real}).at(0);
  expect_near(evaluate("dft", {{"inverse", 1}, {"onesided", 1}}, {half}).at(0), real, 1e-6);
}

TEST(Dft, RefusesWhatDoesNotFit) {
  const auto error = [](const Tensor& x, std::optional<Tensor> axis) {
    const auto result = try_evaluate("dft", {}, {x, std::nullopt, std::move(axis)});
    return result ? "none" : result.error().id;
  };
  EXPECT_EQ(error(f32({1, 3}, {1, 2, 3}), std::nullopt), "op-operands");
  EXPECT_EQ(error(f32({3, 1}, {1, 2, 3}), i64({}, {1})), "op-operands");
  EXPECT_EQ(error(f32({3, 1}, {1, 2, 3}), i64({}, {-3})), "op-operands");
}

TEST(Stft, TransformsWindowedFrames) {
  const Tensor x = f32({1, 6, 1}, {1, 2, 3, 4, 5, 6});
  expect_op(
      {.op = "stft",
       .inputs = {x, i64({}, {2}), f32({4}, {0.5, 1, 1, 0.5})},
       .outputs = {f32({1, 2, 3, 2}, {7.5, 0, -2.5, 0, -0.5, 0, 13.5, 0, -3.5, -1, -0.5, 0})}});
  // Frames of two: their sum and their difference.
  expect_op({.op = "stft",
             .attrs = {{"onesided", 0}},
             .inputs = {x, i64({}, {3}), std::nullopt, i64({}, {2})},
             .outputs = {f32({1, 2, 2, 2}, {3, 0, -1, 0, 9, 0, -1, 0})}});
}

TEST(MelWeightMatrix, HasTriangles) {
  // The corners lie at 0, 1, 3, 6, 10 of the 17 bins: 33 * 700 * (10^(mel/2595) - 1) / 8192, cut
  // off.
  std::vector<double> expected(17 * 3, 0);
  const int corners[] = {0, 1, 3, 6, 10};
  for (std::size_t bin = 0; bin < 3; ++bin)
    for (int s = 0; s < 17; ++s) {
      const int left = corners[bin], centre = corners[bin + 1], right = corners[bin + 2];
      double& weight = expected[static_cast<std::size_t>(s) * 3 + bin];
      if (left <= s && s <= centre) weight = double(s - left) / (centre - left);
      if (centre <= s && s < right) weight = double(right - s) / (right - centre);
    }
  expect_op(
      {.op = "mel_weight_matrix",
       .inputs = {i64({}, {3}), i64({}, {32}), i64({}, {8192}), f32({}, {0}), f32({}, {4096})},
       .outputs = {f32({17, 3}, expected)}});
}

}  // namespace
}  // namespace tessera
