#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/program/assemble.h"

namespace tessera::program {

/// Scan that can be compiled to a loop: of static trip count, along the first axes of its tensors,
/// in one direction. Its inputs are the initial states, the scanned tensors and captures; its
/// results are the final states and the stacked outputs.
struct ScanForm {
  std::shared_ptr<const Graph> body = {};
  std::int64_t rounds = 0;
  bool backwards = false;
  std::size_t states = 0, elements = 0;
};
std::optional<ScanForm> scan_form(const Graph& graph, const GraphNode& node);

/// Plans the body as a program; none if a part of it needs the host or is a loop again.
Expected<std::optional<Draft>> loop_body(const ScanForm& scan, const PlanContext& planning);

/// Addresses of the inputs and outputs of an iteration.
struct LoopPlaces {
  std::vector<runtime::Address> inputs = {}, outputs = {};                 // of the body, in order
  std::vector<std::pair<runtime::Address, runtime::Address>> copies = {};  // after each iteration
};

/// Appends a loop over the steps of a body.
void append_loop(
    Draft& draft, const Draft& body, const ScanForm& scan, const LoopPlaces& places,
    const std::function<std::uint32_t(const std::shared_ptr<const tile::Kernel>&)>& kernel_of);

}  // namespace tessera::program
