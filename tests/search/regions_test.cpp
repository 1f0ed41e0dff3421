#include "tessera/search/regions.h"

#include "tests/search/search_check.h"

namespace tessera {
namespace {

using testing::parsed;

std::vector<Graph> graphs_of(const std::vector<search::Region>& regions) {
  std::vector<Graph> graphs;
  for (const search::Region& region : regions) graphs.push_back(region.graph);
  return graphs;
}

constexpr std::string_view kTwoBlocks = R"(graph(x: f32[8]) {
  a = tanh(x)
  b = sigmoid(x)
  c = mul(a, b)
  d = exp(c)
  e = tanh(c)
  f = add(d, e)
  return f
})";

TEST(Regions, AreCutWhereOneValueGoesToManyReaders) {
  const auto regions = search::regions_of(parsed(kTwoBlocks), {.least_nodes = 2});
  ASSERT_EQ(regions.size(), 2U);
  EXPECT_EQ(regions[0].graph.nodes().size(), 3U);
  EXPECT_EQ(regions[1].inputs.size(), 1U);
}

TEST(Regions, AreNoLargerThanAllowed) {
  const Graph graph = parsed(kTwoBlocks);
  for (const auto& region : search::regions_of(graph, {.least_nodes = 1, .most_nodes = 2}))
    EXPECT_LE(region.graph.nodes().size(), 2U);
}

TEST(Regions, MakeTheGraphAgainThatTheyWereCutFrom) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Graph graph = testing::random_graph(seed, 14);
    const auto regions = search::regions_of(graph, {.least_nodes = 1, .most_nodes = 3});
    const auto again = search::with_regions_replaced(graph, regions, graphs_of(regions));
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_TRUE(same_graph(graph, *again)) << to_text(graph) << to_text(*again);
  }
}

TEST(Regions, HaveOutputsThatAreComputedFromConstants) {
  for (const char* text : {"graph(x: f32[3]) { c = exp(f32[3] [1, 2, 3])  return neg(x), c }",
                           "graph(x: f32[3]) { c = exp(f32[3] [1, 2, 3])  return c, mul(x, c) }",
                           "graph(x: f32[3]) { c = exp(f32[3] [1, 2, 3])  return c }",
                           "graph(x: f32[3]) { v, i = top_k(exp(f32[3] [1, 2, 3]), [2])"
                           "  return add(v, slice(x, [0], [2])), i }"}) {
    const Graph graph = parsed(text);
    const auto regions = search::regions_of(graph, {.least_nodes = 1, .most_nodes = 1});
    const auto again = search::with_regions_replaced(graph, regions, graphs_of(regions));
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_TRUE(same_graph(graph, *again)) << to_text(graph) << to_text(*again);
  }
}

TEST(Regions, KeepTheNamesOfValues) {
  const Graph graph = parsed(
      "graph(x: f32[2, 4]) {"
      "  a = relu(x)  b = exp(a)  c = neg(b)  d = relu(c)  e = exp(d)  f = neg(e)  return f }");
  const auto regions = search::regions_of(graph, {.least_nodes = 3, .most_nodes = 3});
  ASSERT_EQ(regions.size(), 2u);
  const auto names_of = [](const Graph& of) {
    std::string names;
    for (const GraphNode& node : of.nodes())
      for (const ValueId id : of.outputs(node)) names += of.is_named(id) ? of.name(id) : "_";
    return names;
  };
  const auto same = search::with_regions_replaced(graph, regions, graphs_of(regions));
  ASSERT_TRUE(same) << to_string(same.error());
  EXPECT_EQ(names_of(*same), "abcdef");
  // A region that was searched for another one has the names of its own values.
  const auto shared =
      search::with_regions_replaced(graph, regions, {regions[0].graph, regions[0].graph});
  ASSERT_TRUE(shared) << to_string(shared.error());
  EXPECT_EQ(names_of(*shared), "abcdef");
}

std::string product(const std::string& numbers) {
  return "graph(x: f32[2, 4]) { w = const f32[4, 5] [" + numbers + "] return matmul(x, w) }";
}
const std::string kOne = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20";
const std::string kOther = "2,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20";
const std::string kZero = "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0";

TEST(Skeleton, IsTheSameWithOtherWeights) {
  EXPECT_EQ(search::skeleton(parsed(product(kOne))), search::skeleton(parsed(product(kOther))));
}

TEST(Skeleton, SeesOneNumberRepeated) {
  EXPECT_NE(search::skeleton(parsed(product(kOne))), search::skeleton(parsed(product(kZero))));
}

TEST(Skeleton, GivesARegionTheWeightsOfAnother) {
  const Graph one = parsed(product(kOne)), other = parsed(product(kOther));
  EXPECT_TRUE(same_graph(search::with_weights_of(one, one, other), other));
}

TEST(SameGraph, DoesNotLookAtNamesOrOrder) {
  const Graph a = parsed("graph(x: f32[2]) { a = exp(x) b = tanh(x) return add(a, b) }");
  const Graph b = parsed("graph(y: f32[2]) { q = tanh(y) p = exp(y) return add(p, q) }");
  EXPECT_TRUE(same_graph(a, b));
}

TEST(SameGraph, TellsWiringsApart) {
  const Graph a = parsed("graph(x: f32[2], y: f32[2]) { return sub(exp(x), exp(y)) }");
  const Graph b = parsed("graph(x: f32[2], y: f32[2]) { return sub(exp(y), exp(x)) }");
  EXPECT_FALSE(same_graph(a, b));
}

TEST(Regions, KnowWhatAStepFunctionReads) {
  // The division is read by floor, far away; exp is not.
  const Graph graph = parsed(
      "graph(x: f32[8], y: f32[8]) { a = div(x, 41.0)  b = exp(y)  c = neg(b)  d = tanh(c)  "
      "e = floor(a)  return e, d }");
  std::vector<bool> found;
  for (const auto& region : search::regions_of(graph, {.least_nodes = 1, .most_nodes = 1}))
    found.push_back(region.keeps_rounding);
  EXPECT_EQ(found, (std::vector<bool>{true, false, false, false, false}));
}

}  // namespace
}  // namespace tessera
