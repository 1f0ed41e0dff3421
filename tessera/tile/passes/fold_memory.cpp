#include <algorithm>

#include "tessera/tile/passes/fold.h"

namespace tessera::tile {
namespace {

/// Extent or stride of a view: static, or the operand of the View that provides it.
std::optional<ValueId> open_operand(Rewrite& out, const Operation& op) {
  const Type& view = out.type(op.in[0]);
  const auto axis = static_cast<std::size_t>(op.ints[0]);
  const bool stride = op.code == Code::Stride;
  const std::int64_t known = (stride ? view.strides : view.shape)[axis];
  if (known != kDynamic) return out.index(known);
  const Operation* made = out.definition(op.in[0]);
  if (made == nullptr || made->code != Code::View) return {};
  const auto opened = [](const Extents& list, std::size_t end) {
    return std::count(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(end), kDynamic);
  };
  const auto before = stride ? opened(view.shape, view.shape.size()) + opened(view.strides, axis)
                             : opened(view.shape, axis);
  return out.cast(made->in[1 + static_cast<std::size_t>(before)], DType::I64);
}

}  // namespace

std::optional<ValueId> fold_memory(Rewrite& out, const Operation& op, const Type& type) {
  switch (op.code) {
    case Code::Dim:
    case Code::Stride: return open_operand(out, op);
    case Code::Base: {
      const Operation* made = out.definition(op.in[0]);
      if (made != nullptr && made->code == Code::View) return made->in[0];
      return {};
    }
    case Code::Load: {
      if (op.in.size() < 2) return {};
      const auto mask = out.literal(op.in[1]);
      if (!mask) return {};
      if (mask->integer != 0) return out.emit({.code = Code::Load, .in = {op.in[0]}}, type);
      return op.in.size() == 3 ? op.in[2] : out.constant(type, {});
    }
    default: return {};
  }
}

}  // namespace tessera::tile
