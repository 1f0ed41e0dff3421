#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/program/classify.h"
#include "tessera/program/decisions.h"

namespace tessera::program {

/// Part of the result of a concatenation, in whose buffer a value lies.
struct ConcatSlot {
  ValueId whole;           // result of the concatenation
  std::size_t axis = 0;    // of the tensor
  std::int64_t start = 0;  // along the axis
};

/// Slots of values in the buffers of concatenations, so that producers write their part of the
/// result and nothing is copied afterwards. Two kinds of values have a slot:
///
///   operands of a concatenation that a kernel computes, and that others read element by element
///   results of concatenations whose operands are neighbours in the buffer of a later one, as in a
///   dense block, where each layer reads all before it:
///
///     b = concat(x, a)   c = f(b)   d = concat(x, a, c)      b is the first part of d
///
/// A value has one slot at most: that of the last concatenation which has it.
class ConcatSlots {
 public:
  ConcatSlots(const Graph& graph, const Decisions& decisions, const machine::Machine& machine);

  std::optional<ConcatSlot> of(ValueId value) const { return slots_[value.index]; }
  /// Layout of the buffer of a concatenation's result.
  const AxisOrder& order(ValueId whole) const { return *orders_[whole.index]; }
  /// The concatenation that a node is, if the layout of its result is known.
  const std::optional<Concat>& concat(std::size_t node) const { return concats_[node]; }
  /// Operand of a concatenation.
  ValueId operand(std::size_t node, const Concat::Part& part) const;

 private:
  void find_concat(std::size_t node);
  void assign(std::size_t node);
  std::optional<AxisOrder> order_of(ValueId value) const;
  std::optional<ConcatSlot> slot_in_later(std::size_t node) const;
  bool is_written_in_parts(ValueId value, const ConcatSlot& slot) const;
  bool is_read_in_parts(ValueId value) const;

  const Graph& graph_;
  const Decisions& decisions_;
  std::int64_t vector_bytes_;
  std::vector<std::optional<ConcatSlot>> slots_;  // by value
  std::vector<std::optional<AxisOrder>> orders_;  // by value: of the results of concatenations
  std::vector<std::optional<Concat>> concats_;    // by node
  std::vector<std::vector<std::size_t>> users_;   // by value
  std::vector<const NodeGroup*> groups_;          // by node; null for views and moves
  std::vector<bool> is_output_;                   // by value
};

}  // namespace tessera::program
