#include "tessera/prove/claim.h"

#include <gtest/gtest.h>

#include "tests/support/graph_check.h"

namespace tessera::prove {
namespace {

using testing::parsed;

GraphClaim claim(const std::string& source, const std::string& target) {
  auto made = claim_of(parsed(source), parsed(target), {});
  EXPECT_TRUE(made) << to_string(made.error());
  return made ? *std::move(made) : GraphClaim{};
}

/// What both outputs of a graph are called.
std::pair<std::string, std::string> outputs(const std::string& graph) {
  const GraphClaim made = claim(graph, graph);
  EXPECT_EQ(made.claim.pairs.size(), 2u);
  return {made.claim.pairs.at(0).first, made.claim.pairs.at(1).first};
}

TEST(Claim, TakesAnOpaqueOperatorOnTheSameOperandsForTheSameValue) {
  const std::string graph = "graph(x: f32[2, 2]) { return det(x) }";
  const GraphClaim made = claim(graph, graph);
  ASSERT_EQ(made.claim.pairs.size(), 1u);
  EXPECT_EQ(made.claim.pairs[0].first, made.claim.pairs[0].second);
  EXPECT_TRUE(made.shared.contains(made.claim.pairs[0].first));
  const auto [a, b] = outputs("graph(x: f32[2, 2]) { return det(x), det(x) }");
  EXPECT_EQ(a, b);
}

TEST(Claim, NeverTakesTwoDrawsForOne) {
  for (const std::string draw :
       {"random_normal() {shape=[4]}", "random_uniform() {shape=[4]}", "random_normal_like(x)",
        "random_normal() {shape=[4], seed=7}", "bernoulli(x)"}) {
    SCOPED_TRACE(draw);
    const std::string graph = "graph(x: f32[4]) { return " + draw + " }";
    const GraphClaim made = claim(graph, graph);
    ASSERT_EQ(made.claim.pairs.size(), 1u);
    EXPECT_NE(made.claim.pairs[0].first, made.claim.pairs[0].second);
    EXPECT_TRUE(made.shared.empty());
    const auto [a, b] = outputs("graph(x: f32[4]) { return " + draw + ", " + draw + " }");
    EXPECT_NE(a, b);
  }
}

TEST(Claim, WhatIsComputedFromTwoDrawsIsNotTheSame) {
  const std::string graph = "graph(x: f32[4]) { return relu(random_normal() {shape=[4]}) }";
  const GraphClaim made = claim(graph, graph);
  ASSERT_EQ(made.claim.pairs.size(), 1u);
  EXPECT_NE(made.claim.pairs[0].first, made.claim.pairs[0].second);
  EXPECT_TRUE(made.shared.empty());
}

TEST(Claim, ADrawIsGivenAndNotComputed) {
  const std::string graph = "graph(x: f32[4]) { return random_normal() {shape=[4]} }";
  const GraphClaim made = claim(graph, graph);
  EXPECT_TRUE(made.claim.values.empty());
  EXPECT_EQ(made.claim.inputs.size(), 3u);  // x, and a draw for each side
}

}  // namespace
}  // namespace tessera::prove
