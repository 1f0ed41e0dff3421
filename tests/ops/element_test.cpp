#include <set>

#include "tessera/ir/infer.h"
#include "tessera/ops/catalog.h"
#include "tests/support/element_check.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera {
namespace {

/// All values of a graph whose sizes are numbers, one node after the other; calls `f` with each
/// node of a core operator.
template <class F>
void for_core_nodes(const Graph& graph, const std::vector<Tensor>& inputs, const F& f) {
  std::vector<std::optional<Tensor>> values(graph.value_count());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (const Tensor* constant = graph.constant({i})) values[i] = *constant;
  for (const GraphNode& node : graph.nodes()) {
    std::vector<std::optional<Tensor>> operands;
    for (const ValueId id : graph.inputs(node))
      operands.push_back(id.present() ? values[id.index] : std::nullopt);
    const std::vector<Tensor> results = testing::evaluate(node.op->name, *node.attrs, operands);
    for (std::size_t i = 0; i < graph.outputs(node).size() && i < results.size(); ++i)
      values[graph.outputs(node)[i].index] = results[i];
    if (node.op->kind() == OpDef::Kind::Core) f(node, operands);
    if (::testing::Test::HasFailure()) return;
  }
}

/// The names of the operators for which an element is a sum of products, and was compared.
class Elements : public ::testing::Test {
 protected:
  void expect_elements(const Graph& graph, const std::vector<Tensor>& inputs) {
    for_core_nodes(graph, inputs, [&](const GraphNode& node, const auto& operands) {
      SCOPED_TRACE(node.op->name);
      std::vector<ValueInfo> known;
      std::vector<Tensor> present;
      for (const std::optional<Tensor>& operand : operands) {
        known.push_back(operand ? constant_info(*operand) : ValueInfo{.present = false});
        if (operand) present.push_back(*operand);
      }
      const auto definition = node.op->define(*node.attrs, *signature_of(known));
      ASSERT_TRUE(definition) << to_string(definition.error());
      for (std::size_t i = 0; i < definition->outputs.size(); ++i)
        if (testing::expect_elements(*definition, i, present)) compared_.insert(node.op->name);
    });
  }

  std::set<std::string> compared_;
};

TEST_F(Elements, AreWhatDefinitionsEvaluateToInRandomGraphs) {
  testing::for_each_random_graph({.seed = 3, .count = 60, .max_nodes = 6}, [&](const Graph& graph) {
    expect_elements(graph, testing::random_inputs(graph, 5));
  });
  EXPECT_GE(compared_.size(), 25u);
}

TEST_F(Elements, AreWhatDefinitionsEvaluateToForTheOthers) {
  for (const char* text : {
           "graph(x: f32[2, 4, 5, 5], k: f32[6, 2, 3, 3], b: f32[6]) { return conv(x, k, b) "
           "{group=2, strides=[2,1], pads=[1,0,1,2], dilations=[1,2]} }",
           "graph(x: f32[1, 2, 3, 3], k: f32[2, 2, 2, 2]) { return conv_transpose(x, k) "
           "{strides=[2,2]} }",
           "graph(x: f32[1, 2, 5, 5]) { return max_pool(x) {kernel_shape=[3,3], strides=[2,2], "
           "pads=[1,1,1,1]} }",
           "graph(x: f32[1, 2, 5, 5]) { return average_pool(x) {kernel_shape=[3,3], strides=[2,2], "
           "pads=[1,1,1,1]} }",
           "graph(x: f32[1, 2, 3, 3]) { return lp_pool(x) {kernel_shape=[2,2]} }",
           "graph(x: f32[2, 3, 4]) { return global_average_pool(x), global_max_pool(x) }",
           "graph(x: f32[2, 3], y: f32[3, 4], c: f32[4]) { return gemm(x, y, c) {alpha=0.5, "
           "beta=2.0} }",
           "graph(x: f32[2, 3], y: f32[3]) { return pow(abs(x), y), div(x, y), less(x, y), "
           "equal(x, x) }",
           "graph(x: f32[2, 3]) { return exp(x), log(abs(x)), sqrt(abs(x)), floor(x), ceil(x), "
           "round(x), reciprocal(x) }",
           "graph(x: f32[2, 3, 4]) { return reduce_prod(x, const i64[1] [1]), reduce_l2(x, const "
           "i64[1] [2]), reduce_log_sum_exp(x, const i64[1] [0]) }",
           "graph(x: f32[2, 3]) { return arg_max(x) {axis=1}, arg_min(x) {axis=0} }",
           "graph(x: f32[2, 3]) { return cum_sum(x, const i64[] 1), tile(x, const i64[2] [2, 3]) }",
           "graph(x: f32[1, 4, 2, 2]) { return depth_to_space(x) {blocksize=2} }",
           "graph(x: f32[1, 1, 4, 4]) { return space_to_depth(x) {blocksize=2} }",
           "graph(x: f32[3, 3]) { return trilu(x) {upper=1}, expand(x, const i64[3] [2, 3, 3]) }",
           "graph(x: f32[2, 3]) { return clip(x, -0.5, 0.5), shape(x), cast(x) {to=\"i64\"} }",
           "graph(x: f32[2, 3]) { return hardmax(x), one_hot(const i64[2] [0, 2], const i64[] 4, "
           "const f32[2] [0.0, 1.0]) }",
       }) {
    SCOPED_TRACE(text);
    const Graph graph = testing::parsed(text);
    expect_elements(graph, testing::random_inputs(graph, 9));
  }
  EXPECT_GE(compared_.size(), 25u);
}

}  // namespace
}  // namespace tessera
