#pragma once

#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/program/compile.h"

namespace tessera {

/// Name of a node as reports show it: its ONNX name, or that of its first result.
std::string node_label(const Graph& graph, std::size_t node);

/// Names of the original nodes that each step computes. The nodes that a step is mainly about come
/// first: those with an operator of the step, and of these the ones with a reduction. Nodes that
/// compute on constants alone come last.
std::vector<std::vector<std::string>> step_names(
    const Graph& original, const Graph& compiled,
    const std::vector<program::CompileReport::Step>& steps);

}  // namespace tessera
