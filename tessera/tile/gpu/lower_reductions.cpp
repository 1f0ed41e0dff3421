#include <algorithm>
#include <utility>

#include "tessera/tile/gpu/accumulation.h"
#include "tessera/tile/gpu/block_lowering.h"

// Reductions: in a thread, between the lanes of a warp, between warps. Those that do not depend on
// each other stay open, so that their warps exchange partial results together.

namespace tessera::tile::gpu {

Layout BlockLowering::layout_of_reduction(const Operation& op) const {
  const Extents& shape = type(op.in[0]).shape;
  if (!op.regions.empty())
    return Layout::in_order(shape, static_cast<int>(op.ints[0]), plan_.threads());
  return home(op.in[0]);
}

std::vector<DType> BlockLowering::types_of_partial_result(const Operation& op,
                                                          const Layout& layout) const {
  std::vector<DType> types;
  for (const ValueId in : op.in)
    types.push_back(widens(op, dtype(op.in[0])) ? DType::F32 : dtype(in));
  if (carries_validity(op, type(op.in[0]), layout)) types.push_back(DType::Bool);
  return types;
}

bool BlockLowering::require_factors(const Operation& sum, const Layout& layout) {
  const ValueId in = sum.in[0];
  if (!sum.regions.empty() || sum.function != Function::Add || dtype(in) != DType::F32)
    return false;
  const Operation* product = planned_.defining_op(in);
  if (product == nullptr || planned_.uses[in] != 1) return false;
  if (product->code != Code::Map || product->function != Function::Mul) return false;
  require(product->in[0], layout);
  require(product->in[1], layout);
  return true;
}

void BlockLowering::reduce(OpId id) {
  const Operation& op = operation(id);
  const auto is_open = [&](ValueId in) {
    return std::ranges::any_of(open_reductions_, [&](const OpenReduction& open) {
      const std::vector<ValueId>& out = operation(open.op).out;
      return std::find(out.begin(), out.end(), in) != out.end();
    });
  };
  if (!op.regions.empty() || std::ranges::any_of(op.in, is_open)) finish_reductions();
  const Layout layout = layout_of_reduction(op);
  for (const ValueId in : op.in) require(in, layout);
  std::vector<DType> types = types_of_partial_result(op, layout);
  const bool fma = types.size() == op.in.size() && require_factors(op, layout);
  add(ReduceInThread{.op = id, .layout = layout, .fma = fma});
  open_reductions_.push_back({.op = id, .layout = layout, .types = std::move(types)});
  if (!op.regions.empty()) finish_reductions();
}

void BlockLowering::finish_reductions() {
  if (open_reductions_.empty()) return;
  const std::vector<OpenReduction> open = std::exchange(open_reductions_, {});
  ReduceInWarp lanes;
  ReduceInBlock warps;
  std::vector<SharedTile> all;
  for (const OpenReduction& one : open) {
    const Operation& op = operation(one.op);
    lanes.ops.push_back(one.op);
    const Layout rest = one.layout.without(static_cast<int>(op.ints[0]));
    std::int64_t count = 1;  // of warps along the axis
    for (std::size_t i = kLaneBits; i < one.layout.thread_bits().size(); ++i)
      if (one.layout.thread_bits()[i].axis == static_cast<int>(op.ints[0])) count *= 2;
    if (count == 1) continue;
    Extents extents;
    for (int a = 0; a < rest.rank(); ++a) extents.push_back(rest.extent(a));
    extents.push_back(count);  // last, so that a thread reads neighbours
    warps.exchanges.push_back({.op = one.op});
    for (const DType of : one.types) {
      all.push_back(SharedTile::of(extents, of));
      warps.exchanges.back().parts.push_back(all.back());
    }
  }
  add(std::move(lanes));
  if (!all.empty()) {
    if (mapping_.rows && !mapping_.persistent) {
      place_in_sequence(all, shared_.fresh(place_in_sequence(all)));
    } else {
      place_in_scratch(all);
    }
    auto next = all.begin();
    for (ReduceInBlock::Exchange& exchange : warps.exchanges)
      for (SharedTile& part : exchange.parts) part = *next++;
    exchanged();
    add(std::move(warps));
  }
  for (const OpenReduction& one : open) {
    const Operation& op = operation(one.op);
    const Layout rest = one.layout.without(static_cast<int>(op.ints[0]));
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      const ValueId out = op.out[i];
      add(ReduceResult{.op = one.op, .result = i, .layout = rest});
      if (type(out).is_scalar()) continue;
      convert(out, rest, home(out));
      define(out, home(out));
    }
  }
  unpack_again();
}

void BlockLowering::unpack_again() {
  for (const auto& [id, layout] : packed_) {
    add(Unpack{.value = id});
    define(id, layout);
  }
  if (packed_.empty()) return;
  for (const OpId id : kernel_.body.ops) {
    const Operation& op = operation(id);
    if (op.code != Code::Cast || !packed_.contains(op.in[0])) continue;
    const Layout layout = home(op.out[0]);
    if (has(op.out[0], layout)) add(elementwise(id, layout));
  }
}

}  // namespace tessera::tile::gpu
