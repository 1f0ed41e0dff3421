#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/program/assemble.h"
#include "tessera/program/draft.h"

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
  std::vector<runtime::Address> inputs = {}, outputs = {};  // of the body, in order
  std::vector<runtime::step::Copy> copies = {};             // after each iteration
};

/// Memory of a state that a loop carries. A slot for each iteration, and one more: an iteration
/// reads its slot and writes the next one, so that nothing is copied. Where that is much memory:
/// two slots, and a copy after each iteration.
class StateSlots {
 public:
  /// Adds the value that holds the slots; `state` is one of them.
  StateSlots(DraftBuilder& out, runtime::Value state, const ScanForm& scan);

  /// Copies the initial state to its slot.
  void fill(DraftBuilder& out, const runtime::Address& initial) const;
  runtime::Address before() const;  // state that an iteration reads
  runtime::Address after() const;   // state that it writes
  runtime::Address last() const;    // state after the loop
  /// The copy after each iteration, if there is one.
  std::optional<runtime::step::Copy> copy() const;
  /// Whether the states of all iterations lie one after the other, from all() on.
  bool holds_all() const { return rolls_ && stride_ == bytes_; }
  runtime::Address all() const { return at(is_backwards_ ? 0 : 1); }

 private:
  runtime::Address at(std::int64_t slot, bool moves = false) const;

  runtime::ValueIndex value_ = 0;
  std::int64_t bytes_ = 0, stride_ = 0, rounds_ = 0;
  bool rolls_ = false, is_backwards_ = false;
};

/// Appends a loop over the steps of a body.
void append_loop(
    Draft& draft, const Draft& body, const ScanForm& scan, const LoopPlaces& places,
    const std::function<std::uint32_t(const std::shared_ptr<const tile::Kernel>&)>& kernel_of);

}  // namespace tessera::program
