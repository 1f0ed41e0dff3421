#include "tessera/codegen/llvm/math.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "map_loop.h"
#include "tessera/support/half.h"
#include "tessera/support/rng.h"
#include "ulp.h"

namespace tessera::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tile::Function;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// What a loop makes of arrays, which are padded to its step.
template <class Out, class... In>
std::vector<Out> apply(const MapLoop& loop, std::vector<In>... in) {
  const CompiledMap map(loop);
  std::size_t count = 0;
  const auto pad = [&](auto& array) {
    count = array.size();
    array.resize((count + map.step() - 1) / map.step() * map.step());
  };
  (pad(in), ...);
  const void* arrays[3] = {};
  std::size_t next = 0;
  ((arrays[next++] = in.data()), ...);
  std::vector<Out> out((count + map.step() - 1) / map.step() * map.step());
  map(arrays[0], arrays[1], arrays[2], out.data(), static_cast<std::int64_t>(out.size()));
  out.resize(count);
  return out;
}

/// Numbers of every size and both signs, and those with a meaning of their own.
template <class T, class Bits>
std::vector<T> numbers(std::size_t count, std::uint64_t seed) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> result = {T(0),
                           T(1),
                           T(0.5),
                           T(2),
                           Limits::infinity(),
                           Limits::quiet_NaN(),
                           std::bit_cast<T>(std::bit_cast<Bits>(Limits::quiet_NaN()) | Bits{3}),
                           Limits::max(),
                           Limits::min(),
                           Limits::denorm_min(),
                           Limits::epsilon()};
  for (std::size_t i = result.size(); i-- > 0;) result.push_back(-result[i]);
  Rng rng(seed);
  while (result.size() < count) {
    result.push_back(std::bit_cast<T>(static_cast<Bits>(rng.next())));
    result.push_back(static_cast<T>((rng.uniform() - 0.5) * 20));
    result.push_back(static_cast<T>((rng.uniform() - 0.5) * 1600));
    result.push_back(static_cast<T>(1 + (rng.uniform() - 0.5) / 8));
  }
  return result;
}

std::vector<float> floats(std::size_t count, std::uint64_t seed = 1) {
  return numbers<float, std::uint32_t>(count, seed);
}
std::vector<double> doubles(std::size_t count, std::uint64_t seed = 1) {
  return numbers<double, std::uint64_t>(count, seed);
}

class FloatFunction : public ::testing::TestWithParam<Reference> {};
INSTANTIATE_TEST_SUITE_P(Math, FloatFunction, ::testing::ValuesIn(references()),
                         [](const auto& info) {
                           return std::string(tile::to_string(info.param.function));
                         });

TEST_P(FloatFunction, IsWithinTwoUlpOfF32) {
  const std::vector<float> x = floats(400'000);
  const auto y =
      apply<float>(MapLoop::of_map(GetParam().function, DType::F32, Precision::Exact), x);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(ulp_error(y[i], GetParam().of(x[i])), 2) << x[i] << " gives " << y[i];
}

TEST_P(FloatFunction, IsTheSameForScalarsAndVectorsOfAnyWidth) {
  const std::vector<float> x = floats(1000, 7);
  const auto of = [&](unsigned lanes, unsigned pieces) {
    const auto y = apply<float>(
        MapLoop::of_map(GetParam().function, DType::F32, Precision::Exact, lanes, pieces), x);
    std::vector<std::uint32_t> bits;
    for (const float each : y)
      bits.push_back(std::bit_cast<std::uint32_t>(std::isnan(each) ? kNan : each));
    return bits;
  };
  const auto expected = of(4, 2);
  EXPECT_EQ(of(1, 1), expected);
  EXPECT_EQ(of(1, 3), expected);
  EXPECT_EQ(of(4, 8), expected);
  EXPECT_EQ(of(8, 3), expected);
  EXPECT_EQ(of(16, 1), expected);
}

TEST_P(FloatFunction, OfF16IsTheNearestNumberOrItsNeighbour) {
  std::vector<std::uint16_t> x(65536);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(i);
  const auto y = apply<std::uint16_t>(
      MapLoop::of_map(GetParam().function, DType::F16, Precision::Exact, 8), x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = GetParam().of(to_float(Half{x[i]}));
    const Half found = {y[i]}, nearest = to_half(exact);
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(to_float(found))) << to_float(Half{x[i]});
    } else {
      ASSERT_LE(std::abs(int{found.bits} - int{nearest.bits}), 1) << to_float(Half{x[i]});
    }
  }
}

TEST_P(FloatFunction, OfBf16IsTheNearestNumberOrItsNeighbour) {
  std::vector<std::uint16_t> x(65536);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(i);
  const auto y = apply<std::uint16_t>(
      MapLoop::of_map(GetParam().function, DType::BF16, Precision::Exact, 8), x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = GetParam().of(to_float(BFloat16{x[i]}));
    const BFloat16 found = {y[i]}, nearest = to_bfloat16(exact);
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(to_float(found))) << to_float(BFloat16{x[i]});
    } else {
      ASSERT_LE(std::abs(int{found.bits} - int{nearest.bits}), 1) << to_float(BFloat16{x[i]});
    }
  }
}

class DoubleFunction : public ::testing::TestWithParam<LongReference> {};
INSTANTIATE_TEST_SUITE_P(Math, DoubleFunction, ::testing::ValuesIn(long_references()),
                         [](const auto& info) {
                           return std::string(tile::to_string(info.param.function));
                         });

TEST_P(DoubleFunction, IsWithinTwoUlpOfF64) {
  const std::vector<double> x = doubles(20'000);
  const auto y =
      apply<double>(MapLoop::of_map(GetParam().function, DType::F64, Precision::Exact, 2), x);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(ulp_error(y[i], GetParam().of(x[i])), 2) << x[i] << " gives " << y[i];
}

TEST(MathFast, ExponentialsAreWithinAFewUlpWhereTheyAreNormal) {
  for (const Reference& reference : references()) {
    if (reference.function != Function::Exp && reference.function != Function::Exp2 &&
        reference.function != Function::Sigmoid)
      continue;
    const std::vector<float> x = floats(100'000);
    for (const unsigned lanes : {4U, 16U}) {
      const auto y =
          apply<float>(MapLoop::of_map(reference.function, DType::F32, Precision::Fast, lanes), x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = reference.of(x[i]);
        if (exact < 0x1p-125) {
          ASSERT_LE(y[i], 0x1p-124) << x[i];
          ASSERT_GE(y[i], 0) << x[i];
        } else {
          ASSERT_LE(ulp_error(y[i], exact), 8) << x[i] << " gives " << y[i];
        }
      }
    }
  }
}

TEST(MathFast, ExponentialsAreNeverSubnormal) {
  std::vector<float> x;
  for (float at = -200; at < -80; at += 0.01f) x.push_back(at);
  for (const Function function : {Function::Exp, Function::Exp2})
    for (const unsigned lanes : {1U, 4U, 8U, 16U}) {
      const auto y = apply<float>(MapLoop::of_map(function, DType::F32, Precision::Fast, lanes), x);
      // Beside the least normal number, the polynomial may be off by its error.
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_TRUE(y[i] == 0 || y[i] > 0x1.fffffp-127f) << x[i] << " gives " << y[i];
    }
}

TEST(MathFast, TanhAndErfAreWithinAFewUlpAndNeverBeyondOne) {
  for (const Reference& reference : references()) {
    if (reference.function != Function::Tanh && reference.function != Function::Erf) continue;
    const std::vector<float> x = floats(100'000);
    for (const unsigned lanes : {4U, 16U}) {
      const auto y =
          apply<float>(MapLoop::of_map(reference.function, DType::F32, Precision::Fast, lanes), x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (std::fabs(x[i]) < 0x1p-120f) continue;
        ASSERT_LE(ulp_error(y[i], reference.of(x[i])), 8) << x[i] << " gives " << y[i];
        ASSERT_FALSE(std::fabs(y[i]) > 1) << x[i] << " gives " << y[i];
      }
      const auto special =
          apply<float>(MapLoop::of_map(reference.function, DType::F32, Precision::Fast, lanes),
                       std::vector<float>{kInf, -kInf, kNan, 0, -0.0f, -1000, 10});
      EXPECT_EQ(special[0], 1);  // exactly: gelu multiplies the difference by its argument
      EXPECT_EQ(special[1], -1);
      EXPECT_TRUE(std::isnan(special[2]));
      EXPECT_EQ(special[3], 0);
      EXPECT_TRUE(std::signbit(special[4]));
      EXPECT_EQ(special[5], -1);
      EXPECT_EQ(special[6], 1);
    }
  }
}

TEST(MathFast, SigmoidKeepsItsSpecialValues) {
  for (const unsigned lanes : {4U, 16U}) {
    const auto y =
        apply<float>(MapLoop::of_map(Function::Sigmoid, DType::F32, Precision::Fast, lanes),
                     std::vector<float>{kInf, -kInf, kNan, 0, -1000, 1000});
    EXPECT_EQ(y[0], 1);
    EXPECT_LE(y[1], 0x1p-125);
    EXPECT_GE(y[1], 0);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 0.5);
    EXPECT_LE(y[4], 0x1p-125);
    EXPECT_EQ(y[5], 1);
  }
}

TEST(MathFast, ExponentialsKeepTheirSpecialValues) {
  const std::vector<float> x = {kInf, -kInf, kNan, -kNan, 0, -0.0f, -1000, 1000};
  const auto y = apply<float>(MapLoop::of_map(Function::Exp, DType::F32, Precision::Fast), x);
  EXPECT_EQ(y[0], kInf);
  EXPECT_EQ(y[1], 0);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(y[4], 1);
  EXPECT_EQ(y[5], 1);
  EXPECT_EQ(y[6], 0);
  EXPECT_EQ(y[7], kInf);
}

/// Every number of a list with every other.
template <class T>
std::pair<std::vector<T>, std::vector<T>> pairs(const std::vector<T>& list) {
  std::pair<std::vector<T>, std::vector<T>> result;
  for (const T& x : list) {
    for (const T& y : list) {
      result.first.push_back(x);
      result.second.push_back(y);
    }
  }
  return result;
}

TEST(MathPow, OfF32IsWithinTwoUlp) {
  const auto [x, y] = pairs(floats(300, 3));
  const auto z = apply<float>(MapLoop::of_map(Function::Pow, DType::F32, Precision::Exact), x, y);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(ulp_error(z[i], std::pow(double{x[i]}, double{y[i]})), 2)
        << x[i] << " to the " << y[i] << " gives " << z[i];
}

TEST(MathPow, OfF64IsWithinTwoUlp) {
  auto [x, y] = pairs(doubles(100, 3));
  Rng rng(5);
  for (int i = 0; i < 10'000; ++i) {  // results of every size
    x.push_back(std::exp((rng.uniform() - 0.5) * 20));
    y.push_back((rng.uniform() - 0.5) * 1500 / std::log(x.back()));
  }
  const auto z =
      apply<double>(MapLoop::of_map(Function::Pow, DType::F64, Precision::Exact, 2), x, y);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(
        ulp_error(z[i], std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i]))),
        2)
        << x[i] << " to the " << y[i] << " gives " << z[i];
}

TEST(MathPow, OfWholeNumbersKnowsSigns) {
  const std::vector<float> list = {0,     -0.0f, 1,       -1,          2,       -2,
                                   3,     -3,    0.5,     -0.5,        2.5,     kInf,
                                   -kInf, kNan,  0x1p24f, 0x1p24f - 1, -0x1p30f};
  const auto [x, y] = pairs(list);
  const auto z = apply<float>(MapLoop::of_map(Function::Pow, DType::F32, Precision::Exact), x, y);
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_LE(ulp_error(z[i], std::pow(double{x[i]}, double{y[i]})), 1)
        << x[i] << " to the " << y[i];
}

/// What a plain function of C++ says of each pair; NaN equals NaN.
template <class T, class Plain>
void expect_map_equal(Function function, DType dtype, const std::vector<T>& x,
                      const std::vector<T>& y, const Plain& plain) {
  const unsigned lanes = 16 / sizeof(T);
  const auto z = apply<T>(MapLoop::of_map(function, dtype, Precision::Exact, lanes), x, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T expected = plain(x[i], y[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(z[i])) << x[i] << ", " << y[i];
    } else {
      ASSERT_EQ(z[i], expected) << x[i] << ", " << y[i];
      ASSERT_EQ(std::signbit(z[i]) && z[i] != 0, std::signbit(expected) && expected != 0);
    }
  }
}

TEST(MathRem, OfFloatsIsExact) {
  const auto [x, y] = pairs(floats(400, 11));
  expect_map_equal(Function::Rem, DType::F32, x, y,
                   [](float a, float b) { return std::fmod(a, b); });
  const auto [u, v] = pairs(doubles(400, 12));
  expect_map_equal(Function::Rem, DType::F64, u, v,
                   [](double a, double b) { return std::fmod(a, b); });
}

TEST(MathFloat, MinAndMaxPassOverNanAndMinimumAndMaximumDoNot) {
  const auto [x, y] = pairs(floats(60, 13));
  expect_map_equal(Function::Min, DType::F32, x, y,
                   [](float a, float b) { return std::fmin(a, b); });
  expect_map_equal(Function::Max, DType::F32, x, y,
                   [](float a, float b) { return std::fmax(a, b); });
  expect_map_equal(Function::Minimum, DType::F32, x, y, [](float a, float b) {
    return std::isnan(a + b) && a != -b ? kNan : std::fmin(a, b);
  });
  expect_map_equal(Function::Maximum, DType::F32, x, y, [](float a, float b) {
    return std::isnan(a + b) && a != -b ? kNan : std::fmax(a, b);
  });
}

TEST(MathFloat, ArithmeticIsThatOfTheProcessor) {
  const auto [x, y] = pairs(floats(60, 14));
  expect_map_equal(Function::Add, DType::F32, x, y, [](float a, float b) { return a + b; });
  expect_map_equal(Function::Sub, DType::F32, x, y, [](float a, float b) { return a - b; });
  expect_map_equal(Function::Mul, DType::F32, x, y, [](float a, float b) { return a * b; });
  expect_map_equal(Function::Div, DType::F32, x, y, [](float a, float b) { return a / b; });
  expect_map_equal(Function::Neg, DType::F32, x, y, [](float a, float) { return -a; });
  expect_map_equal(Function::Abs, DType::F32, x, y, [](float a, float) { return std::fabs(a); });
  expect_map_equal(Function::Floor, DType::F32, x, y, [](float a, float) { return std::floor(a); });
  expect_map_equal(Function::Ceil, DType::F32, x, y, [](float a, float) { return std::ceil(a); });
  expect_map_equal(Function::Round, DType::F32, x, y,
                   [](float a, float) { return std::nearbyint(a); });
}

TEST(MathFloat, ComparesWithNanAreFalseButForNotEqual) {
  const std::vector<float> x = {1, 1, 2, kNan, 1, kNan, 0.0f, kInf};
  const std::vector<float> y = {1, 2, 1, 1, kNan, kNan, -0.0f, kInf};
  const auto of = [&](Function function) {
    return apply<std::uint8_t>(MapLoop::of_map(function, DType::F32, Precision::Exact), x, y);
  };
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(of(Function::Equal), (Bytes{1, 0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(of(Function::NotEqual), (Bytes{0, 1, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(of(Function::Less), (Bytes{0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(of(Function::LessEqual), (Bytes{1, 1, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(of(Function::Greater), (Bytes{0, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(of(Function::GreaterEqual), (Bytes{1, 0, 1, 0, 0, 0, 1, 1}));
}

TEST(MathSelect, ChoosesElementByElementInEveryWidth) {
  const std::vector<std::uint8_t> c = {1, 0, 0, 1, 1, 0, 1, 0};
  const std::vector<std::uint16_t> x = {1, 2, 3, 4, 5, 6, 7, 8},
                                   y = {9, 10, 11, 12, 13, 14, 15, 16};
  const std::vector<std::uint16_t> expected = {1, 10, 11, 4, 5, 14, 7, 16};
  for (const DType dtype : {DType::F16, DType::BF16, DType::I16, DType::U16})
    EXPECT_EQ(apply<std::uint16_t>(MapLoop::of_map(Function::Select, dtype, Precision::Exact, 8), c,
                                   x, y),
              expected);
}

TEST(MathBool, FollowsTruthTables) {
  const std::vector<std::uint8_t> x = {0, 0, 1, 1, 0, 0, 1, 1}, y = {0, 1, 0, 1, 0, 1, 0, 1};
  const auto of = [&](Function function) {
    auto z = apply<std::uint8_t>(MapLoop::of_map(function, DType::Bool, Precision::Exact), x, y);
    z.resize(4);
    return z;
  };
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(of(Function::And), (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(of(Function::Or), (Bytes{0, 1, 1, 1}));
  EXPECT_EQ(of(Function::Xor), (Bytes{0, 1, 1, 0}));
  EXPECT_EQ(of(Function::Not), (Bytes{1, 1, 0, 0}));
  EXPECT_EQ(of(Function::Equal), (Bytes{1, 0, 0, 1}));
  EXPECT_EQ(of(Function::Less), (Bytes{0, 1, 0, 0}));
}

template <class T>
class MathInteger : public ::testing::Test {};
using Integers =
    ::testing::Types<StoredAs<DType::I8, std::int8_t>, StoredAs<DType::I16, std::int16_t>,
                     StoredAs<DType::I32, std::int32_t>, StoredAs<DType::I64, std::int64_t>,
                     StoredAs<DType::U8, std::uint8_t>, StoredAs<DType::U16, std::uint16_t>,
                     StoredAs<DType::U32, std::uint32_t>, StoredAs<DType::U64, std::uint64_t>>;
TYPED_TEST_SUITE(MathInteger, Integers);

template <class T>
std::vector<T> integers() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> result = {0,
                           1,
                           2,
                           3,
                           T(-1),
                           T(-2),
                           7,
                           8,
                           31,
                           63,
                           64,
                           Limits::min(),
                           Limits::max(),
                           T(Limits::max() - 1),
                           T(Limits::min() + 1)};
  Rng rng(3);
  while (result.size() < 40) result.push_back(static_cast<T>(rng.next() >> rng.below(64)));
  return result;
}

TYPED_TEST(MathInteger, IsArithmeticModuloItsWidth) {
  using T = typename TypeParam::Number;
  using Wide = __int128;
  const int bits = 8 * sizeof(T);
  const bool is_signed = std::numeric_limits<T>::is_signed;
  const auto [x, y] = pairs(integers<T>());
  const auto check = [&, &x = x, &y = y](Function function, auto plain) {
    const auto z = apply<T>(
        MapLoop::of_map(function, TypeParam::dtype, Precision::Exact, 16 / sizeof(T)), x, y);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(+z[i], +static_cast<T>(plain(Wide{x[i]}, Wide{y[i]})))
          << tile::to_string(function) << " of " << +x[i] << ", " << +y[i];
  };
  const auto amount = [&](Wide b) { return b < 0 || b >= bits ? bits : static_cast<int>(b); };
  check(Function::Add, [](Wide a, Wide b) { return a + b; });
  check(Function::Sub, [](Wide a, Wide b) { return a - b; });
  check(Function::Mul, [](Wide a, Wide b) {
    return static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
  });
  check(Function::MulHi, [&](Wide a, Wide b) {
    if (is_signed) return (a * b) >> bits;
    return static_cast<Wide>(
        static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b) >> bits);
  });
  check(Function::Div, [](Wide a, Wide b) { return b == 0 ? 0 : a / b; });
  check(Function::Rem, [](Wide a, Wide b) { return b == 0 ? 0 : a % b; });
  check(Function::Min, [](Wide a, Wide b) { return std::min(a, b); });
  check(Function::Max, [](Wide a, Wide b) { return std::max(a, b); });
  check(Function::And, [](Wide a, Wide b) { return a & b; });
  check(Function::Or, [](Wide a, Wide b) { return a | b; });
  check(Function::Xor, [](Wide a, Wide b) { return a ^ b; });
  check(Function::Shl, [&](Wide a, Wide b) { return amount(b) == bits ? 0 : a << amount(b); });
  check(Function::Shr, [&](Wide a, Wide b) { return a >> amount(b); });
  check(Function::Neg, [](Wide a, Wide) { return -a; });
  check(Function::Abs, [](Wide a, Wide) { return a < 0 ? -a : a; });
  check(Function::Not, [](Wide a, Wide) { return ~a; });
}

TYPED_TEST(MathInteger, ComparesByItsSign) {
  using T = typename TypeParam::Number;
  const auto [x, y] = pairs(integers<T>());
  const auto check = [&, &x = x, &y = y](Function function, auto plain) {
    const auto z = apply<std::uint8_t>(
        MapLoop::of_map(function, TypeParam::dtype, Precision::Exact, 16 / sizeof(T)), x, y);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(z[i], plain(x[i], y[i])) << tile::to_string(function) << +x[i] << ", " << +y[i];
  };
  check(Function::Equal, [](T a, T b) { return a == b; });
  check(Function::NotEqual, [](T a, T b) { return a != b; });
  check(Function::Less, [](T a, T b) { return a < b; });
  check(Function::LessEqual, [](T a, T b) { return a <= b; });
  check(Function::Greater, [](T a, T b) { return a > b; });
  check(Function::GreaterEqual, [](T a, T b) { return a >= b; });
}

TEST(SlowMathCode, CallsNothing) {
  constexpr int kLast = static_cast<int>(Function::Select);
  for (const char* const cpu : {"neoverse-v1", "haswell", "sapphirerapids"}) {
    const auto machine = machine::named(cpu);
    ASSERT_TRUE(machine.has_value());
    for (int f = static_cast<int>(Function::Neg); f <= kLast; ++f) {
      const auto function = static_cast<Function>(f);
      const bool bits = function == Function::Not || function == Function::And ||
                        function == Function::Or || function == Function::Xor ||
                        function == Function::Shl || function == Function::Shr ||
                        function == Function::MulHi;
      for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64, DType::I32}) {
        const bool of_floats = is_float(dtype) && !bits;
        const bool of_integers =
            dtype == DType::I32 && (function < Function::Exp ||
                                    (function > Function::Sigmoid && function != Function::Pow));
        if (!of_floats && !of_integers) continue;
        const unsigned lanes = static_cast<unsigned>(machine->vector_bytes / byte_width(dtype));
        const std::string text =
            assembly_of(MapLoop::of_map(function, dtype, Precision::Exact, lanes, 1), *machine);
        ASSERT_THAT(text, Not(HasSubstr("\tbl\t"))) << tile::to_string(function) << " on " << cpu;
        ASSERT_THAT(text, Not(HasSubstr("\tcall"))) << tile::to_string(function) << " on " << cpu;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::codegen
