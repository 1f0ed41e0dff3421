#include "tessera/tile/cpu/bounds.h"

#include <algorithm>

namespace tessera::tile::cpu {
namespace {

struct Bounds {
  const Kernel& kernel;
  const std::vector<std::optional<OpId>>& definition;

  const Operation* made_by(ValueId value, Code code) const {
    const auto& id = definition[value];
    return id && kernel.ops[*id].code == code ? &kernel.ops[*id] : nullptr;
  }

  /// Whether `most`, in a shape of x's rank and broadcast along extents of 1, is nowhere less than
  /// x. Reshapes keep the order of elements, so only the last shape counts.
  bool is_at_least(ValueId most, const Extents& shape, ValueId x) const {
    const Extents& whole = kernel.type(x).shape;
    if (most == x) return shape == whole;
    if (const Operation* op = made_by(most, Code::Reshape)) return is_at_least(op->in[0], shape, x);
    if (const Operation* op = made_by(most, Code::Reduce)) {
      if (op->function != Function::Max && op->function != Function::Maximum) return false;
      Extents folded = whole;
      if (op->in[0] == x) folded[static_cast<std::size_t>(op->ints[0])] = 1;
      const auto is_one = [](std::int64_t extent) { return extent == 1; };
      const bool scalar = shape.empty() && std::ranges::all_of(folded, is_one);
      return op->in[0] == x && (shape == folded || scalar);
    }
    const Operation* op = made_by(most, Code::Map);
    return op != nullptr && (op->function == Function::Max || op->function == Function::Maximum) &&
           std::ranges::any_of(op->in, [&](ValueId in) { return is_at_least(in, shape, x); });
  }
};

}  // namespace

bool is_never_positive(const Kernel& kernel, const std::vector<std::optional<OpId>>& definition,
                       ValueId value) {
  const Bounds bounds{kernel, definition};
  const Operation* op = bounds.made_by(value, Code::Map);
  if (op == nullptr || op->function != Function::Sub || !is_float(kernel.type(value).dtype))
    return false;
  ValueId most = op->in[1];
  if (const Operation* wide = bounds.made_by(most, Code::Broadcast)) most = wide->in[0];
  return bounds.is_at_least(most, kernel.type(most).shape, op->in[0]);
}

}  // namespace tessera::tile::cpu
