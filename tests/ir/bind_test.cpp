#include "tessera/ir/bind.h"

#include <gtest/gtest.h>

#include "tessera/ir/text.h"
#include "tests/support/graph_check.h"

namespace tessera {
namespace {

using testing::expect_graph;
using testing::parsed;

constexpr std::string_view kConv =
    "graph(x: f32[n, c*g, h, w], v: f32[f*g, c, 3, 3]) {\n"
    "  y: f32[n, f*g, floor_div(h + p0 + p2 - 3, s0) + 1, floor_div(p1 + p3 + w - 3, s1) + 1] = "
    "conv(x, v) {group=$g, pads=$p, strides=$s}\n"
    "  return y\n"
    "}\n";

TEST(SymbolicAttributes, ArePartOfTypes) {
  testing::expect_prints(kConv);
  testing::expect_valid(parsed(kConv));
}

TEST(SymbolicAttributes, AreOnlyWhatTheOperatorSays) {
  testing::expect_parse_error("graph(x: f32[2]) { return concat(x, x) {axis=$a} }",
                              "line 1:27: concat: error[op-attribute]: attribute axis of concat is "
                              "of kind symbol\n  note: it has to be of kind int");
}

TEST(Bound, ReplacesSizesAndAttributes) {
  const auto graph = bound(parsed(kConv), {{"n", 1},
                                           {"g", 2},
                                           {"c", 3},
                                           {"f", 4},
                                           {"h", 9},
                                           {"w", 8},
                                           {"p0", 1},
                                           {"p1", 0},
                                           {"p2", 1},
                                           {"p3", 0},
                                           {"s0", 2},
                                           {"s1", 1}});
  ASSERT_TRUE(graph) << to_string(graph.error());
  expect_graph(*graph,
               "graph(x: f32[1, 6, 9, 8], v: f32[8, 3, 3, 3]) { return conv(x, v) "
               "{group=2, pads=[1, 0, 1, 0], strides=[2, 1]} }");
  EXPECT_EQ(graph->name(graph->outputs()[0]), "y");
}

TEST(Bound, LeavesWhatHasNoValue) {
  const auto graph = bound(parsed("graph(x: f32[n, m]) { return relu(x) }"), {{"n", 2}});
  ASSERT_TRUE(graph) << to_string(graph.error());
  expect_graph(*graph, "graph(x: f32[2, m]) { return relu(x) }");
}

TEST(Bound, SaysWhereSizesDoNotFit) {
  const auto graph = bound(parsed("graph(x: f32[n, k], y: f32[m, l]) { return matmul(x, y) }"),
                           {{"k", 2}, {"m", 3}});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().id, "shape-mismatch");
}

TEST(Bound, ReachesIntoSubgraphs) {
  const auto graph = bound(parsed("graph(c: bool[], x: f32[n]) { return if_else(c, x) { then(p: "
                                  "f32[n]) { return neg(p) } else(p: f32[n]) { return p } } }"),
                           {{"n", 2}});
  ASSERT_TRUE(graph) << to_string(graph.error());
  testing::expect_valid(*graph);
  EXPECT_EQ(to_string(graph->type(graph->outputs()[0])), "f32[2]");
}

TEST(Binding, KeepsAListAndItsEntriesEqual) {
  Binding binding;
  EXPECT_TRUE(binding.bind_size("s1", 2));
  EXPECT_FALSE(binding.bind_attr("s", Ints{1, 3}, 1));
  Binding other;
  EXPECT_TRUE(other.bind_attr("s", Ints{1, 3}, 1));
  EXPECT_TRUE(other.bind_size("s1", 3));
  EXPECT_FALSE(other.bind_size("s0", 3));
  EXPECT_EQ(other.size(Dim::symbol("s0") + Dim::symbol("n")), Dim::symbol("n") + 1);
}

TEST(Binding, TakesAnEmptyListForItsNeutralEntries) {
  Binding binding;
  EXPECT_TRUE(binding.bind_attr("p", Ints{}, 0));
  EXPECT_EQ(binding.size(Dim::symbol("p3")), Dim(0));
}

}  // namespace
}  // namespace tessera
