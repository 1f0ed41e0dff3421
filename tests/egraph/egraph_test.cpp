#include "tessera/egraph/egraph.h"

#include <gmock/gmock.h>

#include "tests/egraph/egraph_check.h"

namespace tessera {
namespace {

using egraph::ClassId;
using egraph::EGraph;
using egraph::Premises;
using ::testing::ElementsAre;
using testing::parsed;

/// The classes of the outputs of a graph.
std::vector<ClassId> outputs_of(const Graph& graph, const std::vector<ClassId>& values) {
  std::vector<ClassId> outputs;
  for (const ValueId id : graph.outputs()) outputs.push_back(values[id.index]);
  return outputs;
}
std::vector<ClassId> added(EGraph& into, std::string_view text) {
  const Graph graph = parsed(text);
  return outputs_of(graph, into.add(graph));
}

TEST(EGraph, HoldsEqualComputationsOnce) {
  EGraph graph;
  const auto out =
      added(graph, "graph(x: f32[2]) { a = relu(x)  b = relu(x)  return add(a, a), add(b, a) }");
  EXPECT_EQ(out[0], out[1]);
  EXPECT_EQ(graph.node_count(), 2u);
}

TEST(EGraph, TakesOperandsThatCommuteInEitherOrder) {
  EGraph graph;
  const auto out = added(graph,
                         "graph(x: f32[2], y: f32[2]) { return add(x, y), add(y, x), sub(x, y), "
                         "sub(y, x) }");
  EXPECT_EQ(out[0], out[1]);
  EXPECT_NE(out[2], out[3]);
}

TEST(EGraph, TakesAttributesByWhatTheyMean) {
  EGraph graph;
  const auto out = added(graph,
                         "graph(x: f32[2, 3]) { return concat(x, x) {axis=-1}, concat(x, x) "
                         "{axis=1}, concat(x, x) {axis=0} }");
  EXPECT_EQ(out[0], out[1]);
  EXPECT_NE(out[0], out[2]);
}

TEST(EGraph, TakesConstantsByContent) {
  EGraph graph;
  const auto out =
      added(graph, "graph(x: f32[2]) { return add(x, f32[] 2), add(x, f32[] 2), add(x, f32[] 3) }");
  EXPECT_EQ(out[0], out[1]);
  EXPECT_NE(out[0], out[2]);
}

TEST(EGraph, WhatIsComputedFromEqualsIsEqual) {
  EGraph graph;
  const Graph g = parsed(
      "graph(x: f32[2], y: f32[2]) { return mul(relu(neg(x)), 2.0), mul(relu(neg(y)), 2.0) }");
  const auto values = graph.add(g);
  const auto out = outputs_of(g, values);
  EXPECT_FALSE(graph.equal(out[0], out[1]));
  const std::uint32_t rule = graph.origin("same");
  EXPECT_TRUE(graph.unite(values[0], values[1], {.origin = rule}));
  graph.rebuild();
  EXPECT_TRUE(graph.equal(out[0], out[1]));
  EXPECT_EQ(graph.node_count(), 3u);
  EXPECT_THAT(graph.explain(out[0], out[1]), ElementsAre("same"));
}

TEST(EGraph, NodesWithSeveralResultsAreEqualResultByResult) {
  EGraph graph;
  const Graph g = parsed(
      "graph(x: f32[4], y: f32[4]) { a, b = split(x) {num_outputs=2}  c, d = split(y) "
      "{num_outputs=2}  return a, b, c, d }");
  const auto values = graph.add(g);
  const auto out = outputs_of(g, values);
  graph.unite(values[g.inputs()[0].index], values[g.inputs()[1].index], {});
  graph.rebuild();
  EXPECT_TRUE(graph.equal(out[0], out[2]));
  EXPECT_TRUE(graph.equal(out[1], out[3]));
  EXPECT_FALSE(graph.equal(out[0], out[1]));
}

TEST(EGraph, DoesNotUniteValuesOfDifferentTypes) {
  EGraph graph;
  const Graph g = parsed("graph(x: f32[2], y: f32[3]) { return x, y }");
  const auto values = graph.add(g);
  EXPECT_FALSE(graph.unite(values[0], values[1], {}));
  EXPECT_FALSE(graph.equal(values[0], values[1]));
}

TEST(EGraph, AnOperandOfWhichTheTypeCountsIsAnyOfThatType) {
  EGraph graph;
  const auto out = added(graph,
                         "graph(x: f32[2, 2], y: f32[2, 2], z: f32[3, 3]) { return eye_like(x), "
                         "eye_like(relu(y)), eye_like(z) }");
  EXPECT_EQ(out[0], out[1]);
  EXPECT_NE(out[0], out[2]);
}

TEST(EGraph, KeepsResultsOfADifferentContentApart) {
  EGraph graph;
  const auto out = added(
      graph,
      "graph(x: f32[2, 3]) { return reshape(x, [3, 2]), reshape(x, [6, 1]), reshape(x, [-1, 2]) }");
  EXPECT_NE(out[0], out[1]);
}

TEST(EGraph, KnowsWhatIsComputedFromConstantsAlone) {
  EGraph graph;
  const Graph g =
      parsed("graph(x: f32[2]) { c = neg(f32[2] [1, 2])  return c, add(x, c), neg(neg(c)) }");
  const auto values = graph.add(g);
  const auto out = outputs_of(g, values);
  EXPECT_TRUE(graph.at(out[0]).from_constants);
  EXPECT_FALSE(graph.at(out[1]).from_constants);
  EXPECT_TRUE(graph.at(out[2]).from_constants);
  // What turns out to be a constant makes constants of what is computed from it.
  graph.unite(values[g.inputs()[0].index], out[0], {});
  graph.rebuild();
  EXPECT_TRUE(graph.at(out[1]).from_constants);
}

TEST(EGraph, EveryDrawIsItsOwn) {
  EGraph graph;
  const auto out =
      added(graph, "graph(x: f32[2]) { return random_normal_like(x), random_normal_like(x) }");
  EXPECT_NE(out[0], out[1]);
}

}  // namespace
}  // namespace tessera
