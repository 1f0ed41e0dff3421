#include "tessera/prove/refute.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/prove/prove.h"
#include "tessera/prove/sizes.h"
#include "tests/support/graph_check.h"

namespace tessera::prove {
namespace {

using testing::parsed;

/// What is found, under what the target needs.
Verdict found(const Graph& source, const Graph& target) {
  const auto given = relate_sizes(source);
  const auto all = given ? relate_sizes(target, *given) : given;
  EXPECT_TRUE(all) << to_string(all.error());
  return refute(source, target, all ? beyond(*given, *all) : Guard{}, {.tries = 40});
}

void expect_counterexample(std::string_view source, std::string_view target) {
  const Graph from = parsed(source), to = parsed(target);
  const Verdict verdict = found(from, to);
  const auto* refuted = std::get_if<Refuted>(&verdict);
  ASSERT_NE(refuted, nullptr) << std::get<Unknown>(verdict).why << "\n" << source << target;
  EXPECT_NE(refuted->source, refuted->target);
  const auto again = replay(from, to, *refuted);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_TRUE(*again);
}

void expect_not_refuted(std::string_view source, std::string_view target) {
  const Verdict verdict = found(parsed(source), parsed(target));
  const auto* refuted = std::get_if<Refuted>(&verdict);
  EXPECT_EQ(refuted, nullptr) << refuted->what << "\n" << source << target;
}

TEST(Refute, FindsADifferenceInNumbers) {
  expect_counterexample("graph(x: f32[m, n], y: f32[m, n]) { return sub(x, y) }",
                        "graph(x: f32[m, n], y: f32[m, n]) { return sub(y, x) }");
  expect_counterexample("graph(x: f32[m, n]) { return relu(x) }",
                        "graph(x: f32[m, n]) { return x }");
  expect_counterexample("graph(x: f32[m, n]) { return log(x) }",
                        "graph(x: f32[m, n]) { return log(mul(x, 2.0)) }");
}

TEST(Refute, DrawsTextBesideNumbers) {
  const std::string split = "a, b = string_split(t) {delimiter=\"a\"} ";
  expect_counterexample("graph(x: f32[n], t: string[m]) { " + split + "return mul(x, x), a, b }",
                        "graph(x: f32[n], t: string[m]) { " + split + "return mul(x, 2.0), a, b }");
  // Results computed from text may differ, too.
  expect_counterexample("graph(t: string[m]) { " + split + "return b }",
                        "graph(t: string[m]) { " + split + "return mul(b, 2) }");
}

TEST(Refute, FindsSizesThatGroupsNeed) {
  expect_counterexample(
      "graph(x: f32[n, c, h, w], k: f32[f, d, 3, 3], l: f32[e, b, 3, 3]) {"
      " return concat(conv(x, k) {group=$g}, conv(x, l) {group=$i}) {axis=1} }",
      "graph(x: f32[n, c, h, w], k: f32[f, d, 3, 3], l: f32[e, b, 3, 3]) {"
      " return conv(x, concat(k, l) {axis=0}) {group=$j} }");
}

TEST(Refute, DrawsStridesAndPads) {
  expect_counterexample(
      "graph(x: f32[n, c, h, w], k: f32[f, c, 2*r + 1, 2*s + 1]) {"
      " return conv(x, k) {strides=$t, pads=$p} }",
      "graph(x: f32[n, c, h, w], k: f32[f, c, 2*r + 1, 2*s + 1]) {"
      " return conv(relu(x), k) {strides=$t, pads=$p} }");
}

TEST(Refute, DoesNotFollowBoundsThatAreHashes) {
  constexpr std::string_view kGraph =
      "graph(x: bool[2], y: bool[2], image: f32[1, 1, 4, 6], boxes: f32[3, 5]) {{"
      "  return logical_and(x, {}), max_roi_pool(image, boxes) {{pooled_shape=[2, 2]}} }}";
  expect_counterexample(fmt::format(kGraph, "y"), fmt::format(kGraph, "x"));
}

TEST(Refute, LeavesWhatIsEqualAlone) {
  expect_not_refuted(
      "graph(x: f32[m, k], y: f32[k, n], z: f32[n, p]) {"
      " return matmul(matmul(x, y), z) }",
      "graph(x: f32[m, k], y: f32[k, n], z: f32[n, p]) {"
      " return matmul(x, matmul(y, z)) }");
  expect_not_refuted("graph(x: f32[n]) { return exp(add(x, x)) }",
                     "graph(x: f32[n]) { return mul(exp(x), exp(x)) }");
  expect_not_refuted("graph(x: f32[n]) { return relu(mul(x, 2.0)) }",
                     "graph(x: f32[n]) { return mul(relu(x), 2.0) }");
}

TEST(Refute, ATargetThatDoesNotFitIsADifference) {
  const Graph source = parsed("graph(x: f32[m, n], y: f32[k, n]) { return x, y }");
  const Graph target = parsed("graph(x: f32[m, n], y: f32[k, n]) { a = add(x, y) return x, y }");
  const Verdict verdict = refute(source, target, {}, {});
  const auto* refuted = std::get_if<Refuted>(&verdict);
  ASSERT_NE(refuted, nullptr);
  EXPECT_TRUE(refuted->what.starts_with("the target cannot be built")) << refuted->what;
  const auto again = replay(source, target, *refuted);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_TRUE(*again);
}

TEST(Refute, KeepsToTheGuard) {
  const Graph source = parsed("graph(x: f32[m, n]) { return x }");
  const Graph target = parsed("graph(x: f32[m, n]) { return reshape(x, [1, -1]) }");
  EXPECT_TRUE(std::holds_alternative<Refuted>(refute(source, target, {}, {})));
  EXPECT_TRUE(
      std::holds_alternative<Unknown>(refute(source, target, {equal(Dim::symbol("m"), 1)}, {})));
}

}  // namespace
}  // namespace tessera::prove
