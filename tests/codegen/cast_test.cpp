#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "map_loop.h"
#include "tessera/support/half.h"
#include "tessera/support/rng.h"

namespace tessera::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A long double holds every number of every dtype.
using Exact = long double;

struct Byte {
  std::uint8_t bits = 0;
};

template <class T>
Exact exact_of(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return to_float(x);
  } else if constexpr (std::is_same_v<T, Byte>) {
    return x.bits;
  } else {
    return x;
  }
}

template <class T>
constexpr bool kIsFloat =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// The double that rounds to fewer bits as x does: x cut off, with a trace of what was lost.
double to_odd(Exact x) {
  double y = static_cast<double>(x);
  if (static_cast<Exact>(y) == x || !std::isfinite(x)) return y;
  auto bits = std::bit_cast<std::uint64_t>(y);
  if (std::fabs(static_cast<Exact>(y)) > std::fabs(x)) --bits;
  return std::bit_cast<double>(bits | 1);
}

/// What Code::Cast says of a number.
template <class To, class From>
To converted(From from) {
  const Exact x = exact_of(from);
  if constexpr (std::is_same_v<To, Byte>) {
    return {x != 0};
  } else if constexpr (std::is_same_v<To, Half>) {
    return to_half(to_odd(x));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return to_bfloat16(to_odd(x));
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(x);
  } else if constexpr (kIsFloat<From>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(x)) return 0;
    if (x <= static_cast<Exact>(Limits::min())) return Limits::min();
    if (x >= static_cast<Exact>(Limits::max())) return Limits::max();
    return static_cast<To>(x);
  } else if constexpr (std::is_same_v<From, Byte>) {
    return static_cast<To>(from.bits);
  } else {
    return static_cast<To>(from);
  }
}

using All = std::tuple<StoredAs<DType::F16, Half>, StoredAs<DType::BF16, BFloat16>,
                       StoredAs<DType::F32, float>, StoredAs<DType::F64, double>,
                       StoredAs<DType::I8, std::int8_t>, StoredAs<DType::I16, std::int16_t>,
                       StoredAs<DType::I32, std::int32_t>, StoredAs<DType::I64, std::int64_t>,
                       StoredAs<DType::U8, std::uint8_t>, StoredAs<DType::U16, std::uint16_t>,
                       StoredAs<DType::U32, std::uint32_t>, StoredAs<DType::U64, std::uint64_t>,
                       StoredAs<DType::Bool, Byte>>;

template <class T>
T from_bits(std::uint64_t bits) {
  T x;
  std::memcpy(static_cast<void*>(&x), &bits, sizeof(T));
  return x;
}

/// Numbers of every kind: any bits, any size, halfway between numbers of another type.
template <class T>
std::vector<T> samples() {
  Rng rng(9);
  std::vector<T> result;
  if constexpr (std::is_same_v<T, Byte>) {
    for (int i = 0; i < 64; ++i) result.push_back({static_cast<std::uint8_t>(i % 2)});
  } else {
    for (const double x :
         {0.0,     -0.0,    1.0,     -1.0,   0.5,     -0.5,   1.5,    2.5,     -2.5,     127.0,
          127.5,   128.0,   -128.5,  -129.0, 255.0,   255.5,  256.0,  32767.5, -32768.5, 65504.0,
          65519.0, 65520.0, 65536.0, 0x1p31, -0x1p31, 0x1p32, 0x1p63, -0x1p63, 0x1p64,   3.3e38,
          1e39,    3.4e38,  1e-8,    6e-8,   1e-40,   1e-45,  1e300})
      result.push_back(converted<T>(x));
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t bits = rng.next();
      result.push_back(from_bits<T>(bits));
      result.push_back(
          converted<T>(static_cast<double>(static_cast<std::int64_t>(bits >> rng.below(64)))));
      result.push_back(
          converted<T>((rng.uniform() - 0.5) * std::ldexp(1, static_cast<int>(rng.below(70)))));
      // near halfway between two numbers of 8, 11 and 24 bits
      const int few[] = {8, 11, 24};
      const double tie = std::ldexp(static_cast<double>(2 * (bits >> (64 - few[i % 3])) + 1),
                                    static_cast<int>(rng.below(40)) - 4);
      result.push_back(converted<T>(tie));
      result.push_back(converted<T>(tie + 1));
      result.push_back(converted<T>(std::nextafter(tie, 0.0)));
    }
    if constexpr (kIsFloat<T>) {
      for (const double x : {HUGE_VAL, -HUGE_VAL, std::nan("")}) result.push_back(converted<T>(x));
    } else if constexpr (sizeof(T) == 8) {
      // Rounding these to f64 first would hide on which side of a tie they are.
      for (int i = 30; i < 63; ++i) {
        for (const std::uint64_t half :
             {std::uint64_t{1} << (i - 24), std::uint64_t{1} << (i - 8)}) {
          for (const std::uint64_t near : {half - 1, half, half + 1}) {
            result.push_back(static_cast<T>((std::uint64_t{1} << i) + near));
            result.push_back(static_cast<T>(-((std::uint64_t{1} << i) + near)));
          }
        }
      }
    }
  }
  return result;
}

template <class From, class To>
void check_pair(unsigned lanes, std::optional<std::string> features = {}) {
  using In = typename From::Number;
  using Out = typename To::Number;
  std::vector<In> x = samples<In>();
  MapLoop loop = MapLoop::of_cast(From::dtype, To::dtype, lanes, 2);
  loop.features = std::move(features);
  const CompiledMap map(loop);
  x.resize(x.size() / map.step() * map.step());
  std::vector<Out> y(x.size());
  map(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Exact expected = exact_of(converted<Out>(x[i])), found = exact_of(y[i]);
    if (std::isnan(expected) ? std::isnan(found)
                             : found == expected && std::signbit(found) == std::signbit(expected))
      continue;
    FAIL() << to_string(From::dtype) << " " << static_cast<double>(exact_of(x[i])) << " to "
           << to_string(To::dtype) << " gives " << static_cast<double>(found) << ", not "
           << static_cast<double>(expected) << ", in vectors of " << lanes;
  }
}

template <class T>
class Cast : public ::testing::Test {};
template <class Tuple>
struct TypesOf;
template <class... T>
struct TypesOf<std::tuple<T...>> {
  using Types = ::testing::Types<T...>;
};
struct DTypeName {
  template <class T>
  static std::string GetName(int) {
    return std::string(to_string(T::dtype));
  }
};
TYPED_TEST_SUITE(Cast, TypesOf<All>::Types, DTypeName);

TYPED_TEST(Cast, ToEveryTypeRoundsOnceOrSaturatesOrWraps) {
  std::apply(
      [](auto... to) {
        (check_pair<TypeParam, decltype(to)>(16 / sizeof(typename TypeParam::Number)), ...);
      },
      All{});
}

TYPED_TEST(Cast, SlowOfScalarsIsTheSame) {
  std::apply([](auto... to) { (check_pair<TypeParam, decltype(to)>(1), ...); }, All{});
}

TYPED_TEST(Cast, SlowEmittedForOtherProcessorsIsTheSame) {
  const unsigned lanes = 16 / sizeof(typename TypeParam::Number);
  std::vector<const char*> others = {"", "+sse2"};
#if !defined(__x86_64__)  // whose conversion to bf16 takes subnormals for zeros
  if (machine::host().has("bf16")) others.push_back("+bf16,+fullfp16");
#endif
  for (const char* const features : others)
    std::apply([&](auto... to) { (check_pair<TypeParam, decltype(to)>(lanes, features), ...); },
               All{});
}

TEST(SlowCastCode, CallsNothing) {
  const auto check = [](const machine::Machine& machine, DType from, DType to) {
    const int bytes = std::max({byte_width(from), byte_width(to), 1});
    for (const unsigned lanes : {1u, static_cast<unsigned>(machine.vector_bytes / bytes)}) {
      const std::string text = assembly_of(MapLoop::of_cast(from, to, lanes, 1), machine);
      ASSERT_THAT(text, Not(HasSubstr("\tbl\t"))) << to_string(from) << " to " << to_string(to);
      ASSERT_THAT(text, Not(HasSubstr("\tcall"))) << to_string(from) << " to " << to_string(to);
    }
  };
  for (const char* const cpu : {"neoverse-v1", "haswell"}) {
    const auto machine = machine::named(cpu);
    ASSERT_TRUE(machine.has_value());
    for (int from = 0; from <= static_cast<int>(DType::Bool); ++from)
      for (int to = 0; to <= static_cast<int>(DType::Bool); ++to)
        check(*machine, static_cast<DType>(from), static_cast<DType>(to));
  }
}

}  // namespace
}  // namespace tessera::codegen
