#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "tessera/interp/interp.h"
#include "tessera/ir/text.h"
#include "tessera/passes/pipeline.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera::testing {

/// The pipeline without all passes but some.
inline passes::Options only(const std::set<std::string>& wanted) {
  passes::Options options;
  for (const std::string& name : passes::pass_names())
    if (!wanted.contains(name)) options.disabled.insert(name);
  return options;
}

inline Graph optimized(const Graph& graph, const passes::Options& options = {}) {
  auto result = passes::optimize(graph, options);
  if (result) return std::move(result->graph);
  ADD_FAILURE() << to_string(result.error()) << "\nin\n" << to_text(graph);
  return graph;
}

/// Both graphs give the same on random inputs, up to rounding.
inline void expect_same_results(const Graph& before, const Graph& after, double tolerance = 2e-5) {
  std::vector<Datum> inputs;
  for (Tensor& tensor : random_inputs(before, 7)) inputs.emplace_back(std::move(tensor));
  const auto expected = interp::run(before, inputs, {}), actual = interp::run(after, inputs, {});
  ASSERT_TRUE(expected) << to_string(expected.error());
  ASSERT_TRUE(actual) << to_string(actual.error());
  ASSERT_EQ(expected->size(), actual->size());
  for (std::size_t i = 0; i < expected->size(); ++i)
    if ((*expected)[i].is_tensor() && (*expected)[i].tensor().dtype != DType::String)
      expect_near((*actual)[i].tensor(), (*expected)[i].tensor(), tolerance);
}

struct PassCase {
  std::set<std::string> passes;
  std::string_view before, after;
};

/// The passes lead from one text to the other; the meaning stays; a second run changes nothing.
inline void expect_pass(const PassCase& test) {
  const Graph before = parsed(test.before);
  const Graph after = optimized(before, only(test.passes));
  expect_graph(after, test.after);
  expect_same_results(before, after);
  EXPECT_EQ(optimized(after, only(test.passes)).hash(), after.hash());
}

inline void expect_unchanged(const std::set<std::string>& passes, std::string_view text) {
  expect_pass({.passes = passes, .before = text, .after = text});
}

}  // namespace tessera::testing
