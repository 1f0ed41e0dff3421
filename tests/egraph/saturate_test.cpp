#include "tessera/egraph/saturate.h"

#include <gmock/gmock.h>

#include "tessera/rules/shipped.h"
#include "tests/egraph/egraph_check.h"
#include "tests/support/random_graph.h"

namespace tessera {
namespace {

using egraph::ClassId;
using egraph::EGraph;
using egraph::Limits;
using egraph::Rewrites;
using egraph::Saturation;
using egraph::StopReason;
using testing::parsed;
using testing::rewrites_of;
using ::testing::UnorderedElementsAre;

/// Two outputs of one graph, after rules were applied.
struct Outcome {
  bool equal = false;
  std::vector<std::string> by;
  Saturation saturation;
};

Outcome outcome(Rewrites& rewrites, std::string_view text, const Limits& limits = {}) {
  const Graph graph = parsed(text);
  EGraph egraph(rewrites.analysis());
  const std::vector<ClassId> values = egraph.add(graph);
  const ClassId a = values[graph.outputs()[0].index], b = values[graph.outputs()[1].index];
  Outcome found;
  found.saturation =
      saturate(egraph, rewrites, limits,
               {.goal = [&](const EGraph& g) { return g.equal(a, b); }, .may_use = {}});
  found.equal = egraph.equal(a, b);
  if (found.equal) found.by = egraph.explain(a, b);
  for (const std::uint64_t seed : {1, 2})
    testing::expect_equal_members(egraph, testing::tensors_for(graph, seed), 1e-4);
  return found;
}

constexpr std::string_view kRing = R"(
  rule add_again { source (x: f32[*s], y: f32[*s], z: f32[*s]) { return add(add(x, y), z) }
                   target { return add(x, add(y, z)) } }
  rule mul_again { source (x: f32[*s], y: f32[*s], z: f32[*s]) { return mul(mul(x, y), z) }
                   target { return mul(x, mul(y, z)) } }
  rule distribute { source (x: f32[*s], y: f32[*s], z: f32[*s]) { return mul(x, add(y, z)) }
                    target { return add(mul(x, y), mul(x, z)) } }
)";

TEST(Saturate, FindsWhatFollowsBySeveralSteps) {
  Rewrites ring = rewrites_of(kRing);
  const Outcome found = outcome(ring,
                                "graph(a: f32[2, 3], b: f32[2, 3], c: f32[2, 3], d: f32[2, 3]) { "
                                "return mul(add(a, b), add(c, "
                                "d)), add(add(mul(a, d), mul(b, c)), add(mul(c, a), mul(d, b))) }");
  EXPECT_TRUE(found.equal);
  EXPECT_EQ(found.saturation.why, StopReason::Goal);
  EXPECT_THAT(found.by, UnorderedElementsAre("add_again", "distribute"));
}

TEST(Saturate, DoesNotFindWhatDoesNotFollow) {
  Rewrites ring = rewrites_of(kRing);
  const Outcome found =
      outcome(ring, "graph(a: f32[2], b: f32[2]) { return add(mul(a, b), a), mul(add(a, b), a) }");
  EXPECT_FALSE(found.equal);
  EXPECT_EQ(found.saturation.why, StopReason::Saturated);
}

TEST(Saturate, StopsAtItsLimits) {
  constexpr std::string_view text =
      "graph(a: f32[2], b: f32[2], c: f32[2], d: f32[2], e: f32[2]) { return add(add(add(a, b), "
      "mul(c, d)), e), add(a, mul(add(c, b), add(d, e))) }";
  Rewrites ring = rewrites_of(kRing);
  EXPECT_EQ(outcome(ring, text, {.nodes = 12}).saturation.why, StopReason::Nodes);
  EXPECT_EQ(outcome(ring, text, {.iterations = 1}).saturation.why, StopReason::Iterations);
  EXPECT_EQ(outcome(ring, text, {.seconds = 0}).saturation.why, StopReason::Seconds);
  const std::atomic<bool> stop = true;
  EXPECT_EQ(outcome(ring, text, {.stop = &stop}).saturation.why, StopReason::Stopped);
}

TEST(Saturate, FewMatchesARoundCostRoundsOnly) {
  Rewrites ring = rewrites_of(kRing);
  const Outcome found =
      outcome(ring,
              "graph(a: f32[2], b: f32[2], c: f32[2], d: f32[2]) { return add(add(a, b), add(c, "
              "d)), add(add(d, b), add(c, a)) }",
              {.iterations = 100, .matches = 1});
  EXPECT_TRUE(found.equal);
  EXPECT_GT(found.saturation.iterations, 2);
}

TEST(Saturate, HoldsRulesToTheirGuards) {
  Rewrites guarded = rewrites_of(R"(
    rule only_square { where m == n  source (x: f32[m, n]) { return relu(neg(neg(x))) }
                       target { return relu(x) } })");
  EXPECT_TRUE(outcome(guarded, "graph(x: f32[3, 3]) { return relu(neg(neg(x))), relu(x) }").equal);
  EXPECT_FALSE(outcome(guarded, "graph(x: f32[2, 3]) { return relu(neg(neg(x))), relu(x) }").equal);
}

TEST(Saturate, BindsAttributesAndComputedSizes) {
  Rewrites pieces = rewrites_of(R"(
    rule first_piece {
      source (x: f32[a, n], y: f32[b, n]) {
        p, q = split(concat(x, y) {axis=0}, concat(shape(x) {start=0, end=1}, shape(y) {start=0, end=1}) {axis=0}) {axis=0}
        return p, q
      }
      target { return x, y } }
    rule groups {
      source (x: f32[n, c, h, w], k: f32[f, d, u, v], s: f32[]) { return conv(mul(x, s), k) {group=$g} }
      target { return mul(conv(x, k) {group=$g}, s) } })");
  EXPECT_TRUE(outcome(pieces,
                      "graph(x: f32[2, 3], y: f32[4, 3]) { p, q = split(concat(x, y) {axis=0}, [2, "
                      "4]) {axis=0}  return q, y }")
                  .equal);
  EXPECT_FALSE(
      outcome(pieces,
              "graph(x: f32[2, 3], y: f32[4, 3]) { p, q = split(concat(x, y) {axis=0}, [4, "
              "2]) {axis=0}  return p, y }")
          .equal);
  EXPECT_TRUE(outcome(pieces,
                      "graph(x: f32[1, 4, 5, 5], k: f32[6, 2, 3, 3], s: f32[]) { return "
                      "conv(mul(s, x), k) {group=2}, mul(conv(x, k) {group=2}, s) }")
                  .equal);
}

TEST(Saturate, UsesRulesOfSeveralOutputs) {
  Rewrites joint = rewrites_of(R"(
    rule one_matmul {
      source (x: f32[m, k], y: f32[k, n], z: f32[k, l]) { return matmul(x, y), matmul(x, z) }
      target {
        p, q = split(matmul(x, concat(y, z) {axis=1}), concat(shape(y) {start=1, end=2}, shape(z) {start=1, end=2}) {axis=0}) {axis=1}
        return p, q
      } })");
  const Outcome found = outcome(
      joint,
      "graph(x: f32[2, 3], y: f32[3, 4], z: f32[3, 5]) { p, q = split(matmul(x, concat(y, z) "
      "{axis=1}), [4, 5]) {axis=1}  return relu(q), relu(matmul(x, z)) }");
  EXPECT_TRUE(found.equal);
}

TEST(Saturate, LeavesOutRulesThatMayNotBeUsed) {
  Rewrites ring = rewrites_of(kRing);
  const Graph graph = parsed("graph(a: f32[2], b: f32[2]) { return add(add(a, b), a) }");
  EGraph egraph(ring.analysis());
  egraph.add(graph);
  const Saturation none =
      saturate(egraph, ring, {}, {.goal = {}, .may_use = [](const rules::Rule&) { return false; }});
  EXPECT_EQ(none.applied, 0u);
}

TEST(Saturate, InventsNoInputThatIsRead) {
  // The way back would need y.
  Rewrites lossy = rewrites_of(
      "rule gone { source (x: f32[*s], y: f32[*s]) { return relu(sub(add(x, y), y)) } target { "
      "return relu(x) } }");
  EXPECT_FALSE(outcome(lossy, "graph(x: f32[2], y: f32[2]) { return relu(x), y }").equal);
}

TEST(Saturate, NeedsNoInputOfWhichTheTypeAloneCounts) {
  Rewrites identity = rewrites_of(R"(
    rule identity { source (x: f32[n, m], like: f32[m, m]) { return relu(matmul(x, eye_like(like))) }
                    target { return relu(x) } })");
  EXPECT_TRUE(outcome(identity,
                      "graph(x: f32[2, 3], y: f32[3, 3]) { return relu(matmul(x, eye_like(y))), "
                      "relu(x) }")
                  .equal);
}

/// Every member of every class computes the same, whatever rules were applied to whatever graph.
TEST(Saturate, MembersOfAClassAreEqualOnAnyGraph) {
  Rewrites shipped;
  const auto book = rules::shipped_by_hand();
  ASSERT_TRUE(book);
  for (rules::Rule rule : *book)
    if (rule.numerics.kind != rules::Numerics::Kind::Error) shipped.add(rule);
  std::size_t applied = 0;
  testing::for_each_random_graph({.seed = 5, .count = 150, .max_nodes = 10}, [&](const Graph& g) {
    EGraph egraph(shipped.analysis());
    egraph.add(g);
    applied += saturate(egraph, shipped, {.nodes = 300, .iterations = 3}).applied;
    testing::expect_equal_members(egraph, testing::random_inputs(g, 3), 1e-3);
  });
  EXPECT_GT(applied, 100u);
}

}  // namespace
}  // namespace tessera
