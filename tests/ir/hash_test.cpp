#include <gtest/gtest.h>

#include <set>

#include "tessera/ir/graph.h"
#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera {
namespace {

std::uint64_t hash(std::string_view text) {
  return testing::parsed(text).hash();
}

constexpr std::string_view kGraph =
    "graph(x: f32[2, 4], y: f32[2, 4]) { a = softmax(x)  b = relu(y)  return add(a, b) }";

TEST(Hash, DoesNotDependOnNames) {
  EXPECT_EQ(hash(kGraph),
            hash("graph net(p: f32[2, 4], q: f32[2, 4]) {"
                 "  %2 = softmax(p) @node  s = relu(q)  sum = add(%2, s)  return sum }"));
}

TEST(Hash, DoesNotDependOnTheOrderOfNodes) {
  EXPECT_EQ(hash(kGraph), hash("graph(x: f32[2, 4], y: f32[2, 4]) {"
                               "  b = relu(y)  a = softmax(x)  return add(a, b) }"));
}

TEST(Hash, DoesNotDependOnWhatNobodyUses) {
  EXPECT_EQ(hash(kGraph), hash("graph(x: f32[2, 4], y: f32[2, 4]) {"
                               "  w = const f32[1] [3]  a = softmax(x)  dead = neg(a)  b = relu(y)"
                               "  return add(a, b) }"));
}

TEST(Hash, DependsOnEverythingElse) {
  const std::vector<std::string> different = {
      std::string(kGraph),
      // attribute, operator, wiring, type of an input, order and number of outputs
      "graph(x: f32[2, 4], y: f32[2, 4]) { return add(softmax(x) {axis=0}, relu(y)) }",
      "graph(x: f32[2, 4], y: f32[2, 4]) { return sub(softmax(x), relu(y)) }",
      "graph(x: f32[2, 4], y: f32[2, 4]) { return add(relu(y), softmax(x)) }",
      "graph(x: f32[2, 4], y: f32[2, 4]) { return add(softmax(y), relu(x)) }",
      "graph(x: f32[2, 4], y: f32[1, 4]) { return add(softmax(x), relu(y)) }",
      "graph(x: f32[n, 4], y: f32[n, 4]) { return add(softmax(x), relu(y)) }",
      "graph(x: f64[2, 4], y: f64[2, 4]) { return add(softmax(x), relu(y)) }",
      "graph(x: f32[2, 4], y: f32[2, 4]) { a = softmax(x)  return add(a, relu(y)), a }",
      "graph(x: f32[2, 4], y: f32[2, 4]) { a = softmax(x)  return a, add(a, relu(y)) }",
      // constants, by content and by type
      "graph(x: f32[2, 4]) { return add(x, f32[1] [1]) }",
      "graph(x: f32[2, 4]) { return add(x, f32[1] [2]) }",
      "graph(x: f32[2, 4]) { return add(x, f32[] 1) }",
      // an input left out, and which result is used
      "graph(x: f32[2]) { return clip(x, 1.0) }",
      "graph(x: f32[2]) { return clip(x, _, 1.0) }",
      "graph(x: f32[2]) { a, b = split(x, [1, 1])  return a }",
      "graph(x: f32[2]) { a, b = split(x, [1, 1])  return b }",
      // subgraphs
      "graph(c: bool[]) { return if_else(c) { then() { return 1.0 } else() { return 2.0 } } }",
      "graph(c: bool[]) { return if_else(c) { then() { return 2.0 } else() { return 1.0 } } }",
  };
  std::set<std::uint64_t> hashes;
  for (const std::string& text : different) EXPECT_TRUE(hashes.insert(hash(text)).second) << text;
}

TEST(Hash, TellsRandomGraphsApart) {
  std::set<std::uint64_t> hashes;
  int graphs = 0;
  testing::for_each_random_graph({.seed = 5, .count = 300, .max_nodes = 12},
                                 [&](const Graph& graph) {
                                   if (graph.nodes().size() < 4) return;
                                   ++graphs;
                                   hashes.insert(graph.hash());
                                 });
  // Two draws may agree in what their outputs need.
  EXPECT_GT(static_cast<int>(hashes.size()), graphs * 9 / 10);
}

}  // namespace
}  // namespace tessera
