#include "tessera/passes/narrow.h"
#include "tessera/rules/shipped.h"
#include "tessera/search/mutant_trials.h"
#include "tests/search/search_check.h"

namespace tessera {
namespace {

using testing::parsed;
using testing::searched;

/// A computer on which a convolution takes as long as it has elements to compute, and twice as long
/// on several images or with dilations; only what is read is computed.
class SingleImageModel final : public cost::Model {
 public:
  Expected<cost::Estimate> estimate(const Graph& graph, cost::Boundary) override {
    cost::Estimate all;
    const Graph narrow = passes::narrow(graph);
    for (const GraphNode& node : narrow.nodes()) {
      all.seconds += 0.5;
      if (node.op->name != "conv") continue;
      const auto shape = *static_shape(narrow.type(narrow.outputs(node)[0]));
      const Ints dilations = node.attrs->ints("dilations");
      const bool dilated = std::ranges::any_of(dilations, [](auto by) { return by != 1; });
      all.seconds +=
          static_cast<double>(*element_count(shape)) * (shape[0] > 1 ? 2 : 1) * (dilated ? 4 : 1);
    }
    return all;
  }
  cost::Estimate estimate(const runtime::Program&, const program::CompileReport&) const override {
    return {};
  }
  Expected<cost::Estimate> measure(const Graph& graph, cost::Boundary boundary) override {
    return estimate(graph, boundary);
  }
  bool can_measure() const override { return false; }
};

std::size_t number_of(const Graph& graph, std::string_view op) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [&](const GraphNode& node) { return node.op->name == op; }));
}

/// Search with the mutants and the named rules by hand.
search::SearchResult found_with_mutants(std::string_view text,
                                        const std::set<std::string>& by_hand = {}) {
  auto mutants = rules::shipped_mutants();
  const auto others = rules::shipped_by_hand();
  EXPECT_TRUE(mutants && others);
  for (const rules::Rule& rule : *others)
    if (by_hand.contains(rule.name)) mutants->push_back(rule);
  SingleImageModel model;
  return searched(parsed(text), *mutants, model, {.steps = 60});
}

TEST(SearchWithMutants, FoldsABatchIntoRowsAndCorrectsTheSeams) {
  const auto found = found_with_mutants(
      "graph(x: f32[4, 3, 12, 8], k: f32[5, 3, 3, 3], b: f32[5]) {"
      "  return relu(conv(x, k, b) {pads=[1, 1, 1, 1]}) }");
  EXPECT_TRUE(found.better);
  EXPECT_GT(number_of(found.graph, "update_slice"), 0U);
  ASSERT_EQ(found.choices.size(), 1U);
  EXPECT_TRUE(found.choices[0].rules[0].rule.starts_with("conv_bias_as_unfold_"));
}

TEST(SearchWithMutants, ComputesADilatedConvolutionOnDeinterleavedPixels) {
  const auto found = found_with_mutants(
      "graph(x: f32[1, 3, 8, 12], k: f32[5, 3, 3, 3]) {"
      "  return conv(x, k) {pads=[2, 2, 2, 2], dilations=[2, 2]} }");
  EXPECT_TRUE(found.better);
  ASSERT_EQ(found.choices.size(), 1U);
  EXPECT_EQ(found.choices[0].rules[0].rule, "conv_dilated_as_interleave_conv_deinterleave");
}

TEST(SearchWithMutants, AMutantWithoutABiasAppliesToAConvolutionWithOne) {
  const auto found = found_with_mutants(
      "graph(x: f32[1, 3, 8, 12], k: f32[5, 3, 3, 3], b: f32[5]) {"
      "  y = conv(x, k, b) {pads=[2, 1, 2, 1], dilations=[2, 1]}  return relu(y) }",
      {"bias_out_of_conv"});
  EXPECT_TRUE(found.better);
  ASSERT_EQ(found.choices.size(), 1U);
  const search::RuleApplication& step = found.choices[0].rules[0];
  EXPECT_EQ(step.rule, "conv_dilated_rows_as_interleave_rows_conv_deinterleave_rows");
  EXPECT_EQ(step.where, "y");
  EXPECT_EQ(step.also.at(0), "bias_out_of_conv");
}

TEST(SearchWithMutants, FoldsABatchOfVolumesIntoFramesOrRows) {
  const auto found = found_with_mutants(
      "graph(x: f32[4, 3, 6, 12, 8], k: f32[5, 3, 3, 3, 3], b: f32[5]) {"
      "  return relu(conv(x, k, b) {pads=[1, 1, 1, 1, 1, 1]}) }");
  EXPECT_TRUE(found.better);
  EXPECT_GT(number_of(found.graph, "update_slice"), 0U);
  ASSERT_EQ(found.choices.size(), 1U);
  EXPECT_TRUE(found.choices[0].rules[0].rule.starts_with("conv3d_bias_as_unfold_"));
}

TEST(SearchWithMutants, EachMutantIsTriedOnItsOwn) {
  const auto mutants = rules::shipped_mutants();
  auto exposing = rules::shipped_by_hand();
  ASSERT_TRUE(mutants && exposing);
  std::erase_if(*exposing,
                [](const rules::Rule& rule) { return rule.helps != rules::Helps::WithMutant; });
  SingleImageModel model;
  const Graph graph = parsed(
      "graph(x: f32[4, 3, 12, 8], k: f32[3, 3, 3, 3], b: f32[3]) {"
      "  y = conv(x, k, b) {pads=[1, 1, 1, 1]}  z = conv(relu(y), k, b) {pads=[1, 1, 1, 1]}"
      "  return z }");
  const auto trials = search::try_mutants(graph, *mutants, *exposing, model, {});
  ASSERT_TRUE(trials) << to_string(trials.error());
  const auto trial_of = [&](const std::string& rule) {
    const auto it = std::ranges::find(*trials, rule, &search::MutantTrial::rule);
    EXPECT_NE(it, trials->end()) << rule;
    return it == trials->end() ? search::MutantTrial{} : *it;
  };
  // One image in place of four; the correction computes two rows of each.
  const search::MutantTrial folded = trial_of("conv_bias_as_unfold_rows_conv_bias_fold_rows");
  EXPECT_EQ(folded.places, 2u);
  EXPECT_LT(folded.mutant, folded.after);
  EXPECT_LT(folded.after, folded.before);
  EXPECT_GT(folded.correction_share(), 0.1);
  EXPECT_FALSE(folded.region.empty());
  // Without a bias in its source, and equal everywhere.
  const search::MutantTrial turned = trial_of("conv_as_turn_image_conv_turned_turn_image");
  EXPECT_EQ(turned.where, "y");
  EXPECT_EQ(turned.correction_share(), 0);
  EXPECT_GE(turned.after, turned.before);
  EXPECT_TRUE(std::ranges::is_sorted(
      *trials, {}, [](const search::MutantTrial& trial) { return trial.after / trial.before; }));
}

TEST(SearchWithMutants, KeepsWhatNoMutantImproves) {
  const auto found = found_with_mutants(
      "graph(x: f32[1, 3, 7, 9], k: f32[5, 3, 3, 3]) { return conv(x, k) {pads=[1, 1, 1, 1]} }");
  EXPECT_FALSE(found.better);
}

}  // namespace
}  // namespace tessera
