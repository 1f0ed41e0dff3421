#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tessera/program/concat_slots.h"
#include "tessera/program/outputs.h"
#include "tessera/program/places.h"

namespace tessera::program {

/// Buffers of concatenations in which operands are computed (ConcatSlots).
class ConcatBuffers {
 public:
  ConcatBuffers(const Graph& graph, const Decisions& decisions, const machine::Machine& machine,
                Places& places, Outputs& outputs)
      : graph_(graph),
        decisions_(decisions),
        places_(places),
        outputs_(outputs),
        slots_(graph, decisions, machine) {}

  /// Location for a value that is computed in this layout: its slot, if it has one.
  std::optional<Place> slot_of(ValueId value, const AxisOrder& order);

  /// Adds what is missing in the buffer of a concatenation, and sets the location of its result;
  /// false if none of its operands are in a slot: one kernel computes it then.
  Expected<bool> finish(const NodeGroup& group);

  /// Whether several values share a buffer.
  bool is_shared(runtime::ValueIndex value) const { return shared_.contains(value); }

 private:
  runtime::ValueIndex buffer_of(ValueId whole);
  Place place_in(const ConcatSlot& slot);
  Expected<bool> is_in_parts(std::size_t node, ValueId result);

  const Graph& graph_;
  const Decisions& decisions_;
  Places& places_;
  Outputs& outputs_;
  ConcatSlots slots_;
  std::map<std::uint32_t, runtime::ValueIndex> buffers_;           // by result
  std::set<runtime::ValueIndex> shared_;                           // the buffers
  std::set<std::pair<runtime::ValueIndex, std::int64_t>> copied_;  // slots filled by copies
};

}  // namespace tessera::program
