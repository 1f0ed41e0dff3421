#include <cmath>
#include <limits>

#include "tessera/support/half.h"
#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Attrs to(std::string dtype) {
  return {{"to", std::move(dtype)}};
}

TEST(CastString, PrintsTheFewestDigitsThatReadBack) {
  expect_result({"cast_string",
                 {floats({4}, {0.9767611f, 0.039187793f, 0.2961402f, 1.0f / 3})},
                 to("string")},
                texts({4}, {"0.9767611", "0.039187793", "0.2961402", "0.33333334"}));
  expect_result(
      {"cast_string",
       {numbers(DType::F64, {4}, {0.1, 1.0 / 3, 1e15, 123456789012345678.0})},
       to("string")},
      texts({4}, {"0.1", "0.3333333333333333", "1000000000000000.0", "1.2345678901234568e+17"}));
  expect_result({"cast_string", {numbers(DType::F16, {3}, {0.1, 1.0 / 3, 65504})}, to("string")},
                texts({3}, {"0.1", "0.3333", "65500.0"}));
  expect_result({"cast_string", {numbers(DType::BF16, {2}, {0.1, 3.0})}, to("string")},
                texts({2}, {"0.1", "3.0"}));
}

TEST(CastString, PrintsExtremesAsPythonDoes) {
  expect_result(
      {"cast_string",
       {floats({8}, {-0.0f, 1e-5f, 1e-4f, 1e16f, 3.4028235e38f, kNan, kInfinity, -kInfinity})},
       to("string")},
      texts({8}, {"-0.0", "1e-05", "0.0001", "1e+16", "3.4028235e+38", "nan", "inf", "-inf"}));
}

TEST(CastString, PrintsIntegersAndTruthValues) {
  const std::vector<std::uint64_t> large = {0xFFFFFFFFFFFFFFFF};
  expect_result({"cast_string", {integers({2}, {-5, 1'000'000})}, to("string")},
                texts({2}, {"-5", "1000000"}));
  expect_result({"cast_string", {Tensor::of<std::uint64_t>(DType::U64, {1}, large)}, to("string")},
                texts({1}, {"18446744073709551615"}));
  expect_result({"cast_string", {bools({2}, {1, 0})}, to("string")}, texts({2}, {"True", "False"}));
}

TEST(CastString, ReadsFloats) {
  expect_result({"cast_string",
                 {texts({10}, {"0.47892547", "NaN", "INF", "+INF", "-inf", " 1e3 ", "1E8", "1e999",
                               "-1e-999", "1000e-999999999999999999999"})},
                 to("f32")},
                floats({10}, {0.47892547f, kNan, kInfinity, kInfinity, -kInfinity, 1000, 1e8f,
                              kInfinity, 0, 0}));
}

TEST(CastString, ReadsLiteralsBeyondTheRangeWithoutAnExponent) {
  expect_result({"cast_string",
                 {texts({2}, {std::string(400, '9'), "-0." + std::string(400, '0') + "1"})},
                 to("f64")},
                numbers(DType::F64, {2}, {kInfinity, 0}));
}

TEST(CastString, ReadsIntegersExactly) {
  expect_result({"cast_string", {texts({4}, {"9007199254740993", "-3", "+7", "100.5"})}, to("i64")},
                integers({4}, {9007199254740993, -3, 7, 100}));
  const std::vector<std::uint64_t> large = {0xFFFFFFFFFFFFFFFF};
  expect_result({"cast_string", {texts({1}, {"18446744073709551615"})}, to("u64")},
                Tensor::of<std::uint64_t>(DType::U64, {1}, large));
}

TEST(CastString, ReadsTruthValues) {
  expect_result({"cast_string", {texts({4}, {"True", "false", "0", "2"})}, to("bool")},
                bools({4}, {1, 0, 0, 1}));
}

TEST(CastString, ReadsBackWhatItPrintsForEveryHalf) {
  std::vector<Half> halves;
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits)
    halves.push_back({static_cast<std::uint16_t>(bits)});
  const Tensor x = Tensor::of<Half>(DType::F16, {static_cast<std::int64_t>(halves.size())}, halves);
  const auto printed = results_of({"cast_string", {x}, to("string")});
  expect_result({"cast_string", {printed[0]}, to("f16")}, x);
}

TEST(CastString, RefusesBadInput) {
  for (const char* text : {"", "  ", "hello", "1.5x", "0x10", "+-3", "--3", "+", "1 2"})
    expect_refused({"cast_string", {texts({1}, {text})}, to("f32")},
                   "\"" + std::string(text) + "\" is no number");
  expect_refused({"cast_string", {texts({1}, {"1e"})}, to("i32")}, "\"1e\" is no number");
  expect_refused({"cast_string", {floats({1}, {1})}, to("i32")}, "a cast from f32 to i32");
  expect_refused({"cast_string", {floats({1}, {1})}, to("f99")}, "to=f99 is no dtype");
}

}  // namespace
}  // namespace tessera::host
