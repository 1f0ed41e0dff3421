#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/rules/rule.h"

namespace tessera::rules {

/// `matmul(x, y + z) = matmul(x, y) + matmul(x, z)`; several outputs are joined by commas.
std::string equation(const Rule& rule);

/// `n is at most l and k is 2*r + 1`
std::string in_words(const Guard& guard);

/// The rule in words: the equation, its inputs, when it holds and how nearly, and what each side
/// computes, element by element.
std::string explain(const Rule& rule);

/// Definition of a node on its inputs; none for a node that is not a core operator, or whose inputs
/// have unknown ranks.
std::optional<Definition> definition_of(const Graph& graph, const GraphNode& node);

/// Source and target side by side, for Graphviz.
std::string to_dot(const Rule& rule);

/// What a list of rules shows of each.
struct Row {
  std::string name, direction, numerics, guard, about;
};
std::vector<Row> rows(const std::vector<Rule>& rules);

}  // namespace tessera::rules
