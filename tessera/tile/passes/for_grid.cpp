#include "tessera/tile/passes/for_grid.h"

#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {

Kernel for_grid(const Kernel& kernel, const Grid& grid) {
  return Rewrite::run(kernel, [&](Rewrite& out, const Operation& op) {
    if (op.code != Code::Pid && op.code != Code::Npid) return out.copy(op);
    const std::int64_t programs = grid[static_cast<std::size_t>(op.ints[0])];
    const Type& type = kernel.type(op.out[0]);
    const auto number = [&](std::int64_t n) { return out.constant(type, {.integer = n}); };
    if (op.code == Code::Npid) return out.set(op.out[0], number(programs));
    if (programs == 1) return out.set(op.out[0], number(0));
    out.copy(op);
    out.emit({.code = Code::Assume,
              .in = {out.map(Function::Less, {out.of(op.out[0]), number(programs)})}});
  });
}

Kernel along_one_axis(const Kernel& kernel, const Grid& grid) {
  return Rewrite::run(kernel, [&](Rewrite& out, const Operation& op) {
    if (op.code != Code::Pid && op.code != Code::Npid) return out.copy(op);
    const auto axis = static_cast<std::size_t>(op.ints[0]);
    const Type& type = kernel.type(op.out[0]);
    const auto number = [&](std::int64_t n) { return out.constant(type, {.integer = n}); };
    if (op.code == Code::Npid) return out.set(op.out[0], number(grid[axis]));
    ValueId at = out.emit({.code = Code::Pid, .ints = {0}}, type);
    for (std::size_t before = 0; before < axis; ++before)
      at = out.map(Function::Div, {at, number(grid[before])});
    out.set(op.out[0], out.map(Function::Rem, {at, number(grid[axis])}));
  });
}

}  // namespace tessera::tile
