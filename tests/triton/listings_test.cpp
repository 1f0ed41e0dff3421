#include "tests/triton/launch.h"

namespace tessera::triton {
namespace {

TEST(TritonListings, MaskedAddLeavesTheRestAlone) {
  const auto x = random_floats(128, 1), y = random_floats(128, 2), out = random_floats(128, 3);
  for (const std::size_t n : {100, 64, 1, 0, 128}) {
    std::vector<double> expected(out.begin(), out.end());
    for (std::size_t i = 0; i < n; ++i) expected[i] = x[i] + y[i];
    Launch launch("masked_add");
    launch.memory(x).memory(y).memory(out).numbers(n);
    for (const Memory& after : launch.run({2, 1, 1}))
      expect_near(after.of<float>(2), expected, after.run);
  }
}

TEST(TritonListings, SoftmaxOfRowsInALoop) {
  constexpr std::size_t kRows = 5, kStride = 24;
  const auto x = random_floats(kRows * kStride, 1), out = random_floats(kRows * kStride, 2);
  for (const std::size_t cols : {20, 1, 24}) {
    std::vector<double> expected(out.begin(), out.end());
    for (std::size_t row = 0; row < kRows; ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < cols; ++i) sum += std::exp(double{x[row * kStride + i]});
      for (std::size_t i = 0; i < cols; ++i)
        expected[row * kStride + i] = std::exp(double{x[row * kStride + i]}) / sum;
    }
    Launch launch("softmax_rows");
    launch.memory(out).memory(x).numbers(kStride, kRows, cols);
    for (const Memory& after : launch.run({3, 1, 1}))
      expect_near(after.of<float>(0), expected, after.run);
  }
}

struct MatmulSizes {
  std::size_t m, n, k;
  bool transposed = false;  // the left matrix is stored column by column
};

void expect_matmul(const MatmulSizes& sizes) {
  const auto [m, n, k, transposed] = sizes;
  SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k << " " << transposed);
  const auto a = random_floats(m * k + 1, 1), b = random_floats(k * n + 1, 2);
  const std::size_t am = transposed ? 1 : k, ak = transposed ? m : 1;
  std::vector<double> expected(m * n + 3, 7);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < k; ++l) sum += double{a[i * am + l * ak]} * b[l * n + j];
      expected[i * n + j] = sum;
    }
  Launch launch("matmul");
  launch.memory(a).memory(b).memory(std::vector<float>(m * n + 3, 7));
  launch.numbers(m, n, k, am, ak, n, 1, n, 1);
  const auto blocks = static_cast<std::int64_t>(((m + 15) / 16) * ((n + 15) / 16));
  for (const Memory& after : launch.run({blocks, 1, 1}))
    expect_near(after.of<float>(2), expected, after.run);
}

TEST(TritonListings, MatmulOfAnySizes) {
  expect_matmul({16, 16, 8});
  expect_matmul({33, 18, 20});
  expect_matmul({5, 7, 3});  // rows and columns wrap around inside of a block
  expect_matmul({1, 1, 1});
  expect_matmul({64, 48, 24});
  expect_matmul({17, 40, 9, true});
}

TEST(TritonListings, MatmulOfNoProductsIsZero) {
  expect_matmul({16, 16, 0});
  expect_matmul({3, 20, 0});
}

/// The generator that tl.rand uses, Philox4x32-10 (Salmon et al., SC 2011).
std::uint32_t philox(std::uint64_t seed, std::uint32_t offset) {
  std::uint32_t c[4] = {offset, 0, 0, 0};
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    const std::uint32_t c0 = static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0;
    const std::uint32_t c2 = static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1;
    c[1] = static_cast<std::uint32_t>(b);
    c[3] = static_cast<std::uint32_t>(a);
    c[0] = c0;
    c[2] = c2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c[0];
}

TEST(TritonListings, RandomNumbersArePhilox) {
  std::vector<double> expected(64);
  for (std::uint32_t i = 0; i < 64; ++i) {
    const auto drawn = static_cast<std::int32_t>(philox(1234, i));
    const double uniform = static_cast<double>(drawn < 0 ? -(drawn + 1) : drawn) * 4.6566127342e-10;
    expected[i] = uniform > 0.3 ? 1 : 0;
  }
  Launch launch("dropout_mask");
  launch.memory(std::vector<float>(64)).numbers(1234, 0.3);
  for (const Memory& after : launch.run({2, 1, 1}))
    expect_near(after.of<float>(0), expected, after.run);
}

}  // namespace
}  // namespace tessera::triton
