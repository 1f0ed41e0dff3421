#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tessera/engine/engine.h"
#include "tessera/interp/interp.h"
#include "tessera/program/compile.h"
#include "tessera/runtime/session.h"
#include "tessera/support/half.h"
#include "tessera/support/rng.h"
#include "tessera/support/small_float.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"
#include "tests/support/small_float_cases.h"

// Small types in compiled programs and in the interpreter.

namespace tessera::program {
namespace {

using testing::boundaries;
using testing::parsed;
using testing::small_floats;

constexpr DType kAllSmall[] = {DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ,
                               DType::F8E8M0,   DType::F4E2M1,     DType::I4,     DType::U4,
                               DType::I2,       DType::U2};

/// What a graph gives, interpreted and compiled; nothing of it is interpreted in the program.
std::vector<Tensor> results(const Graph& graph, const std::vector<Tensor>& inputs) {
  const std::vector<Datum> data(inputs.begin(), inputs.end());
  std::vector<Tensor> found;
  const auto interpreted = interp::run(graph, data, {});
  EXPECT_TRUE(interpreted) << to_string(interpreted.error());
  const auto compiled = compile(graph, {});
  EXPECT_TRUE(compiled) << to_string(compiled.error());
  if (!interpreted || !compiled) return found;
  EXPECT_TRUE(compiled->report.interpreted.empty());
  found.push_back((*interpreted)[0].tensor());
  const auto loaded = runtime::LoadedProgram::load(compiled->program);
  EXPECT_TRUE(loaded) << to_string(loaded.error());
  if (!loaded) return found;
  const auto session =
      runtime::Session::create(*loaded, {.threads = 2, .host = engine::interpreter_host()});
  EXPECT_TRUE(session);
  const auto outputs = (*session)->run(data);
  EXPECT_TRUE(outputs) << to_string(outputs.error());
  if (!outputs) return found;
  found.push_back((*outputs)[0].tensor());
  return found;
}

/// Both are `expected`, number by number; a zero of either sign is that zero.
void expect_both(const std::string& text, const std::vector<Tensor>& inputs,
                 const Tensor& expected) {
  SCOPED_TRACE(text.substr(0, 200));
  const std::vector<Tensor> found = results(parsed(text), inputs);
  ASSERT_EQ(found.size(), 2);
  for (const Tensor& tensor : found) {
    ASSERT_EQ(tensor.dtype, expected.dtype);
    ASSERT_EQ(tensor.shape, expected.shape);
    for (std::int64_t i = 0; i < expected.count(); ++i) {
      const double a = number_at(tensor, i), e = number_at(expected, i);
      ASSERT_TRUE((std::isnan(a) && std::isnan(e)) || a == e)
          << "element " << i << " is " << a << " instead of " << e << ", "
          << (&tensor == &found[0] ? "interpreted" : "compiled");
      ASSERT_TRUE(std::isnan(e) || std::signbit(a) == std::signbit(e)) << "element " << i;
    }
  }
}

/// All elements that a type has, in a list that is longer than a vector and of odd length.
Tensor all_of(DType dtype) {
  const std::int64_t count = std::int64_t{1} << bit_width(dtype), length = 3 * count + 7;
  std::vector<std::uint8_t> bits;
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t of = i % count;
    bits.push_back(static_cast<std::uint8_t>(is_float(dtype) ? of : wrapped_to(dtype, of)));
  }
  return Tensor::of<std::uint8_t>(dtype, {length}, bits);
}

Tensor converted(const Tensor& x, DType to) {
  return testing::tensor(to, x.shape, testing::numbers(x));
}

TEST(SmallTypes, AreConvertedToNumbers) {
  for (const DType dtype : kAllSmall)
    for (const DType to : {DType::F32, DType::F16, DType::BF16, DType::F64}) {
      const Tensor x = all_of(dtype);
      expect_both(fmt::format("graph(x: {}[{}]) {{ return cast(x) {{to=\"{}\"}} }}",
                              to_string(dtype), x.count(), to_string(to)),
                  {x}, converted(x, to));
    }
}

TEST(SmallTypes, SmallIntegersAreConvertedToIntegersAndTruthValues) {
  for (const DType dtype : {DType::I4, DType::U4, DType::I2, DType::U2})
    for (const DType to : {DType::I8, DType::U8, DType::I64, DType::Bool}) {
      const Tensor x = all_of(dtype);
      std::vector<std::uint8_t> memory(static_cast<std::size_t>(x.count() * byte_width(to)));
      for (std::int64_t i = 0; i < x.count(); ++i)
        store_integer(to, reinterpret_cast<std::byte*>(memory.data()), i, integer_at(x, i));
      const Tensor expected{to, x.shape, Bytes::copy(std::as_bytes(std::span(memory)))};
      expect_both(fmt::format("graph(x: {}[{}]) {{ return cast(x) {{to=\"{}\"}} }}",
                              to_string(dtype), x.count(), to_string(to)),
                  {x}, expected);
    }
}

/// Conversions of numbers to a small float, each as `round` has it.
void expect_rounded(const Tensor& x, DType to, const char* attrs,
                    const std::function<double(double)>& round) {
  std::vector<double> expected;
  for (const double number : testing::numbers(x)) expected.push_back(round(number));
  expect_both(fmt::format("graph(x: {}[{}]) {{ return cast(x) {{to=\"{}\"{}}} }}",
                          to_string(x.dtype), x.count(), to_string(to), attrs),
              {x}, testing::tensor(to, x.shape, expected));
}

template <class T>
void expect_all_rounded(DType from) {
  for (const auto& [dtype, numbers] : small_floats()) {
    const std::vector<double> points = boundaries<T>(dtype, numbers);
    const Tensor x = testing::tensor(from, {static_cast<std::int64_t>(points.size())}, points);
    if (dtype == DType::F8E8M0) continue;
    const double most = largest_number(dtype);
    expect_rounded(x, dtype, "",
                   [&](double n) { return std::isnan(n) ? n : std::clamp(n, -most, most); });
    expect_rounded(x, dtype, ", saturate=0", [](double n) { return n; });
  }
}

TEST(SmallTypes, FloatsAreRounded) {
  expect_all_rounded<float>(DType::F32);
  expect_all_rounded<double>(DType::F64);
  expect_all_rounded<float>(DType::F16);
}

/// A power of two as ONNX's Cast has it for f8e8m0.
TEST(SmallTypes, ScalesAreRoundedUpDownAndToTheNearest) {
  const DType dtype = DType::F8E8M0;
  const std::vector<double> numbers = small_floats().at(dtype);
  for (const DType from : {DType::F32, DType::F64}) {
    const std::vector<double> points =
        from == DType::F32 ? boundaries<float>(dtype, numbers) : boundaries<double>(dtype, numbers);
    const Tensor x = testing::tensor(from, {static_cast<std::int64_t>(points.size())}, points);
    for (const bool saturates : {true, false})
      for (const std::string mode : {"up", "down", "nearest"}) {
        const auto round = [&](double n) -> double {
          if (std::isnan(n)) return n;
          if (saturates) n = std::clamp(n, 0x1p-127, 0x1p127);
          if (!(n >= 0x1p-127 && n < 0x1p128)) return NAN;
          double power = 0x1p-127;
          while (2 * power <= n) power *= 2;
          if ((mode == "up" && power < n) || (mode == "nearest" && n >= 1.5 * power)) power *= 2;
          return power;
        };
        expect_rounded(
            x, dtype,
            fmt::format(", saturate={}, round_mode=\"{}\"", saturates ? 1 : 0, mode).c_str(),
            round);
      }
  }
}

TEST(SmallTypes, AreConvertedToEachOther) {
  for (const DType from : kAllSmall)
    for (const DType to : kAllSmall) {
      if (from == to || to == DType::F8E8M0) continue;
      const Tensor x = all_of(from);
      std::vector<double> expected;
      for (const double n : testing::numbers(x)) {
        if (is_float(to))
          expected.push_back(
              std::isnan(n) ? n : std::clamp(n, -largest_number(to), largest_number(to)));
        else if (std::isnan(n))
          expected.push_back(0);
        else  // far away numbers saturate in 64 bits
          expected.push_back(static_cast<double>(
              wrapped_to(to, n >= 0x1p63    ? std::numeric_limits<std::int64_t>::max()
                             : n <= -0x1p63 ? std::numeric_limits<std::int64_t>::min()
                                            : static_cast<std::int64_t>(n))));
      }
      expect_both(fmt::format("graph(x: {}[{}]) {{ return cast(x) {{to=\"{}\"}} }}",
                              to_string(from), x.count(), to_string(to)),
                  {x}, testing::tensor(to, x.shape, expected));
    }
}

TEST(SmallTypes, IntegersWrap) {
  const Tensor x = testing::i64({9}, {0, 1, -1, 7, 8, -9, 15, 16, 1000});
  for (const DType dtype : {DType::I4, DType::U4, DType::I2, DType::U2}) {
    std::vector<double> expected;
    for (const std::int64_t n : integers_of(x))
      expected.push_back(static_cast<double>(wrapped_to(dtype, n)));
    const Tensor result = testing::tensor(dtype, x.shape, expected);
    for (const DType from : {DType::I64, DType::I16, DType::F32, DType::F16})
      expect_both(fmt::format("graph(x: {}[9]) {{ return cast(x) {{to=\"{}\"}} }}", to_string(from),
                              to_string(dtype)),
                  {converted(x, from)}, result);
  }
}

TEST(SmallTypes, AreMovedAsTheyAre) {
  for (const DType dtype : kAllSmall) {
    const std::int64_t count = std::int64_t{1} << bit_width(dtype);
    std::vector<std::uint8_t> bits;
    for (std::int64_t i = 0; i < 7 * 5 * 3; ++i)
      bits.push_back(
          static_cast<std::uint8_t>(is_float(dtype) ? i % count : wrapped_to(dtype, i % count)));
    const Tensor x = Tensor::of<std::uint8_t>(dtype, {7, 5, 3}, bits);
    const DType storage = storage_of(dtype);
    const Tensor bytes{storage, x.shape, x.bytes};
    for (const char* call :
         {"identity(x)", "transpose(x) {perm=[2, 0, 1]}", "reshape(x, [3, 35])",
          "slice(x, [1, 4], [6, -9], [0, 1], [2, -1])", "gather(x, [4, 0, -1]) {axis=1}",
          "concat(x, x) {axis=2}",
          "concat(transpose(x) {perm=[1, 0, 2]}, reshape(x, [5, 7, 3])) {axis=0}",
          "expand(unsqueeze(x, [0]), [2, 7, 5, 3])", "tile(x, [1, 2, 3])",
          "where(greater([1.0, 0.0, 2.0], 0.5), x, transpose(x) {perm=[0, 1, 2]})", "flatten(x)",
          "squeeze(unsqueeze(x, [3]), [3])"}) {
      SCOPED_TRACE(to_string(dtype));
      const auto text = [&](DType of) {
        return fmt::format("graph(x: {}[7, 5, 3]) {{ return {} }}", to_string(of), call);
      };
      // The bytes say where each element goes.
      const auto moved = interp::run(parsed(text(storage)), std::vector<Datum>{bytes}, {});
      ASSERT_TRUE(moved) << to_string(moved.error());
      Tensor expected = (*moved)[0].tensor();
      expected.dtype = dtype;
      expect_both(text(dtype), {x}, expected);
    }
  }
}

TEST(SmallTypes, AreMovedByTheirBytes) {
  std::vector<std::uint8_t> bits, expected;
  for (int i = 0; i < 256; ++i) bits.push_back(static_cast<std::uint8_t>(i));
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 8; ++j) expected.push_back(static_cast<std::uint8_t>(32 * j + i));
  // There are several kinds of NaN, which no conversion would keep apart.
  const Tensor x = Tensor::of<std::uint8_t>(DType::F8E5M2, {8, 32}, bits);
  const std::vector<Tensor> found =
      results(parsed("graph(x: f8e5m2[8, 32]) { return transpose(x) }"), {x});
  ASSERT_EQ(found.size(), 2);
  EXPECT_TRUE(std::ranges::equal(found[1].as<std::uint8_t>(), expected));
}

TEST(SmallTypes, ArePaddedWithTheirOwn) {
  const Tensor x = testing::tensor(DType::I4, {2, 3}, {1, -2, 3, -4, 5, -6});
  expect_both("graph(x: i4[2, 3]) { return pad(x, [0, 1, 0, 2], const i4[] -7) }", {x},
              testing::tensor(DType::I4, {2, 6}, {-7, 1, -2, 3, -7, -7, -7, -4, 5, -6, -7, -7}));
  const Tensor y = testing::tensor(DType::F8E5M2, {3}, {0.5, INFINITY, -1e-5});
  expect_both("graph(x: f8e5m2[3]) { return pad(x, [1, 1], const f8e5m2[] 1.25) }", {y},
              testing::tensor(DType::F8E5M2, {5}, {1.25, 0.5, INFINITY, -1e-5, 1.25}));
  expect_both("graph(x: f8e4m3fn[2]) { return pad(x, [1, 0]) }",
              {testing::tensor(DType::F8E4M3FN, {2}, {3, -448})},
              testing::tensor(DType::F8E4M3FN, {3}, {0, 3, -448}));
}

TEST(SmallTypes, OfNoElementsAreResultsToo) {
  for (const DType dtype : kAllSmall)
    expect_both(
        fmt::format("graph(x: {}[0, 4]) {{ return cast(x) {{to=\"f32\"}} }}", to_string(dtype)),
        {Tensor{dtype, {0, 4}, {}}}, Tensor{DType::F32, {0, 4}, {}});
}

/// Numbers of a small type that are drawn.
Tensor drawn(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < *element_count(shape); ++i)
    numbers.push_back(is_float(dtype) ? 12 * rng.uniform() - 6
                                      : static_cast<double>(wrapped_to(
                                            dtype, static_cast<std::int64_t>(rng.below(16)))));
  return testing::tensor(dtype, std::move(shape), numbers);
}

TEST(SmallTypes, WeightsAreDequantizedByBlocks) {
  constexpr std::int64_t rows = 37, columns = 11, block = 16, blocks = 3;
  for (const DType dtype : {DType::I4, DType::U4, DType::I2, DType::F8E4M3FN, DType::F4E2M1}) {
    const Tensor w = drawn(dtype, {rows, columns}, 1), zero = drawn(dtype, {blocks, columns}, 2);
    const Tensor scale = testing::random_f32({blocks, columns}, 3);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t at = i / block * columns + j;
        const auto level = static_cast<float>(number_at(w, i * columns + j) - number_at(zero, at));
        expected.push_back(level * static_cast<float>(number_at(scale, at)));
      }
    expect_both(fmt::format("graph(w: {0}[37, 11], s: f32[3, 11], z: {0}[3, 11]) {{ "
                            "return dequantize_linear(w, s, z) {{axis=0, block_size=16}} }}",
                            to_string(dtype)),
                {w, scale, zero}, testing::f32({rows, columns}, expected));
  }
}

TEST(SmallTypes, WeightsOfAProductAreConstantsOrInputs) {
  const Tensor x = testing::random_f32({5, 64}, 1), scale = testing::random_f32({2, 24}, 2);
  const Tensor w = drawn(DType::U4, {64, 24}, 3), zero = drawn(DType::U4, {2, 24}, 4);
  std::vector<double> sums;
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 24; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < 64; ++k) {
        const std::int64_t at = k / 32 * 24 + j;
        sum += number_at(x, i * 64 + k) * number_at(scale, at) *
               (number_at(w, k * 24 + j) - number_at(zero, at));
      }
      sums.push_back(sum);
    }
  const Tensor expected = testing::f32({5, 24}, sums);
  const auto list = [](const Tensor& tensor) {
    return fmt::format("{}", fmt::join(integers_of(tensor), ", "));
  };
  const std::string product =
      "return matmul(x, dequantize_linear(w, s, z) {axis=0, block_size=32})";
  const std::string inputs = fmt::format(
      "graph(x: f32[5, 64], s: f32[2, 24], w: u4[64, 24], z: u4[2, 24]) {{ {} }}", product);
  const std::string constants = fmt::format(
      "graph(x: f32[5, 64], s: f32[2, 24]) {{ w = const u4[64, 24] [{}]  z = const u4[2, 24] [{}] "
      " {} }}",
      list(w), list(zero), product);
  for (const bool known : {true, false}) {
    std::vector<Tensor> given = {x, scale};
    if (!known) given.insert(given.end(), {w, zero});
    const std::vector<Tensor> found = results(parsed(known ? constants : inputs), given);
    ASSERT_EQ(found.size(), 2);
    for (const Tensor& tensor : found) testing::expect_near(tensor, expected, 1e-4);
  }
}

TEST(SmallTypes, QuantizationSaturates) {
  const Tensor x = testing::f32({6}, {0, 2.2, -3.7, 1000, -1000, 9.49});
  const auto quantized = [&](DType dtype, const char* attrs, const std::vector<double>& expected) {
    expect_both(fmt::format("graph(x: f32[6]) {{ return quantize_linear(x, 0.5) "
                            "{{output_dtype=\"{}\"{}}} }}",
                            to_string(dtype), attrs),
                {x}, testing::tensor(dtype, {6}, expected));
  };
  quantized(DType::I4, "", {0, 4, -7, 7, -8, 7});
  quantized(DType::U4, "", {0, 4, 0, 15, 0, 15});
  quantized(DType::I2, "", {0, 1, -2, 1, -2, 1});
  quantized(DType::U2, "", {0, 3, 0, 3, 0, 3});
  quantized(DType::F8E4M3FN, "", {0, 4.5, -7.5, 448, -448, 18});
  quantized(DType::F8E4M3FN, ", saturate=0", {0, 4.5, -7.5, NAN, NAN, 18});
  quantized(DType::F4E2M1, "", {0, 4, -6, 6, -6, 6});
}

}  // namespace
}  // namespace tessera::program
