#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "examples/attention.h"
#include "examples/dropout.h"
#include "examples/histogram.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "examples/softmax.h"
#include "examples/vector_add.h"
#include "tessera/support/rng.h"
#include "tessera/tile/text.h"
#include "tests/tile/lang_run.h"

namespace tessera::tile::examples {
namespace {

using Doubles = std::vector<double>;

/// Numbers of some dtype in memory, and what they are.
class Tensor {
 public:
  Tensor(DType dtype, Extents shape) : dtype_(dtype), shape_(std::move(shape)) {
    count_ = 1;
    for (const std::int64_t extent : shape_) count_ *= extent;
    bytes_.resize(static_cast<std::size_t>(count_) * static_cast<std::size_t>(byte_width(dtype)));
  }

  /// Random, of about unit size; of integers, small ones.
  static Tensor random(DType dtype, Extents shape, Rng& rng) {
    Tensor tensor(dtype, std::move(shape));
    for (std::int64_t i = 0; i < tensor.count_; ++i) {
      const double x = static_cast<double>(rng.below(2001)) / 1000.0 - 1.0;
      tensor.set(i, is_float(dtype) ? x : std::trunc(x * 9));
    }
    return tensor;
  }

  std::int64_t count() const { return count_; }
  Argument view() { return Argument::view(dtype_, bytes_.data(), shape_); }
  Argument pointer() {
    return Argument::pointer(dtype_, bytes_.data(), static_cast<std::int64_t>(bytes_.size()));
  }

  double get(std::int64_t i) const {
    switch (dtype_) {
      case DType::F16: return to_float(at<Half>(i));
      case DType::BF16: return to_float(at<BFloat16>(i));
      case DType::F32: return at<float>(i);
      case DType::F64: return at<double>(i);
      case DType::I8: return at<std::int8_t>(i);
      default: return at<std::int32_t>(i);
    }
  }
  void set(std::int64_t i, double x) {
    switch (dtype_) {
      case DType::F16: return put(i, to_half(x));
      case DType::BF16: return put(i, to_bfloat16(x));
      case DType::F32: return put(i, static_cast<float>(x));
      case DType::F64: return put(i, x);
      case DType::I8: return put(i, static_cast<std::int8_t>(x));
      default: return put(i, static_cast<std::int32_t>(x));
    }
  }
  Doubles numbers() const {
    Doubles list;
    for (std::int64_t i = 0; i < count_; ++i) list.push_back(get(i));
    return list;
  }

 private:
  template <class T>
  T at(std::int64_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  void put(std::int64_t i, T value) {
    std::memcpy(bytes_.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
  }

  DType dtype_;
  Extents shape_;
  std::int64_t count_;
  std::vector<std::byte> bytes_;
};

/// The distance of neighbours of 1, halved.
double rounding(DType dtype) {
  switch (dtype) {
    case DType::F16: return 0x1p-11;
    case DType::BF16: return 0x1p-8;
    case DType::F32: return 0x1p-24;
    case DType::F64: return 0x1p-53;
    default: return 0;
  }
}

void expect_near(const Tensor& found, const Doubles& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(found.count(), static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(found.get(static_cast<std::int64_t>(i)), expected[i],
                tolerance * (1 + std::fabs(expected[i])))
        << what << ", element " << i;
  }
}

const std::vector<DType> kFloats = {DType::F32, DType::F16, DType::BF16, DType::F64};

TEST(Examples, VectorAddTakesAnyNumberOfElements) {
  Rng rng(1);
  for (const DType dtype :
       {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I8, DType::I32}) {
    for (const std::int64_t n : {0, 1, 3, 7, 16, 17, 31, 97}) {
      Tensor x = Tensor::random(dtype, {n}, rng), y = Tensor::random(dtype, {n}, rng);
      Tensor out(dtype, {n});
      run(vector_add(dtype, 16), {cdiv(n, 16), 1, 1}, x.pointer(), y.pointer(), out.pointer(), n);
      Doubles expected;
      for (std::int64_t i = 0; i < n; ++i) expected.push_back(x.get(i) + y.get(i));
      expect_near(out, expected, rounding(dtype), std::string(to_string(dtype)));
    }
  }
}

Doubles softmax_of(const Tensor& x, std::int64_t rows, std::int64_t columns) {
  Doubles result;
  for (std::int64_t i = 0; i < rows; ++i) {
    double greatest = -INFINITY, total = 0;
    for (std::int64_t j = 0; j < columns; ++j)
      greatest = std::max(greatest, x.get(i * columns + j));
    for (std::int64_t j = 0; j < columns; ++j) total += std::exp(x.get(i * columns + j) - greatest);
    for (std::int64_t j = 0; j < columns; ++j)
      result.push_back(std::exp(x.get(i * columns + j) - greatest) / total);
  }
  return result;
}

TEST(Examples, SoftmaxOfARow) {
  Rng rng(2);
  for (const DType dtype : kFloats) {
    for (const std::int64_t columns : {1, 3, 7, 31, 64, 65}) {
      for (const std::int64_t rows : {0, 1, 5}) {
        Tensor x = Tensor::random(dtype, {rows, columns}, rng), out(dtype, {rows, columns});
        const Doubles expected = softmax_of(x, rows, columns);
        const double tolerance =
            8 * rounding(dtype == DType::F64 ? dtype : DType::F32) + rounding(dtype);
        run(softmax(dtype, columns), {rows, 1, 1}, x.view(), out.view());
        expect_near(out, expected, tolerance, "softmax");
        Tensor online(dtype, {rows, columns});
        run(online_softmax(dtype, 16), {rows, 1, 1}, x.view(), online.view());
        expect_near(online, expected, tolerance, "online_softmax");
      }
    }
  }
}

TEST(Examples, SoftmaxRefusesRowsOfAnotherWidth) {
  Tensor x(DType::F32, {4, 9});
  const auto kernel = softmax(DType::F32, 8);
  ASSERT_TRUE(kernel);
  EXPECT_FALSE(check_arguments(*kernel, arguments(x.view(), x.view()), {4, 1, 1}));
  EXPECT_FALSE(softmax(DType::F32, 0));
}

TEST(Examples, SoftmaxTakesValuesThatAreHiddenOrHuge) {
  Tensor x(DType::F32, {2, 40}), out(DType::F32, {2, 40});
  for (std::int64_t i = 0; i < 40; ++i) {
    x.set(i, i < 32 ? -INFINITY : 1);  // whole tiles of it
    x.set(40 + i, i == 3 ? 3e38 : -3e38);
  }
  const Doubles expected = softmax_of(x, 2, 40);
  run(softmax(DType::F32, 40), {2, 1, 1}, x.view(), out.view());
  expect_near(out, expected, 1e-6, "softmax");
  run(online_softmax(DType::F32, 16), {2, 1, 1}, x.view(), out.view());
  expect_near(out, expected, 1e-6, "online_softmax");
}

TEST(Examples, LayerNormOfARow) {
  Rng rng(3);
  for (const DType dtype : kFloats) {
    for (const std::int64_t columns : {1, 2, 7, 31, 64, 65}) {
      const std::int64_t rows = 3;
      Tensor x = Tensor::random(dtype, {rows, columns}, rng), out(dtype, {rows, columns});
      Tensor weight = Tensor::random(dtype, {columns}, rng),
             bias = Tensor::random(dtype, {columns}, rng);
      // Far from zero, the sums of x and x² would cancel.
      for (std::int64_t j = 0; dtype == DType::F32 && j < columns; ++j) x.set(j, x.get(j) + 1000);
      run(layer_norm(dtype, columns), {rows, 1, 1}, x.view(), weight.view(), bias.view(),
          out.view(), 1e-3);
      Doubles expected;
      for (std::int64_t i = 0; i < rows; ++i) {
        double mean = 0, variance = 0;
        for (std::int64_t j = 0; j < columns; ++j) mean += x.get(i * columns + j);
        mean /= static_cast<double>(columns);
        for (std::int64_t j = 0; j < columns; ++j)
          variance += std::pow(x.get(i * columns + j) - mean, 2);
        variance /= static_cast<double>(columns);
        for (std::int64_t j = 0; j < columns; ++j) {
          const double normal = (x.get(i * columns + j) - mean) / std::sqrt(variance + 1e-3F);
          expected.push_back(normal * weight.get(j) + bias.get(j));
        }
      }
      // The mean of about 1000 is rounded; that the variance is not lost is what this is about.
      const double tolerance = (dtype == DType::F32 ? 1e-4 : 1e-5) + 2 * rounding(dtype);
      expect_near(out, expected, tolerance, std::string(to_string(dtype)));
    }
  }
}

struct Sizes {
  std::int64_t m, n, k;
};
const std::vector<Sizes> kSizes = {{1, 1, 1},   {7, 5, 3}, {16, 16, 16}, {17, 31, 33},
                                   {40, 9, 20}, {3, 3, 0}, {0, 3, 3}};
constexpr MatmulTiles kTiles{.m = 16, .n = 8, .k = 16, .group = 2};

Doubles matmul_of(const Tensor& a, const Tensor& b, const Sizes& size) {
  Doubles c(static_cast<std::size_t>(size.m * size.n));
  for (std::int64_t i = 0; i < size.m; ++i) {
    for (std::int64_t j = 0; j < size.n; ++j) {
      for (std::int64_t l = 0; l < size.k; ++l)
        c[static_cast<std::size_t>(i * size.n + j)] +=
            a.get(i * size.k + l) * b.get(l * size.n + j);
    }
  }
  return c;
}

TEST(Examples, MatmulThroughViewsPointersAndPanels) {
  Rng rng(4);
  for (const DType dtype : kFloats) {
    for (const Sizes& size : kSizes) {
      const auto& [m, n, k] = size;
      Tensor a = Tensor::random(dtype, {m, k}, rng), b = Tensor::random(dtype, {k, n}, rng);
      const Doubles expected = matmul_of(a, b, size);
      const Grid grid = {matmul_programs(m, n, kTiles), 1, 1};
      const double tolerance =
          static_cast<double>(k) * rounding(dtype == DType::F64 ? dtype : DType::F32) +
          rounding(dtype);
      const std::string what = fmt::format("{} {}x{}x{}", to_string(dtype), m, n, k);

      Tensor c(dtype, {m, n});
      run(matmul(dtype, dtype, kTiles), grid, a.view(), b.view(), c.view());
      expect_near(c, expected, tolerance, what);

      Tensor through_pointers(dtype, {m, n});
      run(matmul_pointers(dtype, kTiles), grid, a.pointer(), b.pointer(),
          through_pointers.pointer(), m, n, k, k, 1, n, 1, n, 1);
      expect_near(through_pointers, expected, tolerance, what + " through pointers");

      constexpr std::int64_t kPanel = 4;
      const Doubles columns = packed(b.numbers(), k, n, kPanel);
      Tensor panels(dtype, {cdiv(n, kPanel), k, kPanel});
      for (std::size_t i = 0; i < columns.size(); ++i)
        panels.set(static_cast<std::int64_t>(i), columns[i]);
      Tensor from_panels(dtype, {m, n});
      run(matmul_packed(dtype, kTiles, kPanel), grid, a.view(), panels.view(), from_panels.view());
      expect_near(from_panels, expected, tolerance, what + " from panels");
    }
  }
}

TEST(Examples, MatmulOfBytesIsExact) {
  Rng rng(5);
  const Sizes size = {17, 31, 33};
  Tensor a = Tensor::random(DType::I8, {size.m, size.k}, rng);
  Tensor b = Tensor::random(DType::I8, {size.k, size.n}, rng), c(DType::I32, {size.m, size.n});
  run(matmul(DType::I8, DType::I32, kTiles), {matmul_programs(size.m, size.n, kTiles), 1, 1},
      a.view(), b.view(), c.view());
  EXPECT_EQ(c.numbers(), matmul_of(a, b, size));
}

TEST(Examples, MatmulWithBiasAndActivation) {
  Rng rng(6);
  const Sizes size = {17, 9, 20};
  const std::vector<std::pair<Activation, std::function<double(double)>>> activations = {
      {Activation::Identity, [](double x) { return x; }},
      {Activation::Relu, [](double x) { return std::max(x, 0.0); }},
      {Activation::Gelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2)); }},
      {Activation::Silu, [](double x) { return x / (1 + std::exp(-x)); }},
  };
  for (const auto& [activation, plain] : activations) {
    Tensor a = Tensor::random(DType::F32, {size.m, size.k}, rng);
    Tensor b = Tensor::random(DType::F32, {size.k, size.n}, rng);
    Tensor bias = Tensor::random(DType::F32, {size.n}, rng), c(DType::F32, {size.m, size.n});
    run(matmul_bias(DType::F32, kTiles, activation),
        {matmul_programs(size.m, size.n, kTiles), 1, 1}, a.view(), b.view(), bias.view(), c.view());
    Doubles expected = matmul_of(a, b, size);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = plain(expected[i] + bias.get(static_cast<std::int64_t>(i) % size.n));
    expect_near(c, expected, 1e-5, "activation");
  }
}

TEST(Examples, MatmulPointersTakeAnyStrides) {
  Rng rng(7);
  const std::int64_t m = 5, n = 6, k = 7;
  Tensor a = Tensor::random(DType::F32, {k, m}, rng), b = Tensor::random(DType::F32, {k, n}, rng);
  Tensor c(DType::F32, {n, m});
  run(matmul_pointers(DType::F32, kTiles), {1, 1, 1}, a.pointer(), b.pointer(), c.pointer(), m, n,
      k, 1, m, n, 1, 1, m);
  Doubles expected(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t l = 0; l < k; ++l)
        expected[static_cast<std::size_t>(j * m + i)] += a.get(l * m + i) * b.get(l * n + j);
    }
  }
  expect_near(c, expected, 1e-6, "transposed");
}

TEST(Examples, AttentionSeesTheKeysThatItShould) {
  Rng rng(8);
  const std::int64_t heads = 2, width = 8;
  for (const DType dtype : kFloats) {
    for (const std::int64_t length : {1, 7, 16, 17, 33}) {
      for (const Mask mask : {Mask::None, Mask::Causal}) {
        for (const AttentionTiles tiles : {AttentionTiles{16, 8}, AttentionTiles{4, 16}}) {
          const Extents shape = {heads, length, width};
          Tensor q = Tensor::random(dtype, shape, rng), k = Tensor::random(dtype, shape, rng);
          Tensor v = Tensor::random(dtype, shape, rng), out(dtype, shape);
          run(attention(dtype, width, tiles, mask), {cdiv(length, tiles.queries), heads, 1},
              q.view(), k.view(), v.view(), out.view());
          Doubles expected;
          for (std::int64_t row = 0; row < heads * length; ++row) {
            const std::int64_t first = row / length * length;
            const std::int64_t end = mask == Mask::Causal ? row + 1 : first + length;
            Doubles sum(width), weights;
            double total = 0;
            for (std::int64_t key = first; key < end; ++key) {
              double score = 0;
              for (std::int64_t i = 0; i < width; ++i)
                score += q.get(row * width + i) * k.get(key * width + i);
              weights.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
              total += weights.back();
            }
            for (std::int64_t i = 0; i < width; ++i) {
              double value = 0;
              for (std::int64_t key = first; key < end; ++key)
                value += weights[static_cast<std::size_t>(key - first)] * v.get(key * width + i);
              expected.push_back(value / total);
            }
          }
          expect_near(out, expected, 4 * rounding(dtype) + 1e-6,
                      fmt::format("{} of {} keys", to_string(dtype), length));
        }
      }
    }
  }
}

TEST(Examples, CausalAttentionReadsNoKeyPastTheDiagonal) {
  // What lies past it is NaN: a product with it would show.
  const std::int64_t length = 32, width = 4;
  Tensor q(DType::F32, {1, length, width}), k(DType::F32, {1, length, width});
  Tensor v(DType::F32, {1, length, width}), out(DType::F32, {1, length, width});
  for (std::int64_t i = 8 * width; i < length * width; ++i) {
    k.set(i, NAN);
    v.set(i, NAN);
  }
  run(attention(DType::F32, width, {8, 8}, Mask::Causal), {1, 1, 1}, q.view(), k.view(), v.view(),
      out.view());
  for (std::int64_t i = 0; i < 8 * width; ++i) EXPECT_EQ(out.get(i), 0);
}

TEST(Examples, DropoutKeepsTheShareThatItShould) {
  Rng rng(9);
  const std::int64_t n = 4000;
  const float p = 0.25F;
  Tensor x = Tensor::random(DType::F32, {n}, rng), out(DType::F32, {n}), again(DType::F32, {n});
  for (std::int64_t i = 0; i < n; ++i) x.set(i, x.get(i) + 2);
  run(dropout(DType::F32, 64), {cdiv(n, 64), 1, 1}, x.pointer(), out.pointer(), n, p, 7);
  run(dropout(DType::F32, 256), {cdiv(n, 256), 1, 1}, x.pointer(), again.pointer(), n, p, 7);
  EXPECT_EQ(out.numbers(), again.numbers()) << "which are kept does not depend on the tiles";
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (out.get(i) == 0) continue;
    ++kept;
    EXPECT_NEAR(out.get(i), x.get(i) / 0.75, 1e-5);
  }
  EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(n), 0.75, 0.03);
}

TEST(Examples, HistogramCountsWhatIsABin) {
  Rng rng(10);
  for (const std::int64_t n : {0, 1, 63, 64, 1000}) {
    const std::int64_t bins = 5;
    std::vector<std::int32_t> x, counts(bins), expected(bins);
    for (std::int64_t i = 0; i < n; ++i) {
      x.push_back(static_cast<std::int32_t>(rng.below(8)) - 1);
      if (x.back() >= 0 && x.back() < bins) ++expected[static_cast<std::size_t>(x.back())];
    }
    run(histogram(64), {cdiv(n, 64), 1, 1}, x, counts, n, bins);
    EXPECT_EQ(counts, expected);
  }
}

TEST(Examples, ParseBackFromTheirText) {
  for (const auto& kernel :
       {vector_add(DType::F32, 8), softmax(DType::F16, 8), online_softmax(DType::F32, 8),
        layer_norm(DType::BF16, 8), matmul(DType::F32, DType::F32, {}),
        matmul_bias(DType::F32, {}, Activation::Gelu), matmul_pointers(DType::F32, {}),
        matmul_packed(DType::F32, {}, 16), attention(DType::F32, 64, {}, Mask::Causal),
        dropout(DType::F32, 8), histogram(8)}) {
    ASSERT_TRUE(kernel) << to_string(kernel.error());
    const auto parsed = parse_kernel(to_text(*kernel));
    ASSERT_TRUE(parsed) << to_string(parsed.error());
    EXPECT_EQ(to_text(*parsed), to_text(*kernel));
  }
}

}  // namespace
}  // namespace tessera::tile::examples
