#include <algorithm>

#include "tessera/tile/gpu/block_lowering.h"
#include "tessera/tile/gpu/scan_bits.h"

// Data movement between threads (gather, concat, slice, reshape) and scans, through shared memory.

namespace tessera::tile::gpu {

void BlockLowering::gather(OpId id) {
  const Operation& op = operation(id);
  const ValueId x = op.in[0];
  const Layout from = home(x), layout = home(op.out[0]);
  const int axis = static_cast<int>(op.ints[0]);
  require(x, from);
  require(op.in[1], layout);
  Extents extents;
  for (int a = 0; a < from.rank(); ++a)
    extents.push_back(std::max(from.extent(a), a == axis ? 1 : layout.extent(a)));
  SharedTile through = in_scratch(extents, dtype(x));
  exchanged();
  add(Move{.op = id, .from = {from, layout}, .to = layout, .through = std::move(through)});
  define(op.out[0], layout);
}

void BlockLowering::concat(OpId id) {
  const Operation& op = operation(id);
  const Layout layout = home(op.out[0]);
  std::vector<Layout> from;
  for (const ValueId in : op.in) {
    require_at_home(in);
    from.push_back(home(in));
  }
  Extents extents;
  for (int a = 0; a < layout.rank(); ++a) {
    extents.push_back(layout.extent(a));
    for (const Layout& in : from) extents.back() = std::max(extents.back(), in.extent(a));
  }
  SharedTile through = in_scratch(extents, dtype(op.out[0]));
  exchanged();
  add(Move{.op = id, .from = std::move(from), .to = layout, .through = std::move(through)});
  define(op.out[0], layout);
}

void BlockLowering::slice(OpId id) {
  const Operation& op = operation(id);
  const Layout from = home(op.in[0]), layout = home(op.out[0]);
  require(op.in[0], from);
  Extents extents;
  for (int a = 0; a < from.rank(); ++a)
    extents.push_back(
        std::max(from.extent(a), op.ints[static_cast<std::size_t>(a)] + layout.extent(a)));
  SharedTile through = in_scratch(extents, dtype(op.in[0]));
  exchanged();
  add(Move{.op = id, .from = {from}, .to = layout, .through = std::move(through)});
  define(op.out[0], layout);
}

// Reshapes that are no relabelling of bits go through shared memory, by linear position.
void BlockLowering::reshape(OpId id) {
  const Operation& op = operation(id);
  const ValueId in = op.in[0], out = op.out[0];
  const bool is_scalar = type(out).is_scalar();
  const Layout layout = is_scalar ? Layout(0, {}, {}) : home(out);
  if (type(in).is_scalar()) {
    add(Compute{.op = id, .layout = is_scalar ? std::nullopt : std::optional(layout)});
    return define(out, layout);
  }
  const Layout source = home(in);
  require(in, source);
  if (!is_scalar && reshaped(source, type(in).shape, type(out).shape) == layout) {
    add(Compute{.op = id, .layout = layout, .source = source});
    return define(out, layout);
  }
  SharedTile through = in_scratch({type(in).count()}, dtype(in));
  exchanged();
  add(Move{.op = id, .from = {source}, .to = layout, .through = std::move(through)});
  define(out, layout);
}

// Threads exchange the totals of blocks whose size doubles with each bit of the index.
void BlockLowering::scan(OpId id) {
  const Operation& op = operation(id);
  const Layout layout = home(op.out[0]);
  const int axis = static_cast<int>(op.ints[0]);
  for (const ValueId in : op.in) require(in, layout);
  ScanTile made{.op = id, .layout = layout};
  std::vector<DType> types = types_of_partial_result(op, layout);
  const bool is_padded = op.ints[1] != 0 && types.size() > op.in.size();
  if (!is_padded) types.resize(op.in.size());

  const std::vector<ScanBit> bits = scan_bits(layout, axis);
  std::int64_t totals = layout.registers();
  std::size_t low = 0;
  for (; low < bits.size() && bits[low].in_registers; ++low) totals /= 2;
  for (std::size_t i = low; i < bits.size(); ++i) {
    if (bits[i].in_registers) {
      totals /= 2;
      continue;
    }
    if (bits[i].bit < kLaneBits) continue;
    ScanTile::Exchange exchange;
    for (const DType of : types)
      exchange.parts.push_back(SharedTile::of({totals, plan_.threads()}, of));
    const SharedStack::Scratch scratch = shared_.scratch(place_in_sequence(exchange.parts));
    place_in_sequence(exchange.parts, scratch.offset);
    exchange.barrier_before = scratch.needs_barrier;
    made.exchanges.push_back(std::move(exchange));
    exchanged();
  }
  add(std::move(made));
  for (const ValueId out : op.out) define(out, layout);
}

}  // namespace tessera::tile::gpu
