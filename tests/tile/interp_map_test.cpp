#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "tests/tile/interp_run.h"

namespace tessera::tile {
namespace {

using std::int8_t, std::uint8_t, std::int32_t, std::int64_t, std::uint64_t;
using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Every pair of numbers of 8 bits.
template <class T>
std::vector<std::vector<T>> all_pairs() {
  std::vector<std::vector<T>> pairs(2);
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      pairs[0].push_back(static_cast<T>(a));
      pairs[1].push_back(static_cast<T>(b));
    }
  }
  return pairs;
}

/// Of numbers of 8 bits as integers that are wide enough; the answer wraps.
struct ByteCase {
  Function function;
  int (*expected)(int a, int b);
};

class InterpBytes : public ::testing::TestWithParam<ByteCase> {
 protected:
  template <class T>
  void check() {
    const auto pairs = all_pairs<T>();
    const std::vector<T> got = mapped(GetParam().function, pairs);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const int a = pairs[0][i], b = pairs[1][i];
      ASSERT_EQ(got[i], static_cast<T>(GetParam().expected(a, b))) << a << " and " << b;
    }
  }
};

TEST_P(InterpBytes, WrapWhenSigned) {
  check<int8_t>();
}
TEST_P(InterpBytes, WrapWhenUnsigned) {
  check<uint8_t>();
}

int floor_of(int a, int times, int divisor) {
  return static_cast<int>(std::floor(static_cast<double>(a) * times / divisor));
}

INSTANTIATE_TEST_SUITE_P(
    All, InterpBytes,
    ::testing::Values(ByteCase{Function::Add, [](int a, int b) { return a + b; }},
                      ByteCase{Function::Sub, [](int a, int b) { return a - b; }},
                      ByteCase{Function::Mul, [](int a, int b) { return a * b; }},
                      ByteCase{Function::Div, [](int a, int b) { return b == 0 ? 0 : a / b; }},
                      ByteCase{Function::Rem, [](int a, int b) { return b == 0 ? 0 : a % b; }},
                      ByteCase{Function::Min, [](int a, int b) { return a < b ? a : b; }},
                      ByteCase{Function::Max, [](int a, int b) { return a > b ? a : b; }},
                      ByteCase{Function::Minimum, [](int a, int b) { return a < b ? a : b; }},
                      ByteCase{Function::Maximum, [](int a, int b) { return a > b ? a : b; }},
                      ByteCase{Function::And, [](int a, int b) { return a & b; }},
                      ByteCase{Function::Or, [](int a, int b) { return a | b; }},
                      ByteCase{Function::Xor, [](int a, int b) { return a ^ b; }},
                      ByteCase{Function::Shl,
                               [](int a, int b) { return b < 0 || b > 7 ? 0 : a * (1 << b); }},
                      ByteCase{Function::Shr,
                               [](int a, int b) {
                                 if (b < 0 || b > 7) return a < 0 ? -1 : 0;
                                 return floor_of(a, 1, 1 << b);
                               }},
                      ByteCase{Function::MulHi, [](int a, int b) { return floor_of(a, b, 256); }}),
    [](const auto& info) { return std::string(to_string(info.param.function)); });

TEST(InterpMap, UnaryFunctionsOfBytesWrap) {
  const std::vector<int8_t> x = {0, 1, -1, 127, -128};
  EXPECT_THAT(mapped<int8_t>(Function::Neg, {x}), ElementsAre(0, -1, 1, -127, -128));
  EXPECT_THAT(mapped<int8_t>(Function::Abs, {x}), ElementsAre(0, 1, 1, 127, -128));
  EXPECT_THAT(mapped<int8_t>(Function::Not, {x}), ElementsAre(-1, -2, 0, -128, 127));
  EXPECT_THAT(mapped<uint8_t>(Function::Abs, {{200}}), ElementsAre(200));
}

TEST(InterpMap, WideIntegersWrapToo) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(mapped<int64_t>(Function::Add, {{kHigh}, {1}}), ElementsAre(kLow));
  EXPECT_THAT(mapped<int64_t>(Function::Div, {{kLow, 7}, {-1, 0}}), ElementsAre(kLow, 0));
  EXPECT_THAT(mapped<int64_t>(Function::Rem, {{kLow, -7}, {-1, 4}}), ElementsAre(0, -3));
  EXPECT_THAT(mapped<int64_t>(Function::Shr, {{kLow, kLow, 5}, {63, 64, 64}}),
              ElementsAre(-1, -1, 0));
  EXPECT_THAT(mapped<int64_t>(Function::Shl, {{1, 1, 1}, {63, 64, -1}}), ElementsAre(kLow, 0, 0));
}

TEST(InterpMap, TheUpperHalfOfAProductIsExactInEveryWidth) {
  EXPECT_THAT(mapped<int64_t>(Function::MulHi, {{INT64_MIN, INT64_MIN, -1}, {INT64_MIN, 2, 1}}),
              ElementsAre(int64_t{1} << 62, -1, -1));
  EXPECT_THAT(mapped<uint64_t>(Function::MulHi, {{UINT64_MAX}, {UINT64_MAX}}),
              ElementsAre(UINT64_MAX - 1));
  EXPECT_THAT(mapped<int32_t>(Function::MulHi, {{INT32_MIN, 1 << 20}, {INT32_MIN, 1 << 20}}),
              ElementsAre(1 << 30, 1 << 8));
  EXPECT_THAT(mapped<std::uint32_t>(Function::MulHi, {{0xd2511f53u}, {0xdeadbeefu}}),
              ElementsAre(static_cast<std::uint32_t>((0xd2511f53ull * 0xdeadbeefull) >> 32)));
}

TEST(InterpMap, TruthIsNegatedAndCombined) {
  const std::vector<Flag> a = {Flag::False, Flag::False, Flag::True, Flag::True};
  const std::vector<Flag> b = {Flag::False, Flag::True, Flag::False, Flag::True};
  EXPECT_THAT(mapped<Flag>(Function::Not, {a}),
              ElementsAre(Flag::True, Flag::True, Flag::False, Flag::False));
  EXPECT_THAT(mapped<Flag>(Function::And, {a, b}),
              ElementsAre(Flag::False, Flag::False, Flag::False, Flag::True));
  EXPECT_THAT(mapped<Flag>(Function::Or, {a, b}),
              ElementsAre(Flag::False, Flag::True, Flag::True, Flag::True));
  EXPECT_THAT(mapped<Flag>(Function::Xor, {a, b}),
              ElementsAre(Flag::False, Flag::True, Flag::True, Flag::False));
}

TEST(InterpMap, NothingComparesWithNanButUnequal) {
  const std::vector<std::vector<float>> x = {{1, 2, kNan, 2}, {2, 2, kNan, kNan}};
  const auto truths = [&](Function function) {
    std::string text;
    for (const Flag flag : mapped_to<Flag>(function, x)) text += flag == Flag::True ? '1' : '0';
    return text;
  };
  EXPECT_EQ(truths(Function::Equal), "0100");
  EXPECT_EQ(truths(Function::NotEqual), "1011");
  EXPECT_EQ(truths(Function::Less), "1000");
  EXPECT_EQ(truths(Function::LessEqual), "1100");
  EXPECT_EQ(truths(Function::Greater), "0000");
  EXPECT_EQ(truths(Function::GreaterEqual), "0100");
}

TEST(InterpMap, ComparesKnowSigns) {
  EXPECT_THAT(mapped_to<Flag>(Function::Less, std::vector<std::vector<int8_t>>{{-1}, {1}}),
              ElementsAre(Flag::True));
  EXPECT_THAT(mapped_to<Flag>(Function::Less, std::vector<std::vector<uint8_t>>{{255}, {1}}),
              ElementsAre(Flag::False));
}

TEST(InterpMap, MinAndMaxPassOverNan) {
  EXPECT_THAT(mapped<float>(Function::Min, {{kNan, 1, 1, -0.0f}, {2, kNan, 2, 0.0f}}),
              ElementsAre(2, 1, 1, -0.0f));
  EXPECT_THAT(mapped<float>(Function::Max, {{kNan, 1, 1}, {2, kNan, 2}}), ElementsAre(2, 1, 2));
}

TEST(InterpMap, MinimumAndMaximumHandNanOn) {
  const auto low = mapped<float>(Function::Minimum, {{kNan, 1, 1}, {2, kNan, 2}});
  EXPECT_TRUE(std::isnan(low[0]));
  EXPECT_TRUE(std::isnan(low[1]));
  EXPECT_EQ(low[2], 1);
  const auto high = mapped<float>(Function::Maximum, {{kNan, 1, 1, -0.0f}, {2, kNan, 2, 0.0f}});
  EXPECT_TRUE(std::isnan(high[0]));
  EXPECT_TRUE(std::isnan(high[1]));
  EXPECT_EQ(high[2], 2);
  EXPECT_FALSE(std::signbit(high[3]));
}

TEST(InterpMap, FloatFunctionsAreThoseOfTheLibrary) {
  const std::vector<float> x = {0.25f, 1.5f, 3.0f, 0.001f};
  const std::vector<std::pair<Function, double (*)(double)>> cases = {
      {Function::Exp, [](double v) { return std::exp(v); }},
      {Function::Exp2, [](double v) { return std::exp2(v); }},
      {Function::Log, [](double v) { return std::log(v); }},
      {Function::Log2, [](double v) { return std::log2(v); }},
      {Function::Sin, [](double v) { return std::sin(v); }},
      {Function::Cos, [](double v) { return std::cos(v); }},
      {Function::Tanh, [](double v) { return std::tanh(v); }},
      {Function::Erf, [](double v) { return std::erf(v); }},
      {Function::Sqrt, [](double v) { return std::sqrt(v); }},
      {Function::Rsqrt, [](double v) { return 1 / std::sqrt(v); }},
      {Function::Sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }},
      {Function::Floor, [](double v) { return std::floor(v); }},
      {Function::Ceil, [](double v) { return std::ceil(v); }},
      {Function::Neg, [](double v) { return -v; }},
  };
  for (const auto& [function, expected] : cases) {
    const std::vector<float> single = mapped<float>(function, {x});
    const std::vector<double> wide = mapped<double>(function, {{x.begin(), x.end()}});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = expected(static_cast<double>(x[i]));
      EXPECT_EQ(single[i], static_cast<float>(exact)) << to_string(function) << " of " << x[i];
      EXPECT_EQ(wide[i], exact) << to_string(function) << " of " << x[i];
    }
  }
}

TEST(InterpMap, EdgesOfFloatFunctions) {
  EXPECT_THAT(mapped<float>(Function::Exp, {{-kInf, kInf, 100}}), ElementsAre(0, kInf, kInf));
  EXPECT_THAT(mapped<float>(Function::Log, {{0, kInf}}), ElementsAre(-kInf, kInf));
  EXPECT_THAT(mapped<float>(Function::Round, {{0.5f, 1.5f, 2.5f, -0.5f, -1.5f}}),
              ElementsAre(0, 2, 2, 0, -2));
  EXPECT_THAT(mapped<float>(Function::Rem, {{5.5f, -5.5f}, {2, 2}}), ElementsAre(1.5f, -1.5f));
  EXPECT_THAT(mapped<float>(Function::Div, {{1, -1}, {0, 0}}), ElementsAre(kInf, -kInf));
  EXPECT_THAT(mapped<float>(Function::Pow, {{2, 9}, {10, 0.5f}}), ElementsAre(1024, 3));
  EXPECT_TRUE(std::signbit(mapped<float>(Function::Neg, {{0.0f}})[0]));
  EXPECT_FALSE(std::signbit(mapped<float>(Function::Abs, {{-0.0f}})[0]));
  EXPECT_TRUE(std::isnan(mapped<float>(Function::Sqrt, {{-1.0f}})[0]));
}

TEST(InterpMap, FmaRoundsOnce) {
  const float x = 1 + 0x1p-12f;  // its square needs 25 bits
  EXPECT_THAT(mapped<float>(Function::Fma, {{x}, {x}, {-1 - 0x1p-11f}}), ElementsAre(0x1p-24f));
  EXPECT_THAT(mapped<float>(Function::Mul, {{x}, {x}}), ElementsAre(1 + 0x1p-11f));
}

TEST(InterpMap, HalvesRoundAfterEveryOperation) {
  const auto half = [](double x) { return to_half(x); };
  const auto sum = mapped<Half>(Function::Add, {{half(2048), half(65504)}, {half(1), half(65504)}});
  EXPECT_EQ(to_float(sum[0]), 2048);  // 2049 lies between 2048 and 2050
  EXPECT_EQ(to_float(sum[1]), kInf);
  const auto product = mapped<BFloat16>(Function::Mul, {{to_bfloat16(257)}, {to_bfloat16(3)}});
  EXPECT_EQ(to_float(product[0]), 768);  // 257 is stored as 256
  EXPECT_NEAR(to_float(mapped<Half>(Function::Exp, {{half(1)}})[0]), std::exp(1.0), 0x1p-10);
}

TEST(InterpMap, SelectTakesOneOfTwoWhateverTheyAre) {
  std::vector<float> x = {1, kNan, 3, 4}, out(4);
  EXPECT_EQ(run(R"(kernel k(x: view f32[4], out: view f32[4]) {
                     t: f32[4] = vload(x, 0)
                     known: bool[4] = eq(t, t)
                     zero: f32[4] = 0
                     y: f32[4] = select(known, t, zero)
                     vstore(out, 0, y)
                   })",
                {view(x, {4}), view(out, {4})}),
            "");
  EXPECT_THAT(out, ElementsAre(1, 0, 3, 4));
}

TEST(InterpCast, ToIntegersTruncatesSaturatesAndDropsNan) {
  EXPECT_THAT(cast_to<int8_t>(std::vector<float>{1.9f, -1.9f, 127.5f, 200, -200, kNan, kInf}),
              ElementsAre(1, -1, 127, 127, -128, 0, 127));
  EXPECT_THAT(cast_to<uint8_t>(std::vector<float>{-0.5f, -3, 255.9f, 256}),
              ElementsAre(0, 0, 255, 255));
  EXPECT_THAT(cast_to<int64_t>(std::vector<float>{0x1p63f, -0x1p63f, 0x1p62f}),
              ElementsAre(INT64_MAX, INT64_MIN, int64_t{1} << 62));
  EXPECT_THAT(cast_to<uint64_t>(std::vector<double>{0x1p64, 0x1p63, -1}),
              ElementsAre(UINT64_MAX, uint64_t{1} << 63, 0));
}

TEST(InterpCast, BetweenIntegersWraps) {
  EXPECT_THAT(cast_to<int8_t>(std::vector<int32_t>{300, -129, 5}), ElementsAre(44, 127, 5));
  EXPECT_THAT(cast_to<uint64_t>(std::vector<int8_t>{-1}), ElementsAre(UINT64_MAX));
  EXPECT_THAT(cast_to<int64_t>(std::vector<uint8_t>{255}), ElementsAre(255));
}

TEST(InterpCast, ToFloatsRoundsOnceToNearestEven) {
  EXPECT_THAT(cast_to<float>(std::vector<int64_t>{(1 << 24) + 1, (1 << 24) + 3}),
              ElementsAre(0x1p24f, 0x1p24f + 4));
  EXPECT_EQ(to_float(cast_to<Half>(std::vector<double>{1 + 0x1p-11 + 0x1p-40})[0]), 1 + 0x1p-10f);
  // A tie of bf16 and one: rounding to double or float first would lose the one.
  EXPECT_EQ(to_float(cast_to<BFloat16>(std::vector<int64_t>{(int64_t{257} << 53) + 1})[0]),
            258 * 0x1p53f);
  EXPECT_EQ(to_float(cast_to<BFloat16>(std::vector<int64_t>{-(int64_t{257} << 53)})[0]),
            -256 * 0x1p53f);
}

TEST(InterpCast, TruthIsWhatIsNotZero) {
  EXPECT_THAT(cast_to<Flag>(std::vector<float>{0, -0.0f, 0.1f, kNan}),
              ElementsAre(Flag::False, Flag::False, Flag::True, Flag::True));
  EXPECT_THAT(cast_to<Flag>(std::vector<int32_t>{256, 0}), ElementsAre(Flag::True, Flag::False));
  EXPECT_THAT(cast_to<float>(std::vector<Flag>{Flag::True, Flag::False}), ElementsAre(1, 0));
}

TEST(InterpCast, ABitcastKeepsTheBits) {
  const auto bits = computed<int32_t>(
      std::vector<std::vector<float>>{{1.0f, -0.0f}},
      [](Builder& b, const std::vector<ValueId>& x) { return b.bitcast(x[0], DType::I32); });
  EXPECT_THAT(bits, ElementsAre(0x3f800000, INT32_MIN));
}

}  // namespace
}  // namespace tessera::tile
