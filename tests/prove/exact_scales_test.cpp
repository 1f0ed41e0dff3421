#include "tessera/prove/exact_scales.h"

#include <gtest/gtest.h>

#include <set>

#include "tessera/interp/interp.h"
#include "tessera/prove/distinguish.h"
#include "tessera/prove/widen.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera::prove {
namespace {

using testing::f32;
using testing::numbers;
using testing::parsed;
using testing::random_f32;

Prepared prepared(std::string_view text) {
  const Graph graph = parsed(text);
  PrepareOptions options;
  options.scope = "s";
  options.scales = ScaleReading::Products;
  for (const ValueId id : graph.inputs()) options.inputs.push_back(graph.type(id));
  auto made = prepare(graph, options);
  EXPECT_TRUE(made) << to_string(made.error());
  return made ? *std::move(made) : Prepared{};
}

/// The outputs of both models with exact scales.
std::vector<std::vector<double>> outputs(std::string_view source, std::string_view target,
                                         const Tensor& input, std::uint64_t seed = 1) {
  const ExactScales exact(prepared(source), prepared(target));
  const std::vector<interp::Value> values{{widened(input)}};
  const auto results = interp::run_as<double>(exact.moved(seed).graph, values, {});
  EXPECT_TRUE(results) << to_string(results.error());
  std::vector<std::vector<double>> made;
  for (const interp::Value& result : *results) made.push_back(numbers(result.datum.tensor()));
  return made;
}

constexpr std::string_view kProduct = R"(graph source(x: f32[4]) {
  bias = const i32[4] [1073741824, 1073741823, -1073741824, 7]
  s = const f32[] 0.0123
  t = const f32[] 0.0457
  st = mul(s, t)
  b = dequantize_linear(bias, st)
  y = add(x, b)
  return y
})";

TEST(ExactScales, AScaleThatIsARoundedProductIsTheProduct) {
  constexpr std::string_view rounded = R"(graph target(x: f32[4]) {
  bias = const i32[4] [1073741824, 1073741823, -1073741824, 7]
  st = const f32[] 0.00056211
  b = dequantize_linear(bias, st)
  y = add(x, b)
  return y
})";
  // The product in single precision, and its neighbour.
  ASSERT_EQ(0.0123f * 0.0457f, 0.00056211f);
  const auto both = outputs(kProduct, rounded, random_f32({4}, 1));
  EXPECT_EQ(both[0], both[1]);
  std::string other(rounded);
  other.replace(other.find("0.00056211"), 10, "0.00056212");
  const auto apart = outputs(kProduct, other, random_f32({4}, 1));
  EXPECT_GT(std::abs(apart[0][0] - apart[1][0]), 5);
}

TEST(ExactScales, TiesAreBrokenAlike) {
  // (a + b) / 2 lies between two integers half of the time.
  constexpr std::string_view apart = R"(graph source(x: f32[2, 64]) {
  s = const f32[] 0.1
  t = const f32[] 0.2
  q = quantize_linear(x, s)
  f = dequantize_linear(q, s)
  axes = const i64[1] [0]
  sum = reduce_sum(f, axes) {keepdims=0}
  y = quantize_linear(sum, t)
  return y
})";
  constexpr std::string_view together = R"(graph target(x: f32[2, 64]) {
  s = const f32[] 0.1
  t = const f32[] 0.2
  one = const f32[] 1
  q = quantize_linear(x, s)
  n = cast(q) {to="f32"}
  axes = const i64[1] [0]
  sum = reduce_sum(n, axes) {keepdims=0}
  part = div(s, t)
  z = mul(sum, part)
  y = quantize_linear(z, one)
  return y
})";
  const Tensor input = random_f32({2, 64}, 3);
  std::set<std::vector<double>> seen;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const auto both = outputs(apart, together, input, seed);
    EXPECT_EQ(both[0], both[1]);
    seen.insert(both[0]);
  }
  EXPECT_GT(seen.size(), 1u);  // there are ties
}

}  // namespace
}  // namespace tessera::prove
