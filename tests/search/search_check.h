#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tessera/cost/model.h"
#include "tessera/ir/constants.h"
#include "tessera/ir/same_graph.h"
#include "tessera/rules/text.h"
#include "tessera/search/search.h"
#include "tests/passes/pass_check.h"

namespace tessera::testing {

/// A computer on which operators take these seconds, and all others `other`; work on weights alone
/// is free.
class TableModel final : public cost::Model {
 public:
  explicit TableModel(std::map<std::string, double> seconds, double other = 1)
      : seconds_(std::move(seconds)), other_(other) {}

  Expected<cost::Estimate> estimate(const Graph& graph, cost::Boundary) override {
    ++asked;
    const std::vector<bool> constant = constant_values(graph);
    cost::Estimate all;
    for (const GraphNode& node : graph.nodes()) {
      if (constant[graph.outputs(node)[0].index]) continue;
      const auto it = seconds_.find(node.op->name);
      all.seconds += it == seconds_.end() ? other_ : it->second;
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

  int asked = 0;

 private:
  std::map<std::string, double> seconds_;
  double other_;
};

inline std::vector<rules::Rule> rules_named(const std::vector<std::string>& names) {
  std::vector<rules::Rule> chosen;
  static const auto all = rules::load_rules(TESSERA_SOURCE_DIR "/rules");
  EXPECT_TRUE(all) << to_string(all.error());
  for (const rules::Rule& rule : *all)
    if (names.empty() || std::ranges::find(names, rule.name) != names.end()) chosen.push_back(rule);
  return chosen;
}

/// What a search finds: a graph that is whole.
inline search::SearchResult found_by(const Graph& graph, const std::vector<rules::Rule>& rules,
                                     cost::Model& model, const search::Options& options) {
  auto found = search::optimize(graph, rules, model, options);
  if (found) {
    expect_valid(found->graph);
    return *std::move(found);
  }
  ADD_FAILURE() << to_string(found.error());
  return {.graph = graph};
}

/// The same, checked by its results.
inline search::SearchResult searched(const Graph& graph, const std::vector<rules::Rule>& rules,
                                     cost::Model& model, const search::Options& options) {
  search::SearchResult found = found_by(graph, rules, model, options);
  expect_same_results(graph, found.graph, 1e-4);
  return found;
}

}  // namespace tessera::testing
