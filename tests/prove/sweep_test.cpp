#include "tessera/prove/sweep.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/interp/interp.h"
#include "tessera/ir/builder.h"
#include "tessera/prove/distinguish.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera::prove {
namespace {

using testing::f32;
using testing::numbers;
using testing::parsed;
using testing::random_f32;

SweepResult swept(const Graph& source, const Graph& target) {
  auto result = sweep(source, target, {});
  EXPECT_TRUE(result) << to_string(result.error());
  return result ? *std::move(result) : SweepResult{};
}

std::string reason(const SweepResult& result) {
  if (const auto* unknown = std::get_if<Unknown>(&result.verdict)) return unknown->why;
  if (const auto* refuted = std::get_if<Refuted>(&result.verdict)) return refuted->what;
  return {};
}

void expect_verdict(std::string_view verdict, std::string_view source, std::string_view target) {
  const SweepResult result = swept(parsed(source), parsed(target));
  EXPECT_EQ(to_string(result.verdict), verdict) << reason(result) << "\n"
                                                << source << "\n"
                                                << target;
}

/// A refutation has to hold when its input is run again.
void expect_sweep_refuted(const Graph& source, const Graph& target) {
  const SweepResult result = swept(source, target);
  const auto* refuted = std::get_if<Refuted>(&result.verdict);
  ASSERT_NE(refuted, nullptr) << to_string(result.verdict) << ": " << reason(result);
  const auto again = distinguishes(source, target, refuted->inputs, {});
  ASSERT_TRUE(again) << to_string(again.error());
  ASSERT_TRUE(again->has_value());
  EXPECT_EQ((*again)->position, refuted->position);
}

/// The same verdict in both orders.
void expect_in_both_orders(std::string_view verdict, std::string_view source,
                           std::string_view target) {
  expect_verdict(verdict, source, target);
  expect_verdict(verdict, target, source);
}

TEST(Sweep, DoesNotDependOnWhichModelComesFirst) {
  expect_in_both_orders("proved", "graph(x: f32[4]) { return exp(log(exp(x))) }",
                        "graph(x: f32[4]) { return exp(x) }");
  expect_in_both_orders("proved", "graph(x: f32[4]) { return div(mul(x, 3.0), 3.0) }",
                        "graph(x: f32[4]) { return identity(x) }");
  // A slice of negative size is a guard of the target, and a relation of the source.
  expect_in_both_orders("proved",
                        "graph(x: f32[n, m]) { a = slice(x, [0], [2], [1], [1])"
                        " b = slice(x, [2], [9223372036854775807], [1], [1])"
                        " return concat(a, b) {axis=1} }",
                        "graph(x: f32[n, m]) { return identity(x) }");
}

TEST(Sweep, TellsSizesApartThatMeetByBroadcasting) {
  expect_in_both_orders("refuted",
                        "graph(x: f32[n], y: f32[m]) { return reduce_sum(add(x, y), [0]) }",
                        "graph(x: f32[n], y: f32[m]) {"
                        " return add(reduce_sum(x, [0]), reduce_sum(y, [0])) }");
  expect_in_both_orders("refuted", "graph(x: f32[n], y: f32[m]) { return shape(x) }",
                        "graph(x: f32[n], y: f32[m]) { return shape(add(x, y)) }");
  // All cases are proved: equal sizes, and each of them 1.
  expect_in_both_orders("proved", "graph(x: f32[n], y: f32[m]) { return exp(add(x, y)) }",
                        "graph(x: f32[n], y: f32[m]) { return mul(exp(x), exp(y)) }");
}

TEST(Sweep, OneNameForTwoSizesIsAnAssumption) {
  const SweepResult result = swept(parsed("graph(x: f32[n], y: f32[n]) { return add(x, y) }"),
                                   parsed("graph(x: f32[a], y: f32[b]) { return add(y, x) }"));
  const auto* proved = std::get_if<Proved>(&result.verdict);
  ASSERT_NE(proved, nullptr) << reason(result);
  EXPECT_EQ(std::ranges::count(proved->assumptions, Assumption::Kind::Sizes, &Assumption::kind), 1);
}

std::ptrdiff_t assumptions_of(Assumption::Kind kind, std::string_view source,
                              std::string_view target) {
  const SweepResult result = swept(parsed(source), parsed(target));
  const auto* proved = std::get_if<Proved>(&result.verdict);
  EXPECT_NE(proved, nullptr) << reason(result);
  return proved == nullptr ? 0 : std::ranges::count(proved->assumptions, kind, &Assumption::kind);
}

TEST(Sweep, SizesOfInputsThatNothingReadsAreAnything) {
  expect_in_both_orders("refuted", "graph(w: f32[2], x: f32[n]) { return mul(w, 0.0) }",
                        "graph(w: f32[2], x: f32[n]) { return mul(x, 0.0) }");
  expect_in_both_orders("refuted", "graph(x: f32[n]) { return const f32[2] [0, 0] }",
                        "graph(x: f32[n]) { return mul(x, 0.0) }");
}

TEST(Sweep, SizesThatOneModelRefusesAreAnAssumption) {
  struct Pair {
    std::string one, other;
    std::ptrdiff_t assumptions;
  };
  std::vector<Pair> pairs = {
      {"reshape(reshape(x, [-1, 2]), shape(x))", "identity(x)", 1},
      {"mul(reduce_sum(max_pool(unsqueeze(x, [0, 1])) {kernel_shape=[5]}), 0.0)",
       "mul(reduce_sum(unsqueeze(x, [0, 1])), 0.0)", 1},
      {"concat(slice(x, [0], [2], [0], [1]), slice(x, [2], [9223372036854775807], [0], [1])) "
       "{axis=0}",
       "identity(x)", 0},
  };
  const std::pair<const char*, std::ptrdiff_t> zeros[] = {
      {"add(x, f32[2] [1, 2])", 1},  {"expand(x, i64[1] [4])", 1},
      {"expand(x, shape(x))", 0},    {"depth_to_space(unsqueeze(x, [0, 2, 3])) {blocksize=2}", 1},
      {"pad(x, i64[2] [-2, 0])", 1},
  };
  for (const auto& [of, assumptions] : zeros)
    pairs.push_back({fmt::format("mul(reduce_sum({}) {{keepdims=0}}, 0.0)", of),
                     "mul(reduce_sum(x) {keepdims=0}, 0.0)", assumptions});
  for (const auto& [one, other, assumptions] : pairs) {
    SCOPED_TRACE(one);
    const std::string source = fmt::format("graph(x: f32[n]) {{ return {} }}", one),
                      target = fmt::format("graph(x: f32[n]) {{ return {} }}", other);
    EXPECT_EQ(assumptions_of(Assumption::Kind::Sizes, source, target), assumptions);
    EXPECT_EQ(assumptions_of(Assumption::Kind::Sizes, target, source), assumptions);
    EXPECT_EQ(assumptions_of(Assumption::Kind::Sizes, source, source), 0);
  }
}

// A tolerance that hangs on the largest element would hide all others.
TEST(Sweep, ComparesFoldedConstantsElementByElement) {
  for (const char* huge : {"-3.4e38", "-inf", "1e9"}) {
    const auto masked = [&](const char* other) {
      return fmt::format(
          "graph(x: f32[2, 2]) {{ m = const f32[2, 2] [0.0, {}, {}, 0.0]"
          " return softmax(add(x, add(m, f32[1] [0.0]))) }}",
          huge, other);
    };
    expect_in_both_orders("refuted", masked("0.0"), masked("0.5"));
    expect_in_both_orders("refuted", masked("0.0"), masked(huge));
  }
}

TEST(Sweep, ProvesWhatIsOnlyCalledAndOrderedOtherwise) {
  expect_verdict("proved",
                 "graph(x: f32[2, 4], y: f32[2, 4]) { a = relu(x) b = exp(y) return add(a, b) }",
                 "graph(x: f32[2, 4], y: f32[2, 4]) { q = exp(y) p = relu(x) return add(p, q) }");
}

TEST(Sweep, PairsInputsByNameBeforePosition) {
  expect_verdict("proved", "graph(x: f32[2], y: f32[2]) { return sub(x, y) }",
                 "graph(y: f32[2], x: f32[2]) { return sub(x, y) }");
  expect_verdict("proved", "graph(x: f32[2], y: f32[2]) { return sub(x, y) }",
                 "graph(a: f32[2], b: f32[2]) { return sub(a, b) }");
  expect_verdict("refuted", "graph(x: f32[2], y: f32[2]) { return sub(x, y) }",
                 "graph(y: f32[2], x: f32[2]) { return sub(y, x) }");
}

TEST(Sweep, SeesThroughIdentitiesAndComputedConstants) {
  expect_verdict(
      "proved",
      "graph(x: f32[2, 3]) {"
      " w = const f32[3, 2] [1, 2, 3, 4, 5, 6]"
      " return matmul(identity(x), transpose(transpose(w) {perm=[1, 0]}) {perm=[1, 0]}) }",
      "graph(x: f32[2, 3]) {"
      " w = const f32[3, 2] [1, 2, 3, 4, 5, 6]"
      " return matmul(x, w) }");
}

TEST(Sweep, ProvesACompositeEqualToItsParts) {
  expect_verdict("proved", "graph(x: f32[2, 8]) { return relu(hard_swish(x)) }",
                 "graph(x: f32[2, 8]) {"
                 " return relu(mul(x, hard_sigmoid(x) {alpha=0.16666666666666666, beta=0.5})) }");
}

TEST(Sweep, ProvesOperandsSwapped) {
  expect_verdict("proved", "graph(x: f32[2, 8], y: f32[2, 8]) { return relu(add(x, y)) }",
                 "graph(x: f32[2, 8], y: f32[2, 8]) { return relu(add(y, x)) }");
}

TEST(Sweep, ProvesAProductTakenApart) {
  expect_verdict("proved",
                 "graph(x: f32[1, 4, 8], w: f32[8, 6], b: f32[6]) {"
                 " return tanh(add(matmul(x, w), b)) }",
                 "graph(x: f32[1, 4, 8], w: f32[8, 6], b: f32[6]) {"
                 " return tanh(reshape(gemm(reshape(x, [4, 8]), w, b), [1, 4, 6])) }");
}

TEST(Sweep, FollowsATransposeThroughElementwiseOperators) {
  expect_verdict("proved",
                 "graph(x: f32[2, 3, 4]) { return tanh(exp(transpose(x) {perm=[2, 0, 1]})) }",
                 "graph(x: f32[2, 3, 4]) { return transpose(tanh(exp(x))) {perm=[2, 0, 1]} }");
}

TEST(Sweep, ProvesForAllSizesThatHaveANameInBothModels) {
  expect_verdict("proved", "graph(x: f32[n, 8]) { return relu(add(x, x)) }",
                 "graph(x: f32[batch, 8]) { return relu(mul(x, 2.0)) }");
}

TEST(Sweep, ComparesSubgraphsByWhatTheyCompute) {
  const std::string_view source =
      "graph(c: bool[], x: f32[2]) {"
      " return if_else(c, x) { then(p) { return relu(p) } else(p) { return p } } }";
  expect_verdict(
      "proved", source,
      "graph(c: bool[], x: f32[2]) {"
      " return if_else(c, x) { then(q) { r = relu(q) return r } else(q) { return q } } }");
  expect_verdict("refuted", source,
                 "graph(c: bool[], x: f32[2]) {"
                 " return if_else(c, x) { then(p) { return exp(p) } else(p) { return p } } }");
}

TEST(Sweep, NeverTakesTwoRandomDrawsForOne) {
  const SweepResult result =
      swept(parsed("graph(x: f32[4]) { return add(x, random_normal() {shape=[4]}) }"),
            parsed("graph(x: f32[4]) { return add(x, random_normal() {shape=[4]}) }"));
  EXPECT_FALSE(std::holds_alternative<Proved>(result.verdict));
}

/// conv, then batch normalization; or, folded, conv with other weights and a bias.
struct Normalized {
  Tensor weight = random_f32({4, 3, 3, 3}, 1), scale = random_f32({4}, 2),
         shift = random_f32({4}, 3), mean = random_f32({4}, 4),
         variance = f32({4}, {0.5, 1.5, 0.1, 2});

  Graph apart() const {
    GraphBuilder g;
    const Val x = g.input("x", DType::F32, {1, 3, 8, 8});
    const Val y = g.op("conv", {x, g.constant(weight)});
    const Val z = g.op("batch_normalization", {y, g.constant(scale), g.constant(shift),
                                               g.constant(mean), g.constant(variance)});
    return *g.finish({{"y", g.op("relu", {z})}});
  }

  Graph folded(double damage = 0) const {
    std::vector<double> weights = numbers(weight), bias;
    for (std::size_t f = 0; f < 4; ++f) {
      const double factor = numbers(scale)[f] / std::sqrt(numbers(variance)[f] + 1e-5);
      for (std::size_t i = 0; i < 27; ++i) weights[27 * f + i] *= factor;
      bias.push_back(numbers(shift)[f] - numbers(mean)[f] * factor);
    }
    weights[30] += damage;
    GraphBuilder g;
    const Val x = g.input("x", DType::F32, {1, 3, 8, 8});
    const Val y =
        g.op("conv", {x, g.constant(f32({4, 3, 3, 3}, weights)), g.constant(f32({4}, bias))});
    return *g.finish({{"y", g.op("relu", {y})}});
  }
};

TEST(Sweep, ProvesBatchNormalizationFoldedIntoWeights) {
  const Normalized models;
  for (const bool swapped : {false, true}) {
    SCOPED_TRACE(swapped);
    const SweepResult result =
        swapped ? swept(models.folded(), models.apart()) : swept(models.apart(), models.folded());
    const auto* proved = std::get_if<Proved>(&result.verdict);
    ASSERT_NE(proved, nullptr) << reason(result);
    EXPECT_EQ(std::ranges::count(proved->assumptions, Assumption::Kind::Domain, &Assumption::kind),
              0);  // variances are positive
  }
}

TEST(Sweep, RefutesADamagedWeight) {
  const Normalized models;
  expect_sweep_refuted(models.apart(), models.folded(0.3));
  expect_sweep_refuted(models.folded(), models.folded(0.3));
}

TEST(Sweep, DoesNotProveADamageThatIsTooSmallToShow) {
  const Normalized models;
  for (const double damage : {1.5e-5, 2e-5}) {
    const SweepResult result = swept(models.apart(), models.folded(damage));
    EXPECT_EQ(to_string(result.verdict), "unknown") << damage;
    EXPECT_TRUE(result.unrelated.has_value());
  }
}

/// Convolutions between quantized images, one after the other, each with a bias.
struct Quantized {
  static constexpr int kLayers = 3, kChannels = 16;

  static Tensor integers(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed,
                         double scale) {
    std::vector<double> values = numbers(random_f32(shape, seed));
    Buffer buffer(values.size() * static_cast<std::size_t>(byte_width(dtype)));
    for (std::size_t i = 0; i < values.size(); ++i)
      store_integer(dtype, buffer.data(), static_cast<std::int64_t>(i),
                    static_cast<std::int64_t>(std::clamp(scale * values[i], -127.0, 127.0)));
    return {dtype, std::move(shape), std::move(buffer).freeze()};
  }

  /// As a tool writes it, between dequantize and quantize, or with operators of integers. `damage`
  /// is added to a weight of the second convolution.
  static Graph model(bool of_integers, int damage = 0) {
    GraphBuilder g;
    const Val x = g.input("x", DType::F32, {1, kChannels, 24, 24});
    const auto number = [&](float value) { return g.constant(f32({}, {value})); };
    const auto zero_point = [&](DType dtype, int value) {
      Buffer buffer(1);
      store_integer(dtype, buffer.data(), 0, value);
      return g.constant(Tensor{dtype, {}, std::move(buffer).freeze()});
    };
    const float image_scales[] = {0.0173f, 0.0611f, 0.0527f, 0.0713f};
    const int zeros[] = {121, 117, 131, 125};
    Val q = g.op("quantize_linear", {x, number(image_scales[0]), zero_point(DType::U8, zeros[0])});
    for (int layer = 0; layer < kLayers; ++layer) {
      const auto seed = static_cast<std::uint64_t>(10 * layer);
      Tensor weight = integers(DType::I8, {kChannels, kChannels, 3, 3}, seed + 1, 60);
      if (layer == 1) {
        Buffer bytes(weight.bytes.size());
        std::ranges::copy(weight.bytes.view(), bytes.data());
        store_integer(DType::I8, bytes.data(), 777, integer_at(weight, 777) > 0 ? -damage : damage);
        if (damage != 0) weight.bytes = std::move(bytes).freeze();
      }
      const Val w = g.constant(weight, "w" + std::to_string(layer)),
                b = g.constant(integers(DType::I32, {kChannels}, seed + 2, 50));
      const Val sx = number(image_scales[layer]), sw = number(0.00317f),
                sy = number(image_scales[layer + 1]);
      const Val zx = zero_point(DType::U8, zeros[layer]), zw = zero_point(DType::I8, 0),
                zy = zero_point(DType::U8, zeros[layer + 1]);
      const Attrs padded{{"pads", Ints{1, 1, 1, 1}}};
      if (of_integers) {
        q = g.op("qlinear_conv", {q, sx, zx, w, sw, zw, sy, zy, b}, padded);
      } else {
        const Val y =
            g.op("conv",
                 {g.op("dequantize_linear", {q, sx, zx}), g.op("dequantize_linear", {w, sw, zw}),
                  g.op("dequantize_linear", {b, number(image_scales[layer] * 0.00317f)})},
                 padded);
        q = g.op("quantize_linear", {y, sy, zy});
      }
      g.name(q, "q" + std::to_string(layer));
    }
    return *g.finish({{"y", g.op("dequantize_linear", {q, number(image_scales[kLayers]),
                                                       zero_point(DType::U8, zeros[kLayers])})}});
  }
};

TEST(Sweep, RefutesADamagedWeightOfAQuantizedModel) {
  for (const bool swapped : {false, true}) {
    SCOPED_TRACE(swapped);
    EXPECT_EQ(to_string(swept(Quantized::model(swapped), Quantized::model(!swapped)).verdict),
              "proved");
    const SweepResult result = swept(Quantized::model(swapped), Quantized::model(!swapped, 90));
    ASSERT_EQ(to_string(result.verdict), "refuted") << reason(result);
    ASSERT_TRUE(result.divergence && result.divergence->weight);
    EXPECT_EQ(result.divergence->weight->source, "w1");
    EXPECT_EQ(result.divergence->weight->differing, 1);
  }
}

TEST(Sweep, LooksUpTheRowsOfATableThatDiffer) {
  const auto model = [](double damage) {
    std::vector<double> table = numbers(random_f32({5000, 4}, 7));
    table[4 * 4321 + 2] += damage;
    GraphBuilder g;
    const Val ids = g.input("ids", DType::I64, {1, 6});
    return *g.finish({{"y", g.op("gather", {g.constant(f32({5000, 4}, table), "table"), ids})}});
  };
  expect_sweep_refuted(model(0), model(0.5));
}

TEST(Sweep, FindsTheIndicesThatEachOperatorAccepts) {
  // `i` has to be 0, `j` less than 3, `k` may be any row.
  const auto model = [](std::string_view last) {
    return fmt::format(
        "graph(x: f32[1, 4], y: f32[3, 4], z: f32[2000, 4], i: i64[6], j: i64[6], k: i64[6]) {{"
        " a = gather(x, i) b = gather(y, j) c = gather(z, k) return a, b, {}(c) }}",
        last);
  };
  expect_sweep_refuted(parsed(model("relu")), parsed(model("abs")));
  expect_sweep_refuted(parsed(model("abs")), parsed(model("relu")));
}

TEST(Sweep, RefutesAResultThatIsAlwaysOfSinglePrecision) {
  expect_sweep_refuted(parsed("graph(x: f32[1, 2]) { return ml_linear_regressor(x)"
                              " {coefficients=[0.5, 1.0, 2.0, 0.25], intercepts=[0.25, 0.5],"
                              " targets=2} }"),
                       parsed("graph(x: f32[1, 2]) { return relu(x) }"));
}

TEST(Sweep, AValueMayBeAnOutputMoreThanOnce) {
  expect_sweep_refuted(parsed("graph(x: f32[2]) { a = relu(x) b = neg(x) return a, a, b }"),
                       parsed("graph(x: f32[2]) { a = relu(x) b = neg(x) return a, b, b }"));
}

TEST(Sweep, FollowsElementsThatAreMovedByConstants) {
  expect_in_both_orders("proved",
                        "graph(x: bool[2, 3]) { return reshape(gather(flatten(x) {axis=2},"
                        " i64[2, 1, 3] [0, 1, 2, 3, 4, 5]), [2, 1, 3]) }",
                        "graph(x: bool[2, 3]) { return gather_nd(x, i64[2, 1, 3, 2]"
                        " [0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2]) }");
  // Element 4 for element 5.
  expect_in_both_orders(
      "refuted", "graph(x: bool[2, 3]) { return gather(flatten(x) {axis=2}, i64[2] [0, 4]) }",
      "graph(x: bool[2, 3]) { return unsqueeze(gather_nd(x, i64[2, 2] [0, 0, 1, 2]), [1]) }");
  // A choice by data is no constant movement.
  expect_in_both_orders("unknown", "graph(x: f32[4], i: i64[4]) { return gather(gather(x, i), i) }",
                        "graph(x: f32[4], i: i64[4]) { return gather(x, gather(i, i)) }");
}

TEST(Sweep, SizesInNarrowIntegersMayWrapAround) {
  const SweepResult result = swept(
      parsed("graph(x: f32[n]) { s = cast(shape(x)) {to=\"i32\"} return mul(mul(s, s), s) }"),
      parsed("graph(x: f32[n]) { s = cast(shape(x)) {to=\"i32\"} return mul(s, mul(s, s)) }"));
  const auto* proved = std::get_if<Proved>(&result.verdict);
  ASSERT_NE(proved, nullptr) << reason(result);
  EXPECT_TRUE(std::ranges::any_of(proved->assumptions, [](const Assumption& assumption) {
    return assumption.kind == Assumption::Kind::WrapAround;
  }));
}

TEST(Sweep, SizesOfInputsHaveToBeTheSameExpression) {
  EXPECT_FALSE(sweep(parsed("graph(x: f32[2*n]) { return relu(x) }"),
                     parsed("graph(x: f32[n]) { return relu(x) }"), {}));
  expect_in_both_orders("proved", "graph(y: f32[n], x: f32[2*n]) { return relu(x), y }",
                        "graph(y: f32[m], x: f32[2*m]) { return max(x, 0.0), y }");
}

TEST(Sweep, DrawsMasksThatMask) {
  // The constants that follow differ where the mask is 0 alone; its other operand looks up rows.
  const auto model = [](std::string_view masked) {
    return fmt::format(
        "graph(table: f32[2000, 4], ids: i64[3], mask: i64[3, 4]) {{ x = gather(table, ids)"
        " return where(cast(mask) {{to=\"bool\"}}, x, {}) }}",
        masked);
  };
  expect_sweep_refuted(parsed(model("-1.0")), parsed(model("-2.0")));
}

TEST(Sweep, RefutesAnotherText) {
  expect_sweep_refuted(parsed("graph(x: string[3], y: string[3]) { return string_concat(x, y) }"),
                       parsed("graph(x: string[3], y: string[3]) { return string_concat(y, x) }"));
  // Texts of numbers, too.
  expect_sweep_refuted(
      parsed("graph(x: string[16]) { return cast_string(x) {to=\"f32\"} }"),
      parsed("graph(x: string[16]) { return mul(2.0, cast_string(x) {to=\"f32\"}) }"));
}

TEST(Sweep, RefutesAnotherAttributeAndAnotherEdge) {
  expect_sweep_refuted(parsed("graph(x: f32[2, 4]) { return softmax(x) {axis=1} }"),
                       parsed("graph(x: f32[2, 4]) { return softmax(x) {axis=0} }"));
  expect_sweep_refuted(parsed("graph(x: f32[2, 4]) { a = relu(x) b = tanh(a) return add(a, b) }"),
                       parsed("graph(x: f32[2, 4]) { a = relu(x) b = tanh(x) return add(a, b) }"));
}

TEST(Sweep, RefutesAnotherShape) {
  const SweepResult result = swept(parsed("graph(x: f32[2, 3]) { return relu(x) }"),
                                   parsed("graph(x: f32[2, 3]) { return relu(transpose(x)) }"));
  EXPECT_EQ(to_string(result.verdict), "refuted");
  EXPECT_EQ(reason(result), "the shapes are [2, 3] and [3, 2]");
}

TEST(Sweep, DoesNotTakeAnOverflowForADifference) {
  expect_verdict("proved", "graph(x: f32[2, 3]) { return sqrt(mul(x, x)) }",
                 "graph(x: f32[2, 3]) { return log(exp(max(neg(x), x))) }");
}

TEST(Sweep, SaysWhereInputsDoNotFit) {
  const auto result = sweep(parsed("graph(x: f32[2], y: f32[2]) { return add(x, y) }"),
                            parsed("graph(x: f32[2]) { return add(x, x) }"), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().id, "prove-inputs");
}

TEST(Sweep, SaysWhatIsAskedOfOperandsThatNoResultNeeds) {
  const auto expect_kind = [](Assumption::Kind kind, std::string_view source,
                              std::string_view target) {
    const SweepResult result = swept(parsed(source), parsed(target));
    const auto* proved = std::get_if<Proved>(&result.verdict);
    ASSERT_NE(proved, nullptr) << source;
    EXPECT_TRUE(std::ranges::any_of(proved->assumptions, [&](const Assumption& assumption) {
      return assumption.kind == kind;
    })) << source;
  };
  expect_kind(Assumption::Kind::Indices,
              "graph(x: f32[5], i: i64[4], u: f32[4]) { q = scatter_elements(x, i, u)"
              " return sub(q, q) }",
              "graph(x: f32[5], i: i64[4], u: f32[4]) { return mul(x, 0.0) }");
  expect_kind(Assumption::Kind::Domain,
              "graph(x: i64[5], y: i64[5]) { q = div(x, y) return sub(q, q) }",
              "graph(x: i64[5], y: i64[5]) { return mul(x, 0) }");
}

TEST(Sweep, ComputesNoConstantsThatAreNotDefined) {
  // Zero is what this computer makes of them, and another something else.
  const auto expect_not_proved = [](std::string_view source, std::string_view target) {
    EXPECT_NE(to_string(swept(parsed(source), parsed(target)).verdict), "proved") << source;
  };
  const auto expect_assumed = [](Assumption::Kind kind, std::string_view source,
                                 std::string_view target) {
    const SweepResult result = swept(parsed(source), parsed(target));
    const auto* proved = std::get_if<Proved>(&result.verdict);
    EXPECT_TRUE(proved == nullptr || std::ranges::any_of(proved->assumptions,
                                                         [&](const Assumption& assumption) {
                                                           return assumption.kind == kind;
                                                         }))
        << source;
  };
  const std::string_view zero = "graph(x: i64[3]) { return add(x, 0) }";
  expect_not_proved("graph(x: i64[3]) { return add(x, div(1, 0)) }", zero);
  expect_not_proved("graph(x: i64[3]) { return add(x, mod(1, 0)) }", zero);
  expect_not_proved("graph(x: i64[3]) { return add(x, pow(0, -1)) }", zero);
  expect_assumed(Assumption::Kind::WrapAround,
                 "graph(x: i32[3]) { return add(x, mul(i32[] 65536, i32[] 65536)) }",
                 "graph(x: i32[3]) { return add(x, i32[] 0) }");
  expect_assumed(Assumption::Kind::NonFinite,
                 "graph(x: i32[3]) { return add(x, cast(nan) {to=\"i32\"}) }",
                 "graph(x: i32[3]) { return add(x, i32[] 0) }");
  expect_assumed(Assumption::Kind::WrapAround,
                 "graph(x: i32[3]) { return add(x, cast(3e9) {to=\"i32\"}) }",
                 "graph(x: i32[3]) { return add(x, i32[] -1294967296) }");
  expect_verdict("proved", "graph(x: i64[3]) { return add(x, div(9, 2)) }",
                 "graph(x: i64[3]) { return add(x, 4) }");
  // What is not defined may be left out by a choice, as in the buckets of T5's positions.
  expect_verdict("proved",
                 "graph(x: i64[2]) { return add(x, where(bool[2] [true, false],"
                 " cast(log(f32[2] [0.0, 1.0])) {to=\"i64\"}, i64[2] [7, 8])) }",
                 "graph(x: i64[2]) { a = cast(log(f32[2] [0.0, 1.0])) {to=\"i64\"}"
                 " return add(where(bool[2] [true, false], a, i64[2] [7, 8]), x) }");
}

TEST(Sweep, ConstantsThatNothingRoundsAreTheirNumbers) {
  const auto expect_not_proved = [](std::string_view source) {
    EXPECT_NE(
        to_string(swept(parsed(source), parsed("graph(x: f32[3]) { return sub(x, 16777220.0) }"))
                      .verdict),
        "proved")
        << source;
  };
  expect_not_proved("graph(x: f32[3]) { return sub(x, identity(16777216.0)) }");
  expect_not_proved("graph(x: f32[3]) { return sub(x, neg(-16777216.0)) }");
  expect_not_proved("graph(x: f32[3]) { return sub(x, cast(16777216) {to=\"f32\"}) }");
  expect_verdict("proved", "graph(x: f32[3]) { return sub(x, identity(16777220.0)) }",
                 "graph(x: f32[3]) { return sub(x, 16777220.0) }");
}

TEST(Sweep, ReadsEachConstantInOneWay) {
  // y is 0 for c = 1/sqrt(2), and u is not 0 for the number that c is.
  const auto source = [](std::string_view results) {
    return fmt::format(R"(graph(x: f32[2, 3]) {{
      c = const f32[] 0.70710677  half = const f32[] 0.5
      many = const f32[] 33554432.0  large = const f32[] 1000000.0
      cx = mul(c, x)  square = mul(c, cx)  hx = mul(half, x)  rest = sub(hx, square)
      u = mul(rest, many)  above = sub(u, large)  y = relu(above)
      return {}
    }})",
                       results);
  };
  const auto target = [](std::string_view results) {
    return fmt::format(R"(graph(x: f32[2, 3]) {{
      k = const f32[] 0.57425964  zero = const f32[] 0.0  large = const f32[] 1000000.0
      none = mul(zero, x)  above = sub(none, large)  y = relu(above)  u = mul(k, x)
      return {}
    }})",
                       results);
  };
  expect_in_both_orders("proved", source("y"), target("y"));
  expect_in_both_orders("proved", source("u"), target("u"));
  expect_in_both_orders("unknown", source("y, u"), target("y, u"));
}

TEST(Sweep, SaysTheShapeOfAnInputOfUnknownRank) {
  const Graph source = parsed(R"(graph(x: f32[...]) { y = relu(x) z = relu(y) return z })"),
              target = parsed(R"(graph(x: f32[2, 3]) { y = relu(x) return y })");
  for (const SweepResult& result : {swept(source, target), swept(target, source)}) {
    const auto* proved = std::get_if<Proved>(&result.verdict);
    ASSERT_NE(proved, nullptr) << reason(result);
    EXPECT_THAT(proved->assumptions,
                ::testing::Contains(Assumption{Assumption::Kind::Sizes, "x is f32[2, 3]"}));
  }
}

TEST(Sweep, SizesThatFollowFromDataMeetByBroadcasting) {
  const SweepResult result = swept(
      parsed("graph(x: f32[4], y: f32[4]) { i = non_zero(x) j = non_zero(y)"
             " return reduce_sum(add(cast(i) {to=\"f32\"}, cast(j) {to=\"f32\"})) {keepdims=0} }"),
      parsed("graph(x: f32[4], y: f32[4]) { i = non_zero(x) j = non_zero(y)"
             " a = reduce_sum(cast(i) {to=\"f32\"}) {keepdims=0}"
             " b = reduce_sum(cast(j) {to=\"f32\"}) {keepdims=0} return add(a, b) }"));
  if (const auto* proved = std::get_if<Proved>(&result.verdict)) {
    std::string text;
    for (const Assumption& assumption : proved->assumptions) text += assumption.text + "\n";
    EXPECT_THAT(text, ::testing::HasSubstr("axis 1 of i == axis 1 of j"));
    EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("declares")));
  }
}

TEST(Sweep, ConditionsOnSizesHoldInTheirCases) {
  const SweepResult result =
      swept(parsed("graph(x: f32[n, k], y: f32[l, m]) { return einsum(x, y)"
                   " {equation=\"ij,jk->ik\"} }"),
            parsed("graph(x: f32[n, k], y: f32[l, m]) { return matmul(x, y) }"));
  const auto* proved = std::get_if<Proved>(&result.verdict);
  ASSERT_NE(proved, nullptr);
  for (const Assumption& assumption : proved->assumptions)
    EXPECT_FALSE(assumption.text.starts_with("k == 1:") || assumption.text.starts_with("l == 1:"))
        << assumption.text;
  // A scale for each of m elements is not repeated where m is 1, as one that multiplies is.
  expect_verdict("unknown",
                 "graph(x: f32[n, 1], scale: f32[k]) { return layer_normalization(x, scale) }",
                 "graph(x: f32[n, 1], scale: f32[k]) { mean = reduce_mean(x, [1])"
                 " d = sub(x, mean) v = reduce_mean(mul(d, d), [1])"
                 " return mul(div(d, sqrt(add(v, 0.00001))), scale) }");
}

TEST(Sweep, ChoicesThatOnlyRoundingMakesDifferentRefuteNothing) {
  // Numbers above 40 have the sigmoid 1 in double.
  for (const std::string_view function : {"sigmoid", "tanh", "exp"})
    expect_in_both_orders(
        "unknown", "graph(x: f32[n, 4]) { return arg_max(x) {axis=1} }",
        fmt::format("graph(x: f32[n, 4]) {{ return arg_max({}(x)) {{axis=1}} }}", function));
  expect_in_both_orders("unknown", "graph(x: f32[n, 4]) { return arg_max(x) {axis=1} }",
                        "graph(x: f32[n, 4]) { return arg_max(sqrt(x)) {axis=1} }");
}

TEST(Sweep, ChoicesAmongExactNumbersRefute) {
  expect_in_both_orders("refuted", "graph(x: f32[n, 4]) { return arg_max(x) {axis=1} }",
                        "graph(x: f32[n, 4]) { return arg_max(relu(x)) {axis=1} }");
  expect_in_both_orders("refuted", "graph(x: f32[n, 4]) { return round(x) }",
                        "graph(x: f32[n, 4]) { h = const f32[] 0.5  return floor(add(x, h)) }");
}

TEST(Sweep, TheLastOfTheLargestInShortRowsIsAnother) {
  for (const int size : {2, 3, 4})
    expect_in_both_orders(
        "refuted", fmt::format("graph(x: f32[2, {}]) {{ return arg_max(x) {{axis=1}} }}", size),
        fmt::format("graph(x: f32[2, {}]) {{ return arg_max(x) {{axis=1, select_last_index=1}} }}",
                    size));
}

TEST(Sweep, WhatIsNotDefinedOnOneSideRefutesNothing) {
  // Two negative numbers have no roots, but their product has one.
  expect_in_both_orders("unknown", "graph(x: f32[n], y: f32[n]) { return sqrt(mul(x, y)) }",
                        "graph(x: f32[n], y: f32[n]) { return mul(sqrt(x), sqrt(y)) }");
  expect_in_both_orders(
      "refuted", "graph(x: f32[n], y: f32[n]) { return sqrt(mul(x, y)) }",
      "graph(x: f32[n], y: f32[n]) { c = const f32[] 0.01  return add(mul(sqrt(x), sqrt(y)), c) }");
}

TEST(Sweep, WhatIsDefinedForNoInputOnOneSideRefutes) {
  expect_in_both_orders(
      "refuted", "graph(x: f32[n, 3]) { c = const f32[3] [1.0, 2.0, 3.0]  return mul(x, sqrt(c)) }",
      "graph(x: f32[n, 3]) { c = const f32[3] [1.0, 2.0, -3.0]  return mul(x, sqrt(c)) }");
}

}  // namespace
}  // namespace tessera::prove
