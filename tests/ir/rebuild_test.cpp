#include "tessera/ir/rebuild.h"

#include <gtest/gtest.h>

#include "tessera/ir/text.h"
#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera {
namespace {

using testing::expect_graph;
using testing::expect_valid;
using testing::parsed;

Graph copied(const Graph& graph) {
  return rebuild(graph, [](Rebuilder& out, const GraphNode& node) { return out.copy(node); });
}

TEST(Rebuild, CopiesNamesConstantsAndSubgraphs) {
  const Graph graph = parsed(R"(graph net(c: bool[], x: f32[2], unused: f32[1]) {
    w = const f32[2] [1, 2]
    a = add(x, w) @sum
    b = if_else(c, a) { then(p) { return relu(p) } else(p) { return p } }
    return b, x, w
  })");
  EXPECT_EQ(to_text(copied(graph)), to_text(graph));
}

TEST(Rebuild, LeavesUnusedConstantsBehind) {
  expect_graph(copied(parsed("graph(x: f32[2]) { w = const f32[2] [1, 2]  return relu(x) }")),
               "graph(x: f32[2]) { return relu(x) }");
  EXPECT_EQ(copied(parsed("graph() { w = const f32[1] [1]  return }")).value_count(), 0u);
}

TEST(Rebuild, PutsOtherValuesInPlaceOfResults) {
  const Graph graph = parsed("graph(x: f32[2]) { a = identity(x)  b = neg(a)  return b, a }");
  const Graph without = rebuild(graph, [](Rebuilder& out, const GraphNode& node) {
    return node.op->name == "identity" ? out.inputs_of(node) : out.copy(node);
  });
  expect_graph(without, "graph(x: f32[2]) { b = neg(x)  return b, x }");
  EXPECT_EQ(without.name(without.outputs()[0]), "b");
  EXPECT_EQ(without.name(without.outputs()[1]), "x");
}

TEST(Rebuild, CopiesRandomGraphs) {
  testing::for_each_random_graph({.seed = 3, .count = 100}, [](const Graph& graph) {
    const Graph copy = copied(graph);
    expect_valid(copy);
    EXPECT_EQ(copy.hash(), graph.hash());
    EXPECT_EQ(copy.nodes().size(), graph.nodes().size());
  });
}

}  // namespace
}  // namespace tessera
