#include <bit>
#include <limits>

#include "tessera/support/half.h"
#include "tests/triton/launch.h"

namespace tessera::triton {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// An 8-bit float format, by its definition: sign, exponent and mantissa.
struct Format {
  int mantissa_bits, bias;
  enum {
    Numbers,       // all of them are finite
    LargestIsNaN,  // 0x7f and 0xff
    Infinity,      // the largest exponent is infinity and NaN
    UnsignedZero   // 0x80 is the only NaN
  } special;
};
constexpr Format kFormats[] = {{3, 7, Format::LargestIsNaN},
                               {3, 8, Format::UnsignedZero},
                               {2, 15, Format::Infinity},
                               {2, 16, Format::UnsignedZero},
                               {3, 15, Format::Numbers}};
constexpr std::size_t kFormatCount = std::size(kFormats);

double number_of(const Format& format, int bits) {
  const int magnitude = bits & 0x7f, exponent = magnitude >> format.mantissa_bits;
  const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
  if (format.special == Format::UnsignedZero && bits == 0x80) return kNaN;
  if (format.special == Format::LargestIsNaN && magnitude == 0x7f) return kNaN;
  if (format.special == Format::Infinity && exponent == 31) {
    if (mantissa != 0) return kNaN;
    return bits < 0x80 ? kInfinity : -kInfinity;
  }
  const double size = exponent == 0 ? std::ldexp(mantissa, 1 - format.bias - format.mantissa_bits)
                                    : std::ldexp(mantissa + (1 << format.mantissa_bits),
                                                 exponent - format.bias - format.mantissa_bits);
  return bits < 0x80 ? size : -size;
}

/// The bits nearest to a finite number in range, ties to even; or the nearest toward zero.
int bits_nearest(const Format& format, double x, bool toward_zero) {
  int best = -1;
  for (int bits = 0; bits < 128; ++bits) {
    const double y = number_of(format, bits), distance = std::fabs(y - std::fabs(x));
    if (!std::isfinite(y) || (toward_zero && y > std::fabs(x))) continue;
    const double least = best < 0 ? kInfinity : std::fabs(number_of(format, best) - std::fabs(x));
    if (distance < least || (distance == least && bits % 2 == 0)) best = bits;
  }
  if (std::signbit(x) && !(format.special == Format::UnsignedZero && best == 0)) best |= 0x80;
  return best;
}

double largest(const Format& format) {
  double most = 0;
  for (int bits = 0; bits < 128; ++bits) {
    const double x = number_of(format, bits);
    if (std::isfinite(x)) most = std::max(most, x);
  }
  return most;
}

TEST(TritonTypes, Float8CastsRoundByTheirDefinition) {
  constexpr std::size_t kCount = 256;
  Rng rng(1);
  std::vector<float> x(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const double size = std::ldexp(1 + rng.uniform(), static_cast<int>(rng.below(28)) - 20);
    x[i] = static_cast<float>(rng.below(2) == 0 ? size : -size);
    if (i % 4 == 0)  // halfway between two numbers of a format
      x[i] = static_cast<float>((number_of(kFormats[i / 4 % 4], static_cast<int>(i / 4)) +
                                 number_of(kFormats[i / 4 % 4], static_cast<int>(i / 4) + 1)) /
                                2);
  }
  x[1] = 0;
  x[2] = -0.0f;
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[5] = 1e-30f;
  const std::vector<std::uint8_t> none(kFormatCount * kCount, 0x55);
  Launch launch("float8_casts");
  launch.memory(x).memory(none).memory(none).memory(std::vector<float>(kFormatCount * kCount));
  for (const Memory& after : launch.run({4, 1, 1})) {
    const auto nearest = after.of<std::uint8_t>(1), truncated = after.of<std::uint8_t>(2);
    const auto decoded = after.of<float>(3);
    for (std::size_t f = 0; f < kFormatCount; ++f) {
      const Format& format = kFormats[f];
      for (std::size_t i = 0; i < kCount; ++i) {
        const double number = number_of(format, static_cast<int>(i));
        const double got = decoded[f * kCount + i];
        EXPECT_TRUE(std::isnan(number) ? std::isnan(got) : number == got)
            << after.run << ": format " << f << " of bits " << i << " is " << got;
        for (const bool toward_zero : {false, true}) {
          if (toward_zero && f != 0 && f != 2) continue;  // the kernel has no such cast
          if (f == 4) continue;  // Triton rounds half of it up, by way of f16
          const int bits = (toward_zero ? truncated : nearest)[f * kCount + i];
          if (std::isnan(x[i])) {
            EXPECT_TRUE(std::isnan(number_of(format, bits))) << after.run << ": format " << f;
          } else if (std::fabs(x[i]) <= largest(format)) {
            EXPECT_EQ(bits, bits_nearest(format, x[i], toward_zero))
                << after.run << ": format " << f << " of " << x[i] << " toward zero "
                << toward_zero;
          }
        }
      }
    }
  }
}

TEST(TritonTypes, CastsOfNumbers) {
  std::vector<float> x = random_floats(32, 1);
  for (std::size_t i = 0; i < 32; ++i) x[i] *= 30;
  Launch launch("number_casts");
  launch.memory(x)
      .memory(std::vector<std::uint16_t>(32))
      .memory(std::vector<std::uint16_t>(32))
      .memory(std::vector<double>(32))
      .memory(std::vector<std::int8_t>(32))
      .memory(std::vector<std::uint8_t>(32))
      .memory(std::vector<std::int64_t>(32));
  for (const Memory& after : launch.run({1, 1, 1})) {
    for (std::size_t i = 0; i < 32; ++i) {
      // f16 toward zero: 10 bits of mantissa are kept.
      const float half = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x[i]) & 0xffffe000u);
      if (std::fabs(x[i]) > 1e-4f) {
        EXPECT_EQ(to_float(Half{after.of<std::uint16_t>(1)[i]}), half) << after.run;
      }
      const auto bits = std::bit_cast<std::uint32_t>(x[i]);
      EXPECT_EQ(after.of<std::uint16_t>(2)[i], (bits + 0x7fff + (bits >> 16 & 1)) >> 16)
          << after.run;
      EXPECT_EQ(after.of<double>(3)[i], double{x[i]} * 3.0000000001) << after.run;
      EXPECT_EQ(after.of<std::int8_t>(4)[i], static_cast<std::int8_t>(x[i])) << after.run;
      EXPECT_EQ(after.of<std::uint8_t>(5)[i], static_cast<std::uint8_t>(std::fabs(x[i])))
          << after.run;
      EXPECT_EQ(after.of<std::int64_t>(6)[i], static_cast<std::int64_t>(x[i] * 1e9f)) << after.run;
    }
  }
}

TEST(TritonTypes, BoolsAreBytesInMemoryAndBitsInArithmetic) {
  std::vector<std::int8_t> a(16), b(16), expected(64);
  std::vector<std::int32_t> sums(17);
  for (std::size_t i = 0; i < 16; ++i) {
    a[i] = i % 3 == 0 ? 1 : 0;
    b[i] = i % 2 == 0 ? 1 : 0;
    const bool left = a[i] != 0, right = i >= 14 || b[i] != 0;
    expected[i] = left && right;
    expected[16 + i] = left || !right;
    expected[32 + i] = left != right;
    expected[48 + i] = !left && right;  // as unsigned numbers
    sums[i] = left + right;
    sums[16] += left;
  }
  Launch launch("bools");
  launch.memory(a).memory(b).memory(std::vector<std::int8_t>(64));
  launch.memory(std::vector<std::int32_t>(17));
  for (const Memory& after : launch.run({1, 1, 1})) {
    EXPECT_EQ(after.of<std::int8_t>(2), expected) << after.run;
    EXPECT_EQ(after.of<std::int32_t>(3), sums) << after.run;
  }
}

TEST(TritonTypes, UnsignedArithmetic) {
  Rng rng(1);
  std::vector<std::uint32_t> x(16), y(16), expected;
  for (std::size_t i = 0; i < 16; ++i) {
    x[i] = static_cast<std::uint32_t>(rng.next());
    y[i] = static_cast<std::uint32_t>(rng.next() >> rng.below(31)) | 1u;
  }
  x[0] = 0xffffffffu;
  x[1] = 0x80000000u;
  const auto column = [&](auto function) {
    for (std::size_t i = 0; i < 16; ++i) expected.push_back(function(x[i], y[i]));
  };
  using U = std::uint32_t;
  column([](U a, U b) { return a / b; });
  column([](U a, U b) { return a % b; });
  column([](U a, U) { return a >> 3; });
  column([](U a, U b) { return std::min(a, b); });
  column([](U a, U b) { return a > b ? a - b : b - a; });
  column([](U a, U b) { return static_cast<U>(std::uint64_t{a} * b >> 32); });
  Launch launch("unsigned");
  launch.memory(x).memory(y).memory(std::vector<U>(96)).memory(std::vector<float>(16));
  for (const Memory& after : launch.run({1, 1, 1})) {
    EXPECT_EQ(after.of<U>(2), expected) << after.run;
    for (std::size_t i = 0; i < 16; ++i)
      EXPECT_EQ(after.of<float>(3)[i], static_cast<float>(x[i])) << after.run;
  }
}

TEST(TritonTypes, FunctionsOfLibdevice) {
  auto x = random_floats(32, 1), y = random_floats(32, 2);
  x[0] = 0;
  y[1] = 0;
  std::vector<double> expected;
  const auto column = [&](auto function) {
    for (std::size_t i = 0; i < 32; ++i) expected.push_back(function(double{x[i]}, double{y[i]}));
  };
  column([](double a, double) { return std::tan(a); });
  column([](double a, double) { return std::log1p(std::fabs(a)); });
  column([](double a, double) { return std::expm1(a); });
  column([](double a, double b) { return std::pow(std::fabs(a), b); });
  column([](double a, double b) { return std::atan2(a, b); });
  column([](double a, double b) { return std::hypot(a, b); });
  column([](double a, double) { return std::trunc(a); });
  column([](double a, double b) { return std::copysign(a, b); });
  column([](double a, double) { return std::sinh(a); });
  column([](double a, double b) { return std::fmod(a, b); });
  Launch launch("libdevice_functions");
  launch.memory(x).memory(y).memory(std::vector<float>(320));
  for (const Memory& after : launch.run({1, 1, 1}))
    expect_near(after.of<float>(2), expected, after.run, 2e-5);
}

TEST(TritonTypes, ConstantsAreExact) {
  Launch launch("constants");
  launch.memory(std::vector<std::int64_t>(3))
      .memory(std::vector<double>(3))
      .memory(std::vector<float>(8));
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (const Memory& after : launch.run({1, 1, 1})) {
    EXPECT_EQ(after.of<std::int64_t>(0),
              (std::vector<std::int64_t>{kMost, -kMost - 1, 0x123456789ABCDEF}))
        << after.run;
    // Triton's own constants of floats are f32, unless they are out of its range.
    EXPECT_EQ(after.of<double>(1)[0], 0.1f) << after.run;
    EXPECT_EQ(after.of<double>(1)[1], 1e300) << after.run;
    EXPECT_EQ(after.of<double>(1)[2], -kInfinity) << after.run;
    const auto floats = after.of<float>(2);
    EXPECT_EQ(floats[0], std::numeric_limits<float>::infinity()) << after.run;
    EXPECT_TRUE(std::isnan(floats[1])) << after.run;
    EXPECT_EQ(floats[2], 0.0f) << after.run;
    EXPECT_EQ(floats[3], 1.1754944e-38f) << after.run;
    for (std::size_t i = 4; i < 8; ++i) EXPECT_EQ(floats[i], -kInfinity) << after.run;
  }
}

TEST(TritonTypes, AFunctionOfScalarsIsMappedOverElements) {
  const auto x = random_integers(16, 1, -5, 10), y = random_integers(16, 2, -5, 10);
  std::vector<std::int32_t> expected;
  for (std::size_t i = 0; i < 16; ++i)
    expected.push_back(x[i] < y[i] ? (x[i] + y[i]) * 2 : x[i] - y[i]);
  Launch launch("map_elementwise");
  launch.memory(x).memory(y).memory(std::vector<std::int32_t>(16));
  for (const Memory& after : launch.run({1, 1, 1}))
    EXPECT_EQ(after.of<std::int32_t>(2), expected) << after.run;
}

}  // namespace
}  // namespace tessera::triton
