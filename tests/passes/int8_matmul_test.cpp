#include "tessera/passes/int8_matmul.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/engine/engine.h"
#include "tessera/interp/interp.h"
#include "tessera/program/compile.h"
#include "tessera/runtime/session.h"
#include "tessera/support/rng.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera::program {
namespace {

using testing::parsed;

/// A constant of random numbers in the text form.
std::string numbers_of(const char* dtype, const std::vector<std::int64_t>& shape, int low, int high,
                       double scale = 1) {
  Rng rng(static_cast<std::uint64_t>(shape[0]));
  std::vector<std::string> all;
  for (std::int64_t i = 0; i < *element_count(shape); ++i) {
    const int number = low + static_cast<int>(rng.below(static_cast<std::uint64_t>(high - low)));
    all.push_back(scale == 1 ? fmt::format("{}", number) : fmt::format("{:f}", number * scale));
  }
  return fmt::format("const {}[{}] [{}]", dtype, fmt::join(shape, ", "), fmt::join(all, ", "));
}

/// It is computed in integers, and what the interpreter computes in numbers is the same.
void expect_integers(const std::string& text, const std::vector<Tensor>& inputs, const char* op) {
  SCOPED_TRACE(text.substr(0, 200));
  const Graph graph = parsed(text);
  const Graph made = passes::int8_matmul(graph);
  const bool found =
      std::ranges::any_of(made.nodes(), [&](const GraphNode& node) { return node.op->name == op; });
  EXPECT_TRUE(found);
  const std::vector<Datum> data(inputs.begin(), inputs.end());
  const auto expected = interp::run(graph, data, {});
  ASSERT_TRUE(expected) << to_string(expected.error());
  const auto compiled = compile(graph, {});
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  EXPECT_TRUE(compiled->report.interpreted.empty());
  const auto loaded = runtime::LoadedProgram::load(compiled->program);
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  const auto session =
      runtime::Session::create(*loaded, {.threads = 2, .host = engine::interpreter_host()});
  ASSERT_TRUE(session);
  const auto outputs = (*session)->run(data);
  ASSERT_TRUE(outputs) << to_string(outputs.error());
  testing::expect_near((*outputs)[0].tensor(), (*expected)[0].tensor(), 1e-5);
}

TEST(IntegerProducts, OfDequantizedConvolutions) {
  for (const char* dtype : {"u8", "i8"}) {
    const bool is_signed = dtype[0] == 'i';
    expect_integers(
        fmt::format("graph(x: f32[2, 8, 9, 7]) {{ w = {}  t = {}  u = {}  b = {}  "
                    "q = quantize_linear(x, 0.0078125, const {}[] {})  "
                    "d = dequantize_linear(q, 0.0078125, const {}[] {})  "
                    "c = conv(d, dequantize_linear(w, t, u) {{axis=0}}, b) {{pads=[1, 1, 1, 1], "
                    "strides=[2, 1]}}  return relu(c) }}",
                    numbers_of("i8", {24, 8, 3, 3}, -127, 127),
                    numbers_of("f32", {24}, 1, 30, 1e-3), numbers_of("i8", {24}, 0, 1),
                    numbers_of("f32", {24}, -9, 9, 0.1), dtype, is_signed ? -3 : 131, dtype,
                    is_signed ? -3 : 131),
        {testing::random_f32({2, 8, 9, 7}, 1)}, "conv_integer");
  }
}

TEST(IntegerProducts, OfDequantizedMatrices) {
  for (const char* call : {"matmul(d, dequantize_linear(w, 0.01, z))",
                           "gemm(d, dequantize_linear(w, 0.01, z), b) {alpha=0.5}"})
    expect_integers(
        fmt::format("graph(x: f32[5, 40]) {{ w = {}  z = const u8[] 131  b = {}  "
                    "q = quantize_linear(x, 0.0078125, const u8[] 120)  "
                    "d = dequantize_linear(q, 0.0078125, const u8[] 120)  return {} }}",
                    numbers_of("u8", {40, 33}, 0, 255), numbers_of("f32", {33}, -9, 9, 0.1), call),
        {testing::random_f32({5, 40}, 1)}, "matmul_integer");
  expect_integers(
      fmt::format("graph(x: f32[5, 40]) {{ w = {}  t = {}  "
                  "q = quantize_linear(x, 0.0078125, const i8[] 0)  "
                  "d = dequantize_linear(q, 0.0078125, const i8[] 0)  "
                  "return gemm(d, dequantize_linear(w, t) {{axis=0}}) {{transB=1}} }}",
                  numbers_of("i8", {33, 40}, -127, 127), numbers_of("f32", {33}, 1, 30, 1e-3)),
      {testing::random_f32({5, 40}, 1)}, "matmul_integer");
}

TEST(IntegerProducts, ZeroPointsOfChannelsThatAreAllZeroCostNothing) {
  const auto steps = [](const std::string& zero) {
    const auto compiled = compile(
        parsed(fmt::format("graph(x: u8[1, 16, 9, 7]) {{ w = {}  u = {}  "
                           "return conv_integer(x, w, const u8[] 3, u) {{pads=[1, 1, 1, 1]}} }}",
                           numbers_of("i8", {24, 16, 3, 3}, -127, 127), zero)),
        {});
    EXPECT_TRUE(compiled) << to_string(compiled.error());
    return compiled->program.steps.size();
  };
  EXPECT_EQ(steps(numbers_of("i8", {24}, 0, 1)), steps("const i8[] 0"));
  EXPECT_GT(steps(numbers_of("i8", {24}, -2, 2)), steps("const i8[] 0"));
}

TEST(IntegerProducts, LeaveDepthwiseConvolutionsAlone) {
  const Graph graph = parsed(fmt::format(
      "graph(x: u8[1, 16, 9, 7]) {{ w = {}  "
      "return conv(dequantize_linear(x, 0.5), dequantize_linear(w, 0.01)) {{group=16}} }}",
      numbers_of("i8", {16, 1, 3, 3}, -127, 127)));
  EXPECT_EQ(passes::int8_matmul(graph).hash(), graph.hash());
}

}  // namespace
}  // namespace tessera::program
