#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

Tensor bytes(const std::vector<double>& elements) {
  return numbers(DType::U8, {std::ssize(elements)}, elements);
}

/// One tree: a node of this mode with the value 1; true leads to a leaf of weight 10, false to one
/// of weight 20.
Attrs one_node(double mode, Attrs attrs = {}) {
  attrs.set("nodes_modes", bytes({mode}));
  attrs.set("nodes_splits", floats({1}, {1}));
  attrs.set("nodes_featureids", Ints{0});
  attrs.set("nodes_truenodeids", Ints{0});
  attrs.set("nodes_falsenodeids", Ints{1});
  attrs.set("nodes_trueleafs", Ints{1});
  attrs.set("nodes_falseleafs", Ints{1});
  attrs.set("leaf_weights", floats({2}, {10, 20}));
  attrs.set("leaf_targetids", Ints{0, 0});
  attrs.set("tree_roots", Ints{0});
  attrs.set("n_targets", std::int64_t{1});
  attrs.set("aggregate_function", std::int64_t{1});
  return attrs;
}

TEST(TreeEnsemble, ComparesByTheModeOfEachNode) {
  const Tensor x = floats({3, 1}, {0, 1, 2});
  const std::vector<std::vector<float>> expected = {{10, 10, 20}, {10, 20, 20}, {20, 10, 10},
                                                    {20, 20, 10}, {20, 10, 20}, {10, 20, 10}};
  for (std::size_t mode = 0; mode < expected.size(); ++mode)
    expect_result({"ml_tree_ensemble", {x}, one_node(static_cast<double>(mode))},
                  floats({3, 1}, expected[mode]));
}

TEST(TreeEnsemble, LooksForMembersOfSets) {
  const Attrs attrs = one_node(6, {{"membership_values", floats({3}, {2, 0, kNan})}});
  expect_result({"ml_tree_ensemble", {floats({4, 1}, {0, 1, 2, kNan})}, attrs},
                floats({4, 1}, {10, 20, 10, 20}));
}

TEST(TreeEnsemble, SendsMissingValuesWhereANodeSays) {
  const Tensor x = floats({1, 1}, {kNan});
  expect_result({"ml_tree_ensemble", {x}, one_node(0)}, floats({1, 1}, {20}));
  expect_result(
      {"ml_tree_ensemble", {x}, one_node(0, {{"nodes_missing_value_tracks_true", Ints{1}}})},
      floats({1, 1}, {10}));
}

/// Two trees of two leaves each, for two targets.
Attrs two_trees(std::string aggregate) {
  return {{"aggregate_function", std::move(aggregate)},
          {"n_targets", std::int64_t{2}},
          {"nodes_treeids", Ints{0, 0, 0, 5, 5, 5}},
          {"nodes_nodeids", Ints{0, 1, 2, 0, 1, 2}},
          {"nodes_featureids", Ints{0, 0, 0, 1, 0, 0}},
          {"nodes_modes", Strings{"BRANCH_LT", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"}},
          {"nodes_values", Floats{0, 0, 0, 0.5, 0, 0}},
          {"nodes_truenodeids", Ints{1, 0, 0, 1, 0, 0}},
          {"nodes_falsenodeids", Ints{2, 0, 0, 2, 0, 0}},
          {"target_treeids", Ints{0, 0, 0, 5, 5}},
          {"target_nodeids", Ints{1, 1, 2, 1, 2}},
          {"target_ids", Ints{0, 1, 0, 0, 0}},
          {"target_weights", Floats{1, 2, 3, 4, 8}}};
}

TEST(TreeEnsembleRegressor, AggregatesVotesByTarget) {
  const Tensor x = floats({2, 2}, {-1, 1, 1, 0});
  const auto expect = [&](const char* aggregate, const std::vector<float>& expected) {
    expect_result({"ml_tree_ensemble_regressor", {x}, two_trees(aggregate)},
                  floats({2, 2}, expected));
  };
  expect("SUM", {5, 2, 11, 0});
  expect("AVERAGE", {2.5, 1, 5.5, 0});
  expect("MIN", {1, 2, 3, 0});
  expect("MAX", {4, 2, 8, 0});
}

TEST(TreeEnsembleRegressor, TakesAListForARowAndNoRowsAtAll) {
  expect_result({"ml_tree_ensemble_regressor", {integers({2}, {-1, 1})}, two_trees("SUM")},
                floats({1, 2}, {5, 2}));
  expect_result({"ml_tree_ensemble_regressor", {floats({0, 2}, {})}, two_trees("SUM")},
                floats({0, 2}, {}));
}

TEST(TreeEnsembleRegressor, RefusesTreesThatAreNone) {
  const Tensor x = floats({1, 2}, {0, 0});
  const auto refused = [&](std::string_view attr, Attr value, const char* message) {
    Attrs attrs = two_trees("SUM");
    attrs.set(attr, std::move(value));
    expect_refused({"ml_tree_ensemble_regressor", {x}, attrs}, message);
  };
  refused("aggregate_function", std::string("MEAN"), "aggregate_function is MEAN");
  refused("nodes_truenodeids", Ints{1, 0, 0, 9, 0, 0}, "tree 5 has no node 9");
  refused("nodes_nodeids", Ints{0, 1, 1, 0, 1, 2}, "node 1 of tree 0 is there twice");
  refused("nodes_featureids", Ints{2, 0, 0, 1, 0, 0}, "a node looks at feature 2");
  refused("target_ids", Ints{0, 2, 0, 0, 0}, "a leaf votes for 2");
  refused("nodes_values", Floats{0}, "there are 6 modes of nodes and 1 of another list");
  refused("nodes_falsenodeids", Ints{0, 0, 0, 2, 0, 0}, "the nodes of a tree form a cycle");
}

}  // namespace
}  // namespace tessera::host
