#include "tessera/passes/narrow.h"
#include "tessera/rules/shipped.h"
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

search::SearchResult found_with_mutants(std::string_view text) {
  const auto mutants = rules::shipped_mutants();
  EXPECT_TRUE(mutants) << to_string(mutants.error());
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

TEST(SearchWithMutants, KeepsWhatNoMutantImproves) {
  const auto found = found_with_mutants(
      "graph(x: f32[1, 3, 7, 9], k: f32[5, 3, 3, 3]) { return conv(x, k) {pads=[1, 1, 1, 1]} }");
  EXPECT_FALSE(found.better);
}

}  // namespace
}  // namespace tessera
