#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/program/assemble.h"

namespace tessera::program {

/// A scan along the first axes of tensors whose sizes are known, all in one direction. Its inputs
/// are the states before, the tensors whose slices are taken, and captures; its results the states
/// afterwards and what is stacked up.
struct ScanForm {
  std::shared_ptr<const Graph> body = {};
  std::int64_t rounds = 0;
  bool backwards = false;
  std::size_t states = 0, elements = 0;
};
std::optional<ScanForm> scan_form(const Graph& graph, const GraphNode& node);

/// The body as a program of its own; nothing if a part of it needs the host or is a loop again.
Expected<std::optional<Draft>> loop_body(const ScanForm& scan, const Planning& planning);

/// Where a round finds its inputs and leaves its results.
struct LoopPlaces {
  std::vector<runtime::Address> inputs = {}, outputs = {};                 // of the body, in order
  std::vector<std::pair<runtime::Address, runtime::Address>> copies = {};  // after each round
};

/// Appends a loop over the steps of a body.
void append_loop(
    Draft& draft, const Draft& body, const ScanForm& scan, const LoopPlaces& places,
    const std::function<std::uint32_t(const std::shared_ptr<const tile::Kernel>&)>& kernel_of);

}  // namespace tessera::program
