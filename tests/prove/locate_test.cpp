/// Damaged copies of small models: each is refuted, and the node or the weight that was edited is
/// named with both sides of the edit.
#include "tessera/prove/locate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/ir/text.h"
#include "tessera/prove/joint_graph.h"
#include "tessera/prove/sweep.h"
#include "tests/support/graph_check.h"

namespace tessera::prove {
namespace {

using ::testing::HasSubstr;
using testing::parsed;

/// One head of attention and a network of one hidden layer.
const std::string kEncoder =
    "graph(x: f32[2, 4, 6], mask: f32[1, 1, 4]) {"
    " q = matmul(x, const f32[6, 6] [0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.2, 0.9, 1.0, 0.1, 0.2,"
    "  0.3, -0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.1, 0.2, -0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.1, 0.2,"
    "  0.3, 0.4, -0.5, 0.6, 0.7, 0.8])"
    " kt = transpose(x) {perm=[0, 2, 1]}"
    " scores = matmul(q, kt)"
    " scaled = mul(scores, 0.408)"
    " masked = add(scaled, mask)"
    " weights = softmax(masked) {axis=-1}"
    " mixed = matmul(weights, x)"
    " sum = sub(mixed, x)"
    " hidden = relu(sum)"
    " joined = concat(hidden, mixed) {axis=2}"
    " result = tanh(joined)"
    " return result }";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// What is said of an edit of the encoder.
std::string located(std::string_view from, std::string_view to) {
  const auto result = sweep(parsed(kEncoder), parsed(replaced(kEncoder, from, to)), {});
  EXPECT_TRUE(result) << to_string(result.error());
  if (!result) return {};
  EXPECT_EQ(to_string(result->verdict), "refuted") << from << " -> " << to;
  EXPECT_TRUE(result->divergence) << from << " -> " << to;
  return result->divergence ? to_string(*result->divergence) : "";
}

TEST(Locate, NamesAChangedAttribute) {
  EXPECT_EQ(located("softmax(masked) {axis=-1}", "softmax(masked) {axis=1}"),
            "differs first at weights (softmax): axis -1 against 1");
}

TEST(Locate, NamesAChangedElementOfAWeight) {
  EXPECT_THAT(located("0.9, 1.0, 0.1", "0.9, 2.0, 0.1"), HasSubstr("[1, 3] 1.0 against 2.0"));
}

TEST(Locate, NamesExchangedOperands) {
  EXPECT_EQ(located("sub(mixed, x)", "sub(x, mixed)"),
            "differs first at sum (sub): operand 0 mixed against x; operand 1 x against mixed");
  EXPECT_THAT(located("concat(hidden, mixed)", "concat(mixed, hidden)"),
              HasSubstr("differs first at joined (concat)"));
}

TEST(Locate, NamesAnotherOperatorAndOneThatIsMissing) {
  EXPECT_EQ(located("relu(sum)", "abs(sum)"),
            "differs first at hidden (relu): operator relu against abs");
  EXPECT_THAT(located("concat(hidden, mixed)", "concat(sum, mixed)"),
              HasSubstr("operand 0 hidden against sum"));
}

// Its operand becomes one of which the model has the same already: nothing new is computed there.
TEST(Locate, NamesANodeThatBecomesEqualToAnother) {
  const auto result = sweep(parsed("graph(x: f32[2, 3], y: f32[2, 3]) { a = exp(x) b = relu(a)"
                                   " c = exp(y) d = relu(c) s = sub(b, d) r = tanh(s) return r }"),
                            parsed("graph(x: f32[2, 3], y: f32[2, 3]) { a = exp(x) b = relu(a)"
                                   " c = exp(y) d = relu(a) s = sub(b, d) r = tanh(s) return r }"),
                            {});
  ASSERT_TRUE(result && result->divergence);
  EXPECT_EQ(to_string(*result->divergence), "differs first at d (relu): operand 0 c against a");
}

TEST(Locate, NamesAChangedNumber) {
  EXPECT_THAT(located("0.408", "0.5"), HasSubstr("differs first at scaled (mul)"));
}

TEST(Locate, ShowsSubgraphsThatBeginWhereTheModelsAgree) {
  const auto result =
      sweep(parsed(kEncoder), parsed(replaced(kEncoder, "relu(sum)", "abs(sum)")), {});
  ASSERT_TRUE(result && result->divergence);
  EXPECT_EQ(result->divergence->source.subgraph.nodes().size(), 1u);
  EXPECT_THAT(to_text(result->divergence->target.subgraph), HasSubstr("abs(sum)"));
}

// A tool that rewrites the model and breaks it elsewhere: what it rewrote is not blamed.
TEST(Locate, PassesOverWhatIsComputedOtherwise) {
  const std::string rewritten =
      replaced(replaced(kEncoder, "mul(scores, 0.408)", "div(scores, 2.4509804)"), "relu(sum)",
               "relu(mixed)");
  const auto result = sweep(parsed(kEncoder), parsed(rewritten), {});
  ASSERT_TRUE(result && result->divergence);
  EXPECT_THAT(to_string(*result->divergence), HasSubstr("differs first at hidden (relu)"));
}

TEST(JointGraph, ComputesCongruentValuesOnce) {
  const Graph source = parsed("graph(x: f32[4]) { a = exp(x) b = relu(a) return b }");
  const Graph target = parsed("graph(x: f32[4]) { a = exp(x) b = tanh(a) return b }");
  const JointGraph joint = joint_graph(source, target);
  EXPECT_EQ(joint.graph.nodes().size(), 3u);
  EXPECT_EQ(joint.graph.outputs().size(), 2u);
  EXPECT_EQ(joint_graph(source, source).graph.nodes().size(), 2u);
}

TEST(JointGraph, KeepsTwoRandomDrawsApart) {
  const Graph draw = parsed("graph(x: f32[4]) { return add(x, random_normal() {shape=[4]}) }");
  EXPECT_EQ(joint_graph(draw, draw).graph.nodes().size(), 4u);
}

}  // namespace
}  // namespace tessera::prove
