#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "tessera/ir/graph.h"
#include "tessera/support/tensor.h"

namespace tessera::prove {

/// Origins of the elements of values that are made by data movement with constant operands alone:
/// transposes, reshapes, slices, gathers by constant indices. Computed by moving the positions of
/// the elements in place of the elements, for shapes that are numbers.
class ElementOrigins {
 public:
  explicit ElementOrigins(const Graph& graph) : graph_(graph) {}

  /// The value whose elements are moved, before all movement; the value itself if it is not moved.
  ValueId root(ValueId value);
  /// For each element of a value the row-major position of that element of the root; nothing where
  /// it is not computed: large tensors, shapes with symbols, operators that do not move integers.
  const Tensor* origins(ValueId value);

 private:
  /// The operand that a value has its elements from.
  std::optional<ValueId> moved_operand(ValueId value);
  std::optional<Tensor> computed(ValueId value);

  const Graph& graph_;
  std::unordered_map<std::uint32_t, std::optional<ValueId>> operands_;
  std::unordered_map<std::uint32_t, std::optional<Tensor>> origins_;
  std::int64_t elements_ = 0;  // of all origins
};

}  // namespace tessera::prove
