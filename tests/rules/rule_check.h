#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tessera/interp/interp.h"
#include "tessera/ir/text.h"
#include "tessera/rules/apply.h"
#include "tessera/rules/text.h"
#include "tessera/support/rng.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera::testing {

/// The rules that a text says.
inline std::vector<rules::Rule> rules_of(std::string_view text) {
  auto parsed = rules::parse_rules(text);
  if (parsed) return *std::move(parsed);
  ADD_FAILURE() << to_string(parsed.error()) << "\nin\n" << text;
  return {};
}

/// What a graph computes.
inline std::vector<Tensor> computed(const Graph& graph, const std::vector<Tensor>& inputs) {
  const auto results = interp::run(graph, std::vector<Datum>(inputs.begin(), inputs.end()), {});
  EXPECT_TRUE(results) << to_string(results.error()) << "\nin\n" << to_text(graph);
  std::vector<Tensor> tensors;
  if (results)
    for (const Datum& result : *results) tensors.push_back(result.tensor());
  return tensors;
}

/// Seeded tensors for the inputs of a graph whose sizes are numbers; those of even seeds are
/// positive, so that roots and logarithms have something to do.
inline std::vector<Tensor> tensors_for(const Graph& graph, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs()) {
    const Type& type = graph.type(id);
    std::vector<std::int64_t> shape;
    for (const Dim& dim : *type.shape) shape.push_back(dim.constant().value());
    std::vector<double> elements(static_cast<std::size_t>(*element_count(shape)));
    for (double& element : elements) {
      element = seed % 2 == 0 ? 0.25 + rng.uniform() : 2 * rng.uniform() - 1;
      if (!is_float(type.dtype)) element = static_cast<double>(rng.below(100));
    }
    inputs.push_back(tensor(type.dtype, std::move(shape), elements));
  }
  return inputs;
}

/// Both graphs compute the same, on tensors of this seed.
inline void expect_same(const Graph& a, const Graph& b, std::uint64_t seed, double tolerance) {
  const std::vector<Tensor> inputs = tensors_for(a, seed);
  const std::vector<Tensor> x = computed(a, inputs), y = computed(b, inputs);
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) expect_near(y[i], x[i], tolerance);
}

}  // namespace tessera::testing
