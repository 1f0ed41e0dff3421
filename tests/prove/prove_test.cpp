#include "tessera/prove/prove.h"

#include <gtest/gtest.h>

#include "tessera/certify/check.h"
#include "tessera/prove/refute.h"
#include "tessera/support/cpu_time.h"
#include "tests/support/graph_check.h"

namespace tessera::prove {
namespace {

using testing::parsed;

/// Two bodies of graphs with the same inputs, `x: f32[m, n]`.
struct Equation {
  std::string inputs, source, target;
  std::string guard = "";          // what the target needs
  std::ptrdiff_t assumptions = 0;  // how many constants stand for a real
};

std::pair<Graph, Graph> graphs(const Equation& equation) {
  const auto graph = [&](const std::string& body) {
    const bool statements = body.find("return") != std::string::npos;
    return parsed("graph(" + equation.inputs + ") { " + (statements ? "" : "return ") + body +
                  " }");
  };
  return {graph(equation.source), graph(equation.target)};
}

std::string in_words(const Verdict& verdict) {
  if (const auto* unknown = std::get_if<Unknown>(&verdict)) return "unknown: " + unknown->why;
  if (const auto* refuted = std::get_if<Refuted>(&verdict)) return "refuted: " + refuted->what;
  return "proved where " + to_text(std::get<Proved>(verdict).guard);
}

/// The equation is proved, and its certificate is one also after it was written and read.
void expect_proved(const Equation& equation) {
  SCOPED_TRACE(equation.source + "\n= " + equation.target);
  const auto [source, target] = graphs(equation);
  const Verdict verdict = prove(source, target, {});
  const auto* proved = std::get_if<Proved>(&verdict);
  ASSERT_NE(proved, nullptr) << in_words(verdict);
  EXPECT_EQ(to_text(proved->guard), equation.guard);
  EXPECT_EQ(std::ranges::count(proved->assumptions, Assumption::Kind::Constant, &Assumption::kind),
            equation.assumptions);
  const auto accepted = certify::check(proved->certificate);
  EXPECT_TRUE(accepted) << to_string(accepted.error());
  const std::string text = to_text(proved->certificate);
  const auto again = certify::parse_certificate(text);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(to_text(*again), text);
  const auto reread = certify::check(*again);
  EXPECT_TRUE(reread) << to_string(reread.error());
}

void expect_not_proved(const Equation& equation) {
  SCOPED_TRACE(equation.source + "\n= " + equation.target);
  const auto [source, target] = graphs(equation);
  const Verdict verdict = prove(source, target, {});
  EXPECT_FALSE(std::holds_alternative<Proved>(verdict)) << in_words(verdict);
}

void expect_refuted(const Equation& equation) {
  SCOPED_TRACE(equation.source + "\n= " + equation.target);
  const auto [source, target] = graphs(equation);
  const Verdict verdict = prove(source, target, {});
  const auto* refuted = std::get_if<Refuted>(&verdict);
  ASSERT_NE(refuted, nullptr) << in_words(verdict);
  const auto again = replay(source, target, *refuted);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_TRUE(*again);
}

const std::string kMatrix = "x: f32[m, n]";
const std::string kTwo = "x: f32[m, n], y: f32[m, n]";
const std::string kImage = "x: f32[n, c, h, w], k: f32[f, c, 3, 3]";

TEST(Prove, DistributionOverSumsOfProducts) {
  const std::string inputs = "a: f32[n, n], b: f32[n, n], c: f32[n, n], d: f32[n, n]";
  expect_proved({inputs, "add(matmul(a, add(b, c)), matmul(d, add(b, c)))",
                 "add(matmul(add(a, d), b), matmul(add(a, d), c))"});
  expect_proved({inputs, "mul(add(a, b), add(c, d))",
                 "add(add(mul(a, c), mul(a, d)), add(mul(b, c), mul(b, d)))"});
  expect_refuted({inputs, "add(matmul(a, add(b, c)), matmul(d, add(b, c)))",
                  "add(matmul(add(a, d), b), matmul(add(a, b), c))"});
}

TEST(Prove, AMaximumIsOneOfWhatItIsTakenOf) {
  expect_proved({kMatrix, "mul(relu(x), relu(x))", "mul(x, relu(x))"});
  expect_proved({kMatrix, "mul(abs(x), abs(x))", "mul(x, x)"});
  expect_proved({kMatrix, "relu(add(relu(x), x))", "relu(add(relu(x), relu(x)))"});
  expect_proved({kMatrix, "sub(relu(x), relu(neg(x)))", "mul(x, 1.0)"});
  const std::string two = kMatrix + ", y: f32[m, n]";
  expect_proved({two, "mul(add(relu(x), y), relu(x))", "mul(add(x, y), relu(x))"});
  expect_proved({two, "add(max(x, y), min(x, y))", "add(x, y)"});
  expect_proved({two, "mul(max(x, y), min(x, y))", "mul(x, y)"});
  expect_refuted({kMatrix, "mul(relu(x), relu(x))", "mul(x, x)"});
  expect_refuted({two, "relu(add(relu(x), y))", "relu(add(x, y))"});
  expect_refuted({two, "mul(max(x, y), max(x, y))", "mul(x, y)"});
}

TEST(Prove, OnTheDiagonalRowsAreColumns) {
  const std::string inputs = "x: f32[n, n]";
  expect_proved({inputs, "mul(transpose(x) {perm=[1, 0]}, eye_like(x))", "mul(x, eye_like(x))"});
  expect_proved(
      {inputs, "matmul(mul(eye_like(x), x), mul(eye_like(x), x))", "mul(mul(x, x), eye_like(x))"});
  expect_refuted({inputs, "transpose(x) {perm=[1, 0]}", "mul(x, 1.0)"});
}

TEST(Prove, ReduceSumThroughMatmul) {
  const std::string inputs = "x: f32[m, k], y: f32[k, n]";
  expect_proved({inputs, "reduce_sum(matmul(x, y), const i64[1] [0])",
                 "matmul(reduce_sum(x, const i64[1] [0]), y)"});
  expect_proved({inputs, "reduce_sum(matmul(x, y), const i64[1] [1])",
                 "matmul(x, reduce_sum(y, const i64[1] [1]))"});
  expect_refuted({inputs, "reduce_max(matmul(x, y), const i64[1] [0])",
                  "matmul(reduce_max(x, const i64[1] [0]), y)"});
}

TEST(Prove, AConvolutionBy1x1AfterAConvolution) {
  expect_proved(
      {kImage + ", l: f32[g, f, 1, 1]", "conv(conv(x, k) {pads=[1,1,1,1]}, l)",
       "conv(x, reshape(matmul(squeeze(l, const i64[2] [2,3]), reshape(k, const i64[2] [0, -1])), "
       "concat(shape(l) {start=0, end=1}, shape(k) {start=1, end=4}) {axis=0})) {pads=[1,1,1,1]}"});
  expect_not_proved(
      {kImage + ", l: f32[g, f, 1, 1]", "conv(relu(conv(x, k) {pads=[1,1,1,1]}), l)",
       "conv(x, reshape(matmul(squeeze(l, const i64[2] [2,3]), reshape(k, const i64[2] [0, -1])), "
       "concat(shape(l) {start=0, end=1}, shape(k) {start=1, end=4}) {axis=0})) {pads=[1,1,1,1]}"});
}

TEST(Prove, ConvolutionsOfUnequalFiltersAreGroupsOfTheirGreatestCommonDivisor) {
  // The third group is that of the other image: g*f + i >= 2*f contradicts g <= 1 and i < f.
  expect_proved({"x: f32[n, c, h, w], y: f32[n, c, h, w], u: f32[2*f, c, 3, 3], k: f32[f, c, 3, 3]",
                 "concat(conv(x, u) {pads=[1, 1, 1, 1]}, conv(y, k) {pads=[1, 1, 1, 1]}) {axis=1}",
                 "conv(concat(x, x, y) {axis=1}, concat(u, k) {axis=0}) {pads=[1, 1, 1, 1], "
                 "group=3}"});
}

TEST(Prove, MatrixChainsOfSix) {
  const std::string inputs =
      "a: f32[m, n], b: f32[n, o], c: f32[o, p], d: f32[p, q], e: f32[q, r], f: f32[r, s]";
  expect_proved({inputs, "matmul(matmul(matmul(matmul(matmul(a, b), c), d), e), f)",
                 "matmul(a, matmul(b, matmul(matmul(c, d), matmul(e, f))))"});
  const std::string square =
      "a: f32[n, n], b: f32[n, n], c: f32[n, n], d: f32[n, n], e: f32[n, n], f: f32[n, n]";
  expect_proved({square, "matmul(matmul(matmul(matmul(matmul(a, b), c), d), e), f)",
                 "matmul(matmul(matmul(a, b), matmul(c, d)), matmul(e, f))"});
  expect_refuted({square, "matmul(matmul(matmul(matmul(matmul(a, b), c), d), e), f)",
                  "matmul(a, matmul(b, matmul(matmul(d, c), matmul(e, f))))"});
}

TEST(Prove, SoftmaxDoesNotFeelAShift) {
  expect_proved({kMatrix + ", c: f32[m, 1]", "softmax(add(x, c))", "softmax(x)"});
  expect_refuted({kMatrix + ", c: f32[1, n]", "softmax(add(x, c))", "softmax(x)"});
  expect_refuted({kMatrix + ", c: f32[m, 1]", "softmax(mul(x, c))", "softmax(x)"});
}

TEST(Prove, SoftmaxSpellings) {
  expect_proved({kMatrix, "softmax(x)",
                 "e = exp(sub(x, reduce_max(x, const i64[1] [1]))) return div(e, reduce_sum(e, "
                 "const i64[1] [1]))"});
  expect_proved(
      {kMatrix, "softmax(x)", "e = exp(x) return div(e, reduce_sum(e, const i64[1] [1]))"});
  expect_proved({kMatrix, "log(softmax(x))", "log_softmax(x)"});
  expect_refuted(
      {kMatrix, "softmax(x)", "e = exp(x) return div(e, reduce_sum(e, const i64[1] [0]))"});
}

TEST(Prove, LayerNormDoesNotFeelAScale) {
  expect_proved({kMatrix, "layer_normalization(mul(x, 4.0), 1.0, 0.0) {epsilon=0.0}",
                 "layer_normalization(x, 1.0, 0.0) {epsilon=0.0}"});
  // A negative scale changes the sign; with an epsilon no scale is without effect.
  expect_not_proved({kMatrix, "layer_normalization(mul(x, -4.0), 1.0, 0.0) {epsilon=0.0}",
                     "layer_normalization(x, 1.0, 0.0) {epsilon=0.0}"});
  expect_not_proved({kMatrix + ", c: f32[]",
                     "layer_normalization(mul(x, c), 1.0, 0.0) {epsilon=0.0}",
                     "layer_normalization(x, 1.0, 0.0) {epsilon=0.0}"});
  expect_not_proved(
      {kMatrix, "layer_normalization(mul(x, 4.0), 1.0, 0.0)", "layer_normalization(x, 1.0, 0.0)"});
}

TEST(Prove, GeluSpellings) {
  const std::vector<std::pair<std::string, std::ptrdiff_t>> spellings = {
      {"mul(mul(x, 0.5), add(erf(div(x, sqrt(2.0))), 1.0))", 0},
      {"mul(x, mul(add(1.0, erf(mul(x, div(1.0, sqrt(2.0))))), 0.5))", 0},
      {"mul(mul(0.5, x), add(1.0, erf(mul(x, 0.70710677))))", 1},
      {"mul(mul(0.5, x), add(1.0, erf(div(x, 1.4142135))))", 1},
      {"div(mul(x, add(1.0, erf(mul(x, 0.7071067811865476)))), 2.0)", 1}};
  for (const auto& [spelling, assumptions] : spellings)
    expect_proved({kMatrix, spelling, spellings[0].first, "", assumptions});
  // The operator's own definition has a constant, too.
  expect_proved({kMatrix, spellings[2].first, "gelu(x)", "", 2});
  expect_refuted({kMatrix, "mul(mul(0.5, x), add(1.0, erf(mul(x, 0.8))))", "gelu(x)"});
}

TEST(Prove, GeluByTanhSpellings) {
  const std::string cube =
      "mul(mul(x, 0.5), add(1.0, tanh(mul(0.7978846, add(x, mul(0.044715, mul(x, mul(x, x))))))))";
  const std::string powers =
      "mul(mul(0.5, x), add(tanh(mul(mul(0.7978845608, x), add(mul(mul(x, x), 0.044715), 1.0))), "
      "1.0))";
  expect_proved({kMatrix, cube, powers});
  expect_proved({kMatrix, cube, "gelu(x) {approximate=\"tanh\"}", "", 4});
  expect_not_proved({kMatrix, cube, "gelu(x)"});
}

TEST(Prove, AttentionWithItsScaleInQ) {
  const std::string inputs = "q: f32[b, s, d], k: f32[b, t, d], v: f32[b, t, e]";
  const std::string scores = "matmul(q, transpose(k) {perm=[0,2,1]})";
  expect_proved({inputs, "matmul(softmax(div(" + scores + ", 8.0)), v)",
                 "matmul(softmax(matmul(mul(q, 0.125), transpose(k) {perm=[0,2,1]})), v)"});
  expect_refuted({inputs, "matmul(softmax(div(" + scores + ", 8.0)), v)",
                  "matmul(softmax(matmul(mul(q, 0.25), transpose(k) {perm=[0,2,1]})), v)"});
}

TEST(Prove, BatchNormIntoConv) {
  const std::string inputs =
      "x: f32[n, c, h, w], k: f32[f, c, r, s], scale: f32[f], bias: f32[f], mean: f32[f], var: "
      "f32[f]";
  expect_proved(
      {inputs, "batch_normalization(conv(x, k), scale, bias, mean, var)",
       "g = div(scale, sqrt(add(var, 1e-5)))"
       " return conv(x, mul(k, unsqueeze(g, const i64[3] [1,2,3])), sub(bias, mul(mean, g)))",
       "", 0});
  expect_not_proved(
      {inputs, "batch_normalization(conv(x, k), scale, bias, mean, var)",
       "g = div(scale, sqrt(add(var, 1e-3)))"
       " return conv(x, mul(k, unsqueeze(g, const i64[3] [1,2,3])), sub(bias, mul(mean, g)))"});
}

TEST(Prove, ConcatSplitSliceAndPad) {
  const std::string inputs = "x: f32[m, k], y: f32[k, n], z: f32[m, l], w: f32[l, n]";
  expect_proved({inputs, "add(matmul(x, y), matmul(z, w))",
                 "matmul(concat(x, z) {axis=1}, concat(y, w) {axis=0})"});
  expect_proved({"x: f32[m, k], y: f32[n, k]", "relu(concat(x, y) {axis=0})",
                 "concat(relu(x), relu(y)) {axis=0}"});
  expect_refuted({"x: f32[m, k], y: f32[m, k]", "relu(concat(x, y) {axis=0})",
                  "concat(relu(y), relu(x)) {axis=0}"});
  expect_proved(
      {"x: f32[m, 3], y: f32[m, 5]",
       "slice(concat(x, y) {axis=1}, const i64[1] [3], const i64[1] [8], const i64[1] [1])",
       "identity(y)"});
  expect_proved({kImage, "conv(pad(x, const i64[8] [0,0,1,1,0,0,1,1]), k) {strides=[2,2]}",
                 "conv(x, k) {strides=[2,2], pads=[1,1,1,1]}"});
  expect_refuted({kImage, "conv(x, k) {pads=[1,1,1,1], strides=[2,2]}",
                  "conv(pad(x, const i64[8] [0,0,0,0,0,0,2,2]), k) {strides=[2,2]}"});
}

TEST(Prove, ARangeIsTheSumOfItsParts) {
  const auto part = [](std::string_view of, std::string_view begin, std::string_view end) {
    return fmt::format("slice({}, const i64[1] [{}], const i64[1] [{}], const i64[1] [0])", of,
                       begin, end);
  };
  const auto both = [&](std::string_view first_end, std::string_view second_begin) {
    return fmt::format("add(reduce_sum({}, const i64[1] [0]), reduce_sum({}, const i64[1] [0]))",
                       part("x", "0", first_end), part("x", second_begin, "5"));
  };
  expect_proved({"x: f32[5, n]", "reduce_sum(x, const i64[1] [0])", both("3", "3")});
  expect_refuted({"x: f32[5, n]", "reduce_sum(x, const i64[1] [0])", both("3", "2")});
}

TEST(Prove, ReshapesAndGroups) {
  expect_proved({"x: f32[a, b, c]", "reshape(reshape(x, const i64[2] [0, -1]), const i64[1] [-1])",
                 "reshape(x, const i64[1] [-1])"});
  expect_proved({"x: f32[b, s, 12], w: f32[12, 12]",
                 "transpose(reshape(matmul(x, w), const i64[4] [0, 0, 3, 4])) {perm=[0,2,1,3]}",
                 "matmul(unsqueeze(x, const i64[1] [1]), transpose(reshape(w, const i64[3] [12, 3, "
                 "4])) {perm=[1,0,2]})"});
  expect_refuted({"x: f32[b, s, 12], w: f32[12, 12]",
                  "transpose(reshape(matmul(x, w), const i64[4] [0, 0, 3, 4])) {perm=[0,2,1,3]}",
                  "matmul(unsqueeze(x, const i64[1] [1]), transpose(reshape(w, const i64[3] [12, "
                  "4, 3])) {perm=[2,0,1]})"});
  expect_proved({"x: f32[n, 4, h, w], k: f32[6, 2, 3, 3]", "conv(x, k) {group=2}",
                 "a, b = split(x) {axis=1, num_outputs=2} c, d = split(k) {axis=0, num_outputs=2}"
                 " return concat(conv(a, c), conv(b, d)) {axis=1}"});
  expect_refuted({"x: f32[n, 4, h, w], k: f32[6, 2, 3, 3]", "conv(x, k) {group=2}",
                  "a, b = split(x) {axis=1, num_outputs=2} c, d = split(k) {axis=0, num_outputs=2}"
                  " return concat(conv(b, c), conv(a, d)) {axis=1}"});
}

TEST(Prove, WhatIsAMaximumIsNoSum) {
  expect_proved({"x: f32[n, c, h, w]",
                 "relu(max_pool(x) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]})",
                 "max_pool(relu(x)) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}"});
  expect_refuted({"x: f32[n, c, h, w]", "neg(max_pool(x) {kernel_shape=[3,3]})",
                  "max_pool(neg(x)) {kernel_shape=[3,3]}"});
  expect_refuted({kTwo, "add(reduce_max(x, const i64[1] [1]), reduce_max(y, const i64[1] [1]))",
                  "reduce_max(add(x, y), const i64[1] [1])"});
}

// An axis of size 0 is not at least 1, whatever is said of sizes that have a name.
TEST(Prove, AnEmptyConstantProvesNothing) {
  expect_refuted({"x: f32[4]", "e = const f32[0] []  return concat(x, e) {axis=0}",
                  "e = const f32[0] []  return relu(concat(x, e) {axis=0})"});
}

TEST(Prove, SizesThatMeetByBroadcastingAreEqualByAGuard) {
  expect_proved({"x: f32[n], y: f32[m]", "add(x, y)", "add(y, x)", "n == m"});
  expect_proved({"x: f32[n], y: f32[n]", "reduce_sum(add(x, y), [0])",
                 "add(reduce_sum(x, [0]), reduce_sum(y, [0]))"});
}

TEST(Prove, IntegersBeyond53BitsAreNotRounded) {
  expect_not_proved(
      {"x: i64[n]", "sub(add(x, i64[] 9007199254740993), i64[] 9007199254740992)", "identity(x)"});
  expect_not_proved(
      {"x: i64[n]", "equal(x, i64[] 9223372036854775807)", "equal(x, i64[] 9223372036854775806)"});
}

TEST(Prove, QuotientsAndPowersOfIntegersAreIntegers) {
  for (const char* of : {"x", "add(x, y)", "mul(x, y)", "reduce_sum(mul(x, y), [0])"}) {
    expect_not_proved({"x: i32[n], y: i32[n]",
                       fmt::format("cast(div({}, i32[] 2)) {{to=\"f32\"}}", of),
                       fmt::format("mul(cast({}) {{to=\"f32\"}}, 0.5)", of)});
    expect_not_proved({"x: i32[n], y: i32[n]", fmt::format("mul(pow({}, i32[] -1), {})", of, of),
                       fmt::format("pow({}, i32[] 0)", of)});
  }
  expect_proved({"x: i32[n], y: i32[n]", "div(add(x, y), i32[] 2)", "div(add(y, x), i32[] 2)"});
}

/// The kinds of assumptions of a proof, in order.
std::vector<std::string_view> assumed(const Equation& equation) {
  const auto [source, target] = graphs(equation);
  const Verdict verdict = prove(source, target, {});
  std::vector<std::string_view> kinds;
  if (const auto* proved = std::get_if<Proved>(&verdict))
    for (const Assumption& assumption : proved->assumptions)
      kinds.push_back(to_string(assumption.kind));
  else
    kinds.push_back("not proved");
  return kinds;
}

TEST(Prove, SaysWhatItTakesForGranted) {
  using Kinds = std::vector<std::string_view>;
  EXPECT_EQ(assumed({"x: f32[2, 3]", "transpose(transpose(x) {perm=[1, 0]}) {perm=[1, 0]}",
                     "identity(x)"}),
            Kinds{});
  EXPECT_EQ(assumed({"x: f32[4]", "max(x, neg(x))", "abs(x)"}), Kinds{"non-finite"});
  EXPECT_EQ(assumed({"x: f32[4]", "div(x, x)", "const f32[4] [1, 1, 1, 1]"}),
            (Kinds{"rounding", "non-finite", "domain"}));
  EXPECT_EQ(assumed({"x: f32[4]", "div(add(x, x), 2.0)", "identity(x)"}),
            (Kinds{"rounding", "non-finite"}));
  EXPECT_EQ(assumed({"x: f32[4]", "mul(sqrt(x), sqrt(x))", "identity(x)"}),
            (Kinds{"rounding", "non-finite", "domain"}));
  EXPECT_EQ(assumed({"x: f32[4]", "log(exp(x))", "identity(x)"}),
            (Kinds{"rounding", "non-finite"}));
  EXPECT_EQ(assumed({"x: u8[4], y: u8[4]", "sub(add(x, y), y)", "identity(x)"}),
            Kinds{"wrap-around"});
  EXPECT_EQ(assumed({"x: i64[n]", "add(x, x)", "mul(x, i64[] 2)"}),
            (Kinds{"wrap-around", "empty"}));
}

// Two quotients are one definition with operands of their own.
TEST(Prove, EachDivisorIsLookedAt) {
  using Kinds = std::vector<std::string_view>;
  for (const char* source : {"mul(div(a, exp(b)), div(c, d))", "mul(div(a, d), div(c, exp(b)))"})
    EXPECT_EQ(assumed({"a: f32[4], b: f32[4], c: f32[4], d: f32[4]", source,
                       "div(mul(a, c), mul(exp(b), d))"}),
              (Kinds{"rounding", "non-finite", "domain"}))
        << source;
}

TEST(Prove, IndicesThatMayLieOutsideOfTheirAxisAreAnAssumption) {
  using Kinds = std::vector<std::string_view>;
  const auto assumed_of = [](std::string_view inputs, std::string_view index) {
    return assumed({std::string(inputs), fmt::format("unsqueeze(gather(x, {}), [0])", index),
                    fmt::format("gather(unsqueeze(x, [0]), {}) {{axis=1}}", index)});
  };
  for (const char* index : {"i64[2] [0, 5]", "i64[1] [-6]"})
    EXPECT_EQ(assumed_of("x: f32[6, 2]", index), Kinds{}) << index;
  for (const char* index : {"i64[2] [0, 6]", "i64[1] [-7]"})
    EXPECT_EQ(assumed_of("x: f32[6, 2]", index), Kinds{"indices"}) << index;
  EXPECT_EQ(assumed_of("x: f32[6, 2], i: i64[3]", "i"), Kinds{"indices"});
  EXPECT_EQ(assumed_of("x: f32[n, 2]", "i64[1] [5]"), (Kinds{"indices", "empty"}));
}

TEST(Prove, WhatHoldsForPositiveNumbersIsNotSaidOfAll) {
  expect_not_proved({kMatrix, "sqrt(mul(x, x))", "identity(x)"});
  expect_not_proved({kTwo, "log(mul(mul(x, y), mul(x, y)))", "mul(log(mul(x, y)), 2.0)"});
  expect_not_proved({kTwo + ", z: f32[m, n]", "max(mul(x, z), mul(y, z))", "mul(max(x, y), z)"});
  expect_not_proved({kTwo + ", a: f32[m, n], b: f32[m, n]",
                     "s = add(x, y) q = mul(s, s) return sqrt(add(div(exp(a), q), div(exp(b), q)))",
                     "div(sqrt(add(exp(a), exp(b))), add(x, y))"});
  expect_not_proved({kTwo + ", a: f32[m, n], b: f32[m, n]",
                     "s = add(x, y) q = mul(s, s) return max(div(a, q), div(b, mul(q, s)))",
                     "s = add(x, y) return div(max(mul(a, s), b), mul(s, mul(s, s)))"});
}

TEST(Prove, MinusInfinityIsTakenWhereItIsChosen) {
  const std::string inputs = "c: bool[m, n], x: f32[m, n]";
  for (const std::string lowest : {"-inf", "-3.4028235e38"}) {
    expect_not_proved({inputs, "exp(where(c, x, " + lowest + "))", "mul(exp(x), 0.0)"});
    expect_not_proved({inputs, "exp(where(c, 0.0, " + lowest + "))", "mul(exp(x), 0.0)"});
    expect_not_proved({inputs, "softmax(where(c, x, " + lowest + "))", "mul(x, 0.0)"});
    expect_not_proved({kMatrix, "exp(pad(x, const i64[4] [0,1,0,1], " + lowest + "))",
                       "pad(mul(x, 0.0), const i64[4] [0,1,0,1])"});
  }
}

TEST(Prove, CastsThatRoundOrWrapAreSeen) {
  expect_not_proved({kMatrix, "cast(cast(x) {to=\"f16\"}) {to=\"f32\"}", "identity(x)"});
  expect_not_proved({kMatrix, "cast(cast(x) {to=\"i64\"}) {to=\"f32\"}", "identity(x)"});
  expect_not_proved({"x: i32[m]", "cast(cast(x) {to=\"u8\"}) {to=\"i32\"}", "identity(x)"});
  expect_proved({"x: f16[m]", "cast(cast(x) {to=\"f32\"}) {to=\"f16\"}", "identity(x)"});
  expect_not_proved({"x: u8[m]", "add(x, cast(const i32[] 300) {to=\"u8\"})",
                     "sub(x, cast(const i32[] 212) {to=\"u8\"})"});
}

TEST(Prove, PowersOfAnySizeAreRead) {
  for (const std::string power : {"9.0", "200.0", "0.3"})
    expect_proved({kTwo, "pow(add(x, y), " + power + ")", "pow(add(y, x), " + power + ")"});
  expect_not_proved({kMatrix, "add(x, pow(3.0, -9223372036854775808.0))", "add(x, 1.0)"});
}

TEST(Prove, WhatIsDividedByZeroIsNotProved) {
  expect_not_proved({kMatrix, "reduce_max(add(x, div(1.0, 0.0)), const i64[1] [1])",
                     "reduce_max(x, const i64[1] [1])"});
  expect_not_proved({kMatrix, "max(mul(x, 0.0), div(1.0, 0.0))", "mul(x, 0.0)"});
}

TEST(Prove, ProductsOfTooManyTermsAreNotWrittenOut) {
  const auto resized = [](const std::string& attributes) {
    return "resize(x, _, _, [2, 1, 14, 7, 4]) {mode=\"cubic\", " + attributes + "}";
  };
  const std::string image = "x: f32[2, 1, 5, 7, 2]", mode = "coordinate_transformation_mode=";
  expect_refuted({image, resized("cubic_coeff_a=-0.75"), resized("cubic_coeff_a=0.75")});
  expect_refuted({image, resized("exclude_outside=1, " + mode + "\"asymmetric\""),
                  resized("exclude_outside=1, " + mode + "\"half_pixel\"")});
}

TEST(Prove, LargeDoublesAreNumbers) {
  expect_not_proved({"x: f64[m]", "mul(x, const f64[] 1e39)", "mul(x, const f64[] 2e39)"});
  expect_not_proved({"x: f64[m]", "mul(x, const f64[] 1e-300)", "mul(x, const f64[] 2e-300)"});
}

TEST(Prove, IntegersDivideTowardsZero) {
  expect_not_proved({"x: i64[m]", "mul(div(x, const i64[] 2), const i64[] 2)", "identity(x)"});
  expect_not_proved({"x: i64[m], y: i64[m]", "div(add(x, y), const i64[] 2)",
                     "add(div(x, const i64[] 2), div(y, const i64[] 2))"});
}

TEST(Prove, NamedRealsAreAnOption) {
  const Graph source = parsed("graph(x: f32[n]) { return mul(x, 0.70710677) }");
  const Graph target = parsed("graph(x: f32[n]) { return div(x, sqrt(2.0)) }");
  EXPECT_TRUE(std::holds_alternative<Proved>(prove(source, target, {})));
  EXPECT_FALSE(std::holds_alternative<Proved>(prove(source, target, {.named_reals = false})));
}

// A double that is the nearest f32 number of 1/3 is another number: timestamps tell them apart.
TEST(Prove, DoublesAreNoNamedReals) {
  const Graph near = parsed("graph(x: f64[n]) { return mul(x, const f64[] 0.3333333432674408) }"),
              third = parsed("graph(x: f64[n]) { return div(x, const f64[] 3.0) }");
  EXPECT_FALSE(std::holds_alternative<Proved>(prove(near, third, {})));
  const Graph single = parsed("graph(x: f32[n]) { return mul(x, 0.33333334) }");
  EXPECT_TRUE(std::holds_alternative<Proved>(
      prove(single, parsed("graph(x: f32[n]) { return div(x, 3.0) }"), {})));
}

TEST(Prove, AScaleOfQueriesAndKeysMayBePutTogether) {
  const Graph source = parsed(
      "graph(q: f32[n, d], k: f32[d, m]) { return matmul(mul(q, 0.35355338), mul(k, 0.35355338)) "
      "}");
  EXPECT_TRUE(std::holds_alternative<Proved>(prove(
      source, parsed("graph(q: f32[n, d], k: f32[d, m]) { return mul(matmul(q, k), 0.12499999) }"),
      {})));
  EXPECT_FALSE(std::holds_alternative<Proved>(prove(
      source, parsed("graph(q: f32[n, d], k: f32[d, m]) { return mul(matmul(q, k), 0.12499998) }"),
      {})));
}

TEST(Prove, MinusInfinityAroundAnImageIsLeftOutOfAMaximum) {
  const std::string pool = "max_pool(x) {kernel_shape=[3], pads=[1, 1]}";
  const auto padded = [](const std::string& op, const std::string& fill) {
    return op + "(pad(x, [0, 0, 1, 0, 0, 1], " + fill + ")) {kernel_shape=[3]}";
  };
  expect_proved({"x: f32[n, c, w]", padded("max_pool", "-inf"), pool});
  expect_proved({"x: f32[n, c, w]", "relu(pad(x, [0, 0, 1, 0, 0, 1], -inf))",
                 "relu(pad(x, [0, 0, 1, 0, 0, 1], 0.0))"});
  expect_not_proved({"x: f32[n, c, w]", padded("max_pool", "0.0"), pool});
  expect_not_proved({"x: f32[n, c, w]", padded("max_pool", "inf"), pool});
  expect_not_proved({"x: f32[n, c, w]", padded("max_pool", "-inf"),
                     "max_pool(x) {kernel_shape=[3], pads=[2, 0]}"});
  expect_not_proved({"x: f32[n, c, w]", padded("average_pool", "-inf"),
                     "average_pool(x) {kernel_shape=[3], pads=[1, 1]}"});
  expect_not_proved({"x: f32[n, c, w]", "exp(pad(x, [0, 0, 1, 0, 0, 1], -inf))",
                     "exp(pad(x, [0, 0, 1, 0, 0, 1], 0.0))"});
  expect_not_proved({"x: f32[n], y: f32[n]", "add(x, -inf)", "add(y, -inf)"});
}

// Sums over few elements are written out, with a logarithm of a quotient for each.
TEST(Prove, MeansOfLogarithmsEndInTime) {
  constexpr double kMostSeconds = 60;  // of CPU time; no limit but the number of steps is set
  const auto mean = [](const std::string& of) {
    return parsed("graph(x: f32[1, 3, 7, 1]) { return global_average_pool(" + of + ") }");
  };
  const CpuStopwatch watch;
  EXPECT_TRUE(std::holds_alternative<Unknown>(prove(mean("asinh(x)"), mean("x"), {.tries = 0})));
  EXPECT_LT(watch.seconds(), kMostSeconds);
}

TEST(Prove, GraphsWithOtherOutputsAreNotCompared) {
  const Graph one = parsed("graph(x: f32[n]) { return x }");
  EXPECT_TRUE(
      std::holds_alternative<Unknown>(prove(one, parsed("graph(x: f32[n]) { return x, x }"), {})));
  EXPECT_TRUE(std::holds_alternative<Unknown>(
      prove(one, parsed("graph(x: f32[n], y: f32[n]) { return x }"), {})));
}

}  // namespace
}  // namespace tessera::prove
