#include "tessera/rules/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/ops/catalog.h"
#include "tessera/prove/prove.h"
#include "tessera/rules/meaning.h"
#include "tests/rules/rule_check.h"

namespace tessera {
namespace {

using rules::Match;
using rules::RuleSet;
using testing::parsed;
using testing::rules_of;

std::vector<rules::Rule> all_instances(std::string_view text) {
  std::vector<rules::Rule> all;
  for (const rules::Rule& rule : rules_of(text))
    for (rules::Rule& instance : instances(rule)) all.push_back(std::move(instance));
  return all;
}

std::vector<Match> found(std::string_view rules, std::string_view graph) {
  return matches(parsed(graph), RuleSet(all_instances(rules)));
}

struct Case {
  std::string_view rule, graph;
};

void expect_match(const Case& c) {
  EXPECT_EQ(found(c.rule, c.graph).size(), 1u) << c.graph;
}
void expect_none(const Case& c) {
  EXPECT_TRUE(found(c.rule, c.graph).empty()) << c.graph;
}

constexpr std::string_view kZero =
    "rule zero { source (x: f32[*s]) { return add(x, 0.0) } target { return x } }";

TEST(Match, FindsAPatternOfAnyRank) {
  expect_match({kZero, "graph(x: f32[]) { return add(x, 0.0) }"});
  expect_match({kZero, "graph(x: f32[2, 3, 4]) { return add(x, 0.0) }"});
}

TEST(Match, TriesBothOrdersOfCommutativeOperands) {
  expect_match({kZero, "graph(x: f32[2]) { return add(0.0, x) }"});
  expect_none({"rule zero { source (x: f32[*s]) { return sub(x, 0.0) } target { return x } }",
               "graph(x: f32[2]) { return sub(0.0, x) }"});
}

TEST(Match, TakesATensorOfOneNumberForTheNumberWhereItsShapeDoesNotShow) {
  expect_match({kZero, "graph(x: f32[2, 2]) { return add(x, f32[2] [0, 0]) }"});
  expect_none({kZero, "graph(x: f32[2]) { return add(x, f32[2, 2] [0, 0, 0, 0]) }"});
  expect_none({kZero, "graph(x: f32[2]) { return add(x, f32[2] [0, 1]) }"});
  expect_none({kZero, "graph(x: f32[2]) { return add(x, f32[2] [0, -0.0]) }"});
  constexpr std::string_view kTrue =
      "rule t { source (x: f32[*s]) { return where(const bool[] 1, x, 0.0) } target { return x } }";
  expect_match({kTrue, "graph(x: f32[2]) { return where(const bool[2] [1, 1], x, 0.0) }"});
  expect_none({kTrue, "graph(x: f32[2]) { return where(const bool[2] [1, 0], x, 0.0) }"});
  expect_none({kTrue, "graph(x: f32[2]) { return where(const bool[2, 1] [1, 1], x, 0.0) }"});
}

TEST(Match, TakesAnyFloatTypeButOneEverywhere) {
  expect_match({kZero, "graph(x: f64[2]) { return add(x, f64[] 0) }"});
  expect_none({kZero, "graph(x: i64[2]) { return add(x, 0) }"});
}

TEST(Match, BindsInputsThatAreConstantsToConstantsOnly) {
  constexpr std::string_view rule =
      "rule c { source (x: f32[*s], c: const f32[], d: const f32[]) { return add(add(x, c), d) } "
      "target { return add(x, add(c, d)) } }";
  expect_match({rule, "graph(x: f32[2]) { return add(add(x, 3.0), 4.0) }"});
  expect_none({rule, "graph(x: f32[2], y: f32[]) { return add(add(x, 3.0), y) }"});
}

TEST(Match, FindsShapesThatBroadcast) {
  constexpr std::string_view rule =
      "rule c { where *p <= *s source (x: f32[*s], c: f32[*p], d: f32[*p]) "
      "{ return mul(mul(x, c), d) } target { return mul(x, mul(c, d)) } }";
  expect_match({rule,
                "graph(x: f32[2, 3, 4, 5], c: f32[3, 1, 1], d: f32[3, 1, 1]) "
                "{ return mul(mul(x, c), d) }"});
  expect_none({rule,
               "graph(x: f32[2, 3, 4, 5], c: f32[3, 1, 1], d: f32[3, 1, 5]) "
               "{ return mul(mul(x, c), d) }"});
  expect_none({rule,
               "graph(x: f32[3, 1, 1], c: f32[2, 3, 4, 5], d: f32[2, 3, 4, 5]) "
               "{ return mul(mul(x, c), d) }"});
}

TEST(Match, SameInputsAreTheSameValue) {
  constexpr std::string_view rule =
      "rule d { source (x: f32[*s]) { return add(x, x) } target { return mul(x, 2.0) } }";
  expect_match({rule, "graph(x: f32[2]) { return add(x, x) }"});
  expect_none({rule, "graph(x: f32[2], y: f32[2]) { return add(x, y) }"});
}

TEST(Match, StopsAtValuesThatAreUsedElsewhere) {
  constexpr std::string_view rule =
      "rule r { source (x: f32[*s]) { return relu(relu(x)) } target { return relu(x) } }";
  expect_match({rule, "graph(x: f32[2]) { a = relu(x)  return relu(a) }"});
  expect_none({rule, "graph(x: f32[2]) { a = relu(x)  return relu(a), a }"});
  expect_none({rule, "graph(x: f32[2]) { a = relu(x)  return relu(a), neg(a) }"});
}

TEST(Match, SolvesForSizes) {
  constexpr std::string_view rule =
      "rule s { source (x: f32[2*r + 1, r]) { return relu(x) } target { return relu(x) } }";
  expect_match({rule, "graph(x: f32[7, 3]) { return relu(x) }"});
  expect_match({rule, "graph(x: f32[2*n + 1, n]) { return relu(x) }"});
  expect_none({rule, "graph(x: f32[8, 3]) { return relu(x) }"});
  expect_none({rule, "graph(x: f32[7, 2]) { return relu(x) }"});
  expect_none({rule, "graph(x: f32[1, 0]) { return relu(x) }"});
}

TEST(Match, KeepsTheSizesOfRuleAndGraphApart) {
  expect_match({"rule t { source (x: f32[m, n]) { return relu(x) } target { return relu(x) } }",
                "graph(x: f32[n, m]) { return relu(x) }"});
}

TEST(Match, NeedsTheGuard) {
  constexpr std::string_view rule =
      "rule g { where m <= n source (x: f32[m, n]) { return relu(x) } target { return relu(x) } }";
  expect_match({rule, "graph(x: f32[2, 3]) { return relu(x) }"});
  expect_match({rule, "graph(x: f32[k, 2*k]) { return relu(x) }"});
  expect_none({rule, "graph(x: f32[3, 2]) { return relu(x) }"});
  expect_none({rule, "graph(x: f32[a, b]) { return relu(x) }"});
}

constexpr std::string_view kConv =
    "rule c { where s0 <= 2 source (x: f32[n, i, h, w], v: f32[f, c, r, q]) "
    "{ return conv(x, v) {group=$g, strides=$s, pads=$p} } "
    "target { return conv(x, v) {group=$g, strides=$s, pads=$p} } }";

TEST(Match, BindsAttributesThatAreNames) {
  expect_match({kConv,
                "graph(x: f32[1, 4, 8, 8], v: f32[6, 2, 3, 3]) { return conv(x, v) "
                "{group=2, strides=[2, 2], pads=[1, 1, 1, 1]} }"});
  expect_match({kConv, "graph(x: f32[1, 4, 8, 8], v: f32[6, 4, 3, 3]) { return conv(x, v) }"});
  expect_none({kConv,
               "graph(x: f32[1, 4, 8, 8], v: f32[6, 4, 3, 3]) { return conv(x, v) "
               "{strides=[3, 3]} }"});
  expect_none({kConv,
               "graph(x: f32[1, 4, 8, 8], v: f32[6, 4, 3, 3]) { return conv(x, v) "
               "{dilations=[2, 2]} }"});
}

TEST(Match, TakesAttributesThatMeanTheSame) {
  expect_match({kConv,
                "graph(x: f32[1, 4, 8, 8], v: f32[6, 4, 3, 3]) { return conv(x, v) "
                "{kernel_shape=[3, 3], dilations=[1, 1]} }"});
  constexpr std::string_view concat =
      "rule k { source (x: f32[m, n]) { return concat(x, x) {axis=-1} } target { return concat(x, "
      "x) {axis=1} } }";
  expect_match({concat, "graph(x: f32[2, 3]) { return concat(x, x) {axis=1} }"});
  expect_none({concat, "graph(x: f32[2, 3]) { return concat(x, x) {axis=0} }"});
}

constexpr std::string_view kParallel =
    "rule p { source (x: f32[m, k], y: f32[k, n], z: f32[k, l]) "
    "{ return matmul(x, y), matmul(x, z) } "
    "target { a, b = split(matmul(x, concat(y, z) {axis=1}), "
    "concat(shape(y) {start=1}, shape(z) {start=1}) {axis=0}) {axis=1} return a, b } }";

TEST(Match, FindsPatternsWithSeveralOutputs) {
  // Either product may be the first.
  EXPECT_EQ(found(kParallel,
                  "graph(x: f32[2, 3], y: f32[3, 4], z: f32[3, 5]) "
                  "{ return matmul(x, y), matmul(x, z) }")
                .size(),
            2u);
  expect_none({kParallel,
               "graph(x: f32[2, 3], y: f32[3, 4], u: f32[2, 3], z: f32[3, 5]) "
               "{ return matmul(x, y), matmul(u, z) }"});
}

TEST(Match, RefusesToComputeAValueFromItself) {
  expect_none({kParallel,
               "graph(x: f32[3, 3], y: f32[3, 3]) "
               "{ a = matmul(x, y)  return matmul(x, a) }"});
}

TEST(Match, TakesSizesThatAreConstants) {
  constexpr std::string_view rule =
      "rule s { source (x: f32[m], y: f32[n]) { a, b = split(concat(x, y) {axis=0}, "
      "concat(shape(x), shape(y)) {axis=0}) return a, b } target { return x, y } }";
  expect_match({rule,
                "graph(x: f32[2], y: f32[3]) { a, b = split(concat(x, y) {axis=0}, [2, 3]) "
                "return a, b }"});
  expect_none({rule,
               "graph(x: f32[2], y: f32[3]) { a, b = split(concat(x, y) {axis=0}, [3, 2]) "
               "return a, b }"});
}

}  // namespace
}  // namespace tessera
