#include "tessera/prove/sizes.h"

#include <gtest/gtest.h>

#include "tessera/ir/text.h"
#include "tests/support/graph_check.h"

namespace tessera::prove {
namespace {

using testing::parsed;

std::string text_of(const SizeRelations& relations) {
  std::string text;
  for (const auto& [name, value] : relations.solved)
    text += fmt::format("{}{} := {}", text.empty() ? "" : ", ", name, value.to_string());
  if (!relations.open.empty())
    text += (text.empty() ? "where " : " where ") + to_text(relations.open);
  return text;
}

void expect_relations(std::string_view graph, std::string_view expected) {
  const auto relations = relate_sizes(parsed(graph));
  ASSERT_TRUE(relations) << to_string(relations.error());
  EXPECT_EQ(text_of(*relations), expected) << graph;
}

/// What the target asks for beyond the source.
void expect_beyond(std::string_view source, std::string_view target, std::string_view expected) {
  const auto given = relate_sizes(parsed(source));
  ASSERT_TRUE(given) << to_string(given.error());
  const auto all = relate_sizes(parsed(target), *given);
  ASSERT_TRUE(all) << to_string(all.error());
  EXPECT_EQ(to_text(beyond(*given, *all)), expected);
}

TEST(Sizes, MultiplesThatTheTargetAsksForAreSaid) {
  expect_beyond("graph(x: f32[1, n, 4, 4]) { return reduce_sum(x) }",
                "graph(x: f32[1, n, 4, 4]) { return depth_to_space(x) {blocksize=2} }",
                "n == 4*floor_div(n, 4)");
  expect_beyond("graph(x: f32[n]) { return reduce_sum(x) }",
                "graph(x: f32[n]) { return expand(x, i64[1] [4]) }", "n == 4");
}

TEST(Sizes, AxesThatMeetAreEqual) {
  expect_relations("graph(a: f32[m, k], b: f32[l, n]) { return matmul(a, b) }", "l := k");
  expect_relations("graph(a: f32[m, k], b: f32[l, n]) { return add(a, b) }", "m := l, n := k");
  expect_relations("graph(a: f32[m, k], b: f32[1, n]) { return add(a, b) }", "n := k");
  expect_relations("graph(a: f32[m, 4], b: f32[n]) { return add(a, b) }", "n := 4");
}

TEST(Sizes, ASumIsNamedByItsParts) {
  expect_relations(
      "graph(a: f32[m, k], b: f32[m, l], c: f32[m, n]) { return add(concat(a, b) {axis=1}, c) }",
      "n := k + l");
  expect_relations(
      "graph(a: f32[k], b: f32[l], c: f32[m], d: f32[n]) {"
      " return add(concat(a, b) {axis=0}, concat(c, d) {axis=0}) }",
      "n := k + l - m where 1 <= k + l - m");
}

TEST(Sizes, GroupsDivideChannels) {
  expect_relations("graph(x: f32[n, c, h, w], k: f32[f, d, 3, 3]) { return conv(x, k) {group=$g} }",
                   "c := d*g, f := f.part*g where 0 <= h - 2, 0 <= w - 2");
  expect_relations(
      "graph(x: f32[n, c, h, w], k: f32[f, 1, 3, 3]) {"
      " return conv(x, k) {group=$g, auto_pad=\"SAME_UPPER\"} }",
      "c := g, f := f.part*g");
  expect_relations(
      "graph(x: f32[n, c, h, w], k: f32[f, d, r, s], l: f32[e, b, r, s]) {"
      " return conv(x, k) {group=$g, auto_pad=\"SAME_UPPER\"},"
      " conv(x, l) {group=$i, auto_pad=\"SAME_UPPER\"} }",
      "c := d*g, e := e.part*i, f := f.part*g where b*i == d*g");
}

TEST(Sizes, WindowsAreSolvedExactly) {
  const auto graph = [](std::string_view window) {
    return fmt::format("graph(a: f32[2*r + 1], b: f32[{}]) {{ return add(a, b) }}", window);
  };
  expect_relations(graph("2*s + 1"), "s := r");
  expect_relations(graph("k"), "k := 2*r + 1");
  expect_relations(graph("5"), "r := 2");
}

TEST(Sizes, WhatOneNodeTellsIsUsedByTheOthers) {
  expect_relations(
      "graph(a: f32[m, k], b: f32[l, n], c: f32[p, q]) {"
      " return add(matmul(a, b), matmul(b, c)), sub(a, c) }",
      "l := k, m := k, n := k, p := k, q := k");
}

void expect_contradiction(std::string_view graph, std::string_view message) {
  const auto relations = relate_sizes(parsed(graph));
  ASSERT_FALSE(relations) << graph;
  EXPECT_EQ(to_string(relations.error()),
            fmt::format("error[sizes-contradict]: the sizes would have to satisfy {}", message));
}

TEST(Sizes, AContradictionIsToldOf) {
  expect_contradiction(
      "graph(a: f32[m, n], b: f32[n, m]) {"
      " return add(concat(a, a) {axis=1}, b), add(concat(a, a) {axis=0}, b) }",
      "2*m == m");
  expect_contradiction("graph(a: f32[2*r + 1], b: f32[4]) { return add(a, b) }", "2*r + 1 == 4");
}

TEST(Sizes, TheGuardIsWhatTheTargetNeedsMore) {
  expect_beyond(
      "graph(x: f32[n, c, h, w], k: f32[f, d, 2*r + 1, 2*s + 1], l: f32[e, b, 2*t + 1, 2*u + 1]) {"
      " return conv(x, k) {group=$g, auto_pad=\"SAME_UPPER\"},"
      " conv(x, l) {group=$i, auto_pad=\"SAME_UPPER\"} }",
      "graph(x: f32[n, c, h, w], k: f32[f, d, 2*r + 1, 2*s + 1], l: f32[e, b, 2*t + 1, 2*u + 1]) {"
      " return conv(x, concat(k, l) {axis=0}) {group=$j, auto_pad=\"SAME_UPPER\"} }",
      "d == b, i == g, t == r, u == s");
}

TEST(Sizes, AttributesAreReplacedToo) {
  const Graph graph = parsed(
      "graph(x: f32[n, c, h, w], k: f32[f, d, 3, 3]) {"
      " return conv(x, k) {group=$g, strides=$s, pads=$p} }");
  const auto numbers = with_sizes(graph, {{"n", 1},
                                          {"c", 4},
                                          {"d", 2},
                                          {"f", 6},
                                          {"h", 8},
                                          {"w", 9},
                                          {"g", 2},
                                          {"s0", 1},
                                          {"s1", 2},
                                          {"p0", 1},
                                          {"p1", 0},
                                          {"p2", 1},
                                          {"p3", 0}});
  ASSERT_TRUE(numbers) << to_string(numbers.error());
  testing::expect_graph(*numbers,
                        "graph(x: f32[1, 4, 8, 9], k: f32[6, 2, 3, 3]) {"
                        " return conv(x, k) {group=2, strides=[1, 2], pads=[1, 0, 1, 0]} }");
  const auto renamed =
      with_sizes(graph, {{"g", Dim::symbol("i")}, {"c", Dim::symbol("i") * 2}, {"d", 2}});
  ASSERT_TRUE(renamed) << to_string(renamed.error());
  testing::expect_graph(*renamed,
                        "graph(x: f32[n, 2*i, h, w], k: f32[f, 2, 3, 3]) {"
                        " return conv(x, k) {group=$i, strides=$s, pads=$p} }");
}

}  // namespace
}  // namespace tessera::prove
