#include "tessera/rules/apply.h"

#include <gtest/gtest.h>

#include "tests/rules/rule_check.h"
#include "tests/support/random_graph.h"

namespace tessera {
namespace {

using rules::Match;
using rules::RuleSet;
using testing::expect_graph;
using testing::expect_same;
using testing::parsed;
using testing::rules_of;

RuleSet set_of(std::string_view text) {
  std::vector<rules::Rule> all;
  for (const rules::Rule& rule : rules_of(text))
    for (rules::Rule& instance : instances(rule)) all.push_back(std::move(instance));
  return RuleSet(all);
}

struct Rewrite {
  std::string_view rule, before, after;
};

/// The first match leads from one text to the other, and the meaning stays.
Graph expect_rewrite(const Rewrite& rewrite) {
  const Graph before = parsed(rewrite.before);
  const RuleSet set = set_of(rewrite.rule);
  const std::vector<Match> found = matches(before, set);
  EXPECT_FALSE(found.empty()) << rewrite.before;
  if (found.empty()) return {};
  const auto after = apply(before, found[0]);
  EXPECT_TRUE(after) << to_string(after.error());
  if (!after) return {};
  expect_graph(*after, rewrite.after);
  return *after;
}

TEST(Apply, PutsTheTargetInPlaceOfTheSource) {
  const Rewrite rewrite{.rule =
                            "rule c { source (x: f32[*s], c: const f32[], d: const f32[]) "
                            "{ return add(add(x, c), d) } target { return add(x, add(c, d)) } }",
                        .before = "graph(x: f32[2]) { return relu(add(add(x, 3.0), 4.0)) }",
                        .after = "graph(x: f32[2]) { return relu(add(x, add(3.0, 4.0))) }"};
  const Graph after = expect_rewrite(rewrite);
  expect_same(parsed(rewrite.before), after, 1, 1e-6);
}

TEST(Apply, TakesAttributesFromTheGraph) {
  expect_rewrite(
      {.rule = "rule c { source (x: f32[n, i, h, w], v: f32[f, c, r, q], u: f32[f, c, r, q]) "
               "{ return add(conv(x, v) {group=$g, pads=$p}, conv(x, u) {group=$g, pads=$p}) } "
               "target { return conv(x, add(v, u)) {group=$g, pads=$p} } }",
       .before = "graph(x: f32[1, 4, 5, 5], v: f32[2, 2, 3, 3], u: f32[2, 2, 3, 3]) "
                 "{ return add(conv(x, v) {group=2, pads=[1, 1, 1, 1]}, "
                 "conv(x, u) {group=2, pads=[1, 1, 1, 1], kernel_shape=[3, 3]}) }",
       .after = "graph(x: f32[1, 4, 5, 5], v: f32[2, 2, 3, 3], u: f32[2, 2, 3, 3]) "
                "{ return conv(x, add(v, u)) {group=2, pads=[1, 1, 1, 1]} }"});
}

TEST(Apply, ComputesWithTheValueOfAFloatAttribute) {
  expect_rewrite(
      {.rule = "rule norm { source (x: f32[n, c], k: f32[c], b: f32[c], m: f32[c], v: f32[c], "
               "e: f32[]) { return batch_normalization(x, k, b, m, v) {epsilon=$e} } "
               "target { return add(mul(div(sub(x, m), sqrt(add(v, e))), k), b) } }",
       .before = "graph(x: f64[2, 3], k: f64[3], v: f64[3]) "
                 "{ return batch_normalization(x, k, k, k, v) {epsilon=0.1} }",
       .after = "graph(x: f64[2, 3], k: f64[3], v: f64[3]) "
                "{ return add(mul(div(sub(x, k), sqrt(add(v, f64[] 0.1))), k), k) }"});
}

TEST(Apply, WritesSizesThatAreKnownAsConstants) {
  expect_rewrite(
      {.rule = "rule p { source (x: f32[m, k], y: f32[k, n], z: f32[k, l]) "
               "{ return matmul(x, y), matmul(x, z) } "
               "target { a, b = split(matmul(x, concat(y, z) {axis=1}), "
               "concat(shape(y) {start=1}, shape(z) {start=1}) {axis=0}) {axis=1} return a, b } }",
       .before = "graph(x: f32[m, 3], y: f32[3, 4], z: f32[3, 5]) "
                 "{ return relu(matmul(x, y)), matmul(x, z) }",
       .after = "graph(x: f32[m, 3], y: f32[3, 4], z: f32[3, 5]) "
                "{ a, b = split(matmul(x, concat(y, z) {axis=1}), [4, 5]) {axis=1} "
                "return relu(a), b }"});
}

TEST(Apply, GivesTheTargetSomethingOfATypeWhereTheTypeAloneCounts) {
  const Rewrite rewrite{
      .rule =
          "rule i { source (x: f32[m, n], like: f32[n, n]) { return relu(x) } "
          "target { return relu(matmul(x, eye_like(like))) } }",
      .before = "graph(x: f32[2, 3]) { return relu(x) }",
      .after = "graph(x: f32[2, 3]) { return relu(matmul(x, eye_like(expand(0.0, [3, 3])))) }"};
  expect_same(parsed(rewrite.before), expect_rewrite(rewrite), 1, 1e-6);
}

TEST(Apply, WaitsForOperandsThatComeLater) {
  // z is made after matmul(x, y) is used.
  expect_rewrite(
      {.rule = "rule p { source (x: f32[m, k], y: f32[k, n], z: f32[k, n]) "
               "{ return matmul(x, y), matmul(x, z) } "
               "target { a, b = split(matmul(x, concat(y, z) {axis=1})) {axis=1, num_outputs=2} "
               "return a, b } }",
       .before = "graph(x: f32[2, 3], y: f32[3, 4], u: f32[3, 4]) "
                 "{ a = matmul(x, y)  b = relu(a)  z = exp(u)  c = matmul(x, z)  return b, c }",
       .after = "graph(x: f32[2, 3], y: f32[3, 4], u: f32[3, 4]) { z = exp(u) "
                "a, c = split(matmul(x, concat(y, z) {axis=1})) {axis=1, num_outputs=2} "
                "return relu(a), c }"});
}

TEST(Apply, KeepsTheNamesOfInputsAndOutputs) {
  const Graph after = expect_rewrite(
      {.rule = "rule z { source (x: f32[*s]) { return add(x, 0.0) } target { return x } }",
       .before = "graph(x: f32[2]) { y = add(x, 0.0)  return y }",
       .after = "graph(x: f32[2]) { return identity(x) }"});
  EXPECT_EQ(after.name(after.inputs()[0]), "x");
  EXPECT_EQ(after.name(after.outputs()[0]), "y");
}

TEST(Apply, RemovesWhatNothingDependsOn) {
  expect_rewrite(
      {.rule = "rule z { source (x: f32[*s]) { return sub(x, x) } "
               "target { return expand(0.0, shape(x)) } }",
       .before = "graph(x: f32[2], y: f32[2]) { a = exp(x)  return add(y, sub(a, a)) }",
       .after = "graph(x: f32[2], y: f32[2]) { a = exp(x)  return add(y, expand(0.0, [2])) }"});
}

TEST(Apply, WritesConstantsInTheFloatTypeOfTheGraph) {
  expect_rewrite(
      {.rule = "rule d { source (x: f32[*s]) { return add(x, x) } target { return mul(x, 2.0) } }",
       .before = "graph(x: f16[2]) { return add(x, x) }",
       .after = "graph(x: f16[2]) { return mul(x, f16[] 2) }"});
}

TEST(Apply, KeepsTheMeaningOfRandomGraphs) {
  auto shipped = rules::load_rules(std::filesystem::path(TESSERA_SOURCE_DIR) / "rules");
  ASSERT_TRUE(shipped) << to_string(shipped.error());
  std::vector<rules::Rule> all;
  for (const rules::Rule& rule : *shipped)
    for (rules::Rule& instance : instances(rule)) all.push_back(std::move(instance));
  const RuleSet set(all);
  int applied = 0;
  testing::for_each_random_graph({.seed = 3, .count = 300, .max_nodes = 12}, [&](const Graph& g) {
    const std::vector<Tensor> inputs = testing::random_inputs(g, 5);
    for (const Match& match : matches(g, set)) {
      SCOPED_TRACE(to_text(match.rule()));
      const auto after = apply(g, match);
      ASSERT_TRUE(after) << to_string(after.error());
      const std::vector<Tensor> x = testing::computed(g, inputs);
      const std::vector<Tensor> y = testing::computed(*after, inputs);
      ASSERT_EQ(x.size(), y.size());
      for (std::size_t i = 0; i < x.size(); ++i) testing::expect_near(y[i], x[i], 1e-4);
      ++applied;
    }
  });
  EXPECT_GT(applied, 50);
}

}  // namespace
}  // namespace tessera
