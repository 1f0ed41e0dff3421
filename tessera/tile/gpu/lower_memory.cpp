#include <fmt/format.h>

#include "tessera/tile/gpu/block_lowering.h"
#include "tessera/tile/gpu/erf_pattern.h"

// Accesses to global memory, and the exchanges between threads that stores need.

namespace tessera::tile::gpu {

void BlockLowering::order(const AccessOrder::Access& access) {
  if (is_unordered_) return;
  AccessOrder::Need need = accesses_.before(access, shared_.barriers());
  if (need.always) {
    barrier();
  } else if (!need.overlapping.empty()) {
    add(BarrierIfOverlap{.accesses = std::move(need.overlapping)});
  }
  accesses_.record(access, shared_.barriers());
}

const KnownAccess* BlockLowering::known_access_of(OpId id) const {
  const auto found = known_accesses_.find(id);
  return found == known_accesses_.end() ? nullptr : &found->second;
}

int BlockLowering::run_of_access(OpId id) const {
  const Operation& op = operation(id);
  const bool is_store = op.code == Code::Vstore;
  const Type& tile = type(is_store ? op.in.back() : op.out[0]);
  const int run = run_of(type(op.in[0]), plan_.access(op), tile.shape);
  // Memory behind the row is unchanged.
  if (is_masked_ && is_store && known_access_of(id) == nullptr && cut_axis(*mapping_.cut, op) &&
      mapping_.cut->extent % run != 0)
    return 1;
  return run;
}

AddressView BlockLowering::address_of(OpId id) {
  AddressView address{.op = id, .layout = plan_.access(operation(id)), .run = run_of_access(id)};
  address.is_masked = is_masked_;
  if (const KnownAccess* known = known_access_of(id)) address.known = *known;
  add(address);
  return address;
}

bool BlockLowering::keeps_packed(ValueId id, const Layout& layout, DType dtype, int run) {
  if (!mapping_.packed || byte_width(dtype) != 2 || run < 2) return false;
  packed_.insert_or_assign(id, layout);
  return true;
}

void BlockLowering::load_view(OpId id) {
  const Operation& op = operation(id);
  const ValueId out = op.out[0];
  if (in_buffers_.contains(out)) return;  // prefetched
  if (is_in_pipeline(id)) {
    in_buffers_.insert(out);
    return add(AwaitTile{.load = id});
  }
  if (const auto buffer = prefetch_buffers_.find(id); buffer != prefetch_buffers_.end())
    return take_prefetched(id, buffer->second);
  const AddressView address = address_of(id);
  if (!address.known || !address.known->constant) order(AccessOrder::of(planned_, id));
  LoadView load{.op = id};
  if (cache_ && cache_->first == id) load.cache = cache_->second;
  load.keeps_packed = keeps_packed(out, address.layout, type(op.in[0]).dtype, address.run);
  define(out, address.layout);
  add(std::move(load));
}

void BlockLowering::take_prefetched(OpId id, const PrefetchBuffer& buffer) {
  const Operation& op = operation(id);
  const AddressView address = address_of(id);
  const bool packed = !buffer.is_fixed &&
                      keeps_packed(op.out[0], address.layout, type(op.in[0]).dtype, address.run);
  add(TakePrefetched{.op = id, .buffer = buffer, .keeps_packed = packed});
  define(op.out[0], address.layout);
}

void BlockLowering::store_view(OpId id) {
  const Operation& op = operation(id);
  const ValueId x = op.in.back();
  const AddressView address = address_of(id);
  StoreView store{.op = id};
  const int axis = contiguous_axis(type(op.in[0]));
  constexpr int kLeast = 4;  // accesses of a thread that are worth a loop
  const std::optional<Layout>& held = plan_.home(x);
  const Layout& layout = address.layout;
  const bool is_exchanged = held && address.run > 1 && axis == layout.rank() - 1 &&
                            layout.registers() >= kLeast * address.run && !has(x, layout) &&
                            !renames(*held, layout);
  if (!is_exchanged) {
    require(x, layout);
    order(AccessOrder::of(planned_, id));
    return add(std::move(store));
  }
  const AccessOrder::Access access{.op = id, .writes = true};
  order(access);
  store.held = *held;
  if (const auto box = warp_box(*held, type(op.in[0]).dtype, address.run)) {
    store_in_boxes(store, *box);
  } else {
    require(x, *held);
    Extents extents;
    for (int a = 0; a < held->rank(); ++a) extents.push_back(held->extent(a));
    store.exchange = in_scratch(extents, type(op.in[0]).dtype);
    exchanged();
  }
  add(std::move(store));
  accesses_.complete(access, shared_.barriers());
}

// Each warp has its own part of shared memory, so that no warp waits for another.
void BlockLowering::store_in_boxes(StoreView& store, const WarpBox& box) {
  const Operation& op = operation(store.op);
  prepare_epilogue(op.in.back(), *store.held);
  StoreBoxes boxes{.box = box, .corner = {}};
  boxes.corner = SharedTile::of({box.rows, box.columns}, type(op.in[0]).dtype);
  const std::int64_t bytes = boxes.corner.bytes() * (plan_.threads() >> kLaneBits);
  if (mapping_.tile_pipelines) {
    // Nothing else is stored there, so that warpgroups need not meet before it.
    boxes.corner.offset = shared_.reserve(shared_room(bytes));
  } else {
    const SharedStack::Scratch scratch = shared_.scratch(bytes);
    if (scratch.needs_barrier) add(Barrier{});
    boxes.corner.offset = scratch.offset;
  }
  std::set<ValueId> known;
  epilogue(op.in.back(), *store.held, known, store.epilogue);
  shared_.use_scratch();
  store.boxes = boxes;
}

void BlockLowering::prepare_epilogue(ValueId id, const Layout& layout) {
  if (!is_in_epilogue(id) || has(id, layout)) return require(id, layout);
  const Operation& op = *planned_.defining_op(id);
  for (const ValueId in : op.in) prepare_epilogue(in, layout);
  const ErfPattern erf{kernel_, planned_.definitions, scheduled_.fast_erf};
  if (const auto x = erf.plus_one(op)) prepare_epilogue(x->of, layout);
  if (const auto found = erf.times_plus_one(op)) prepare_epilogue(found->erf.of, layout);
}

void BlockLowering::epilogue(ValueId id, const Layout& layout, std::set<ValueId>& known,
                             Body& body) {
  if (!is_in_epilogue(id) || has(id, layout) || !known.insert(id).second) return;
  const OpId by = *planned_.definitions[id];
  const Operation& op = operation(by);
  Compute made{.op = by, .layout = layout};
  const ErfPattern erf{kernel_, planned_.definitions, scheduled_.fast_erf};
  if (const auto x = erf.plus_one(op)) {
    epilogue(x->of, layout, known, body);
    made.erf = {.of = x->of, .scale = x->scale};
  } else if (const auto found = erf.times_plus_one(op)) {
    epilogue(found->erf.of, layout, known, body);
    epilogue(found->factor, layout, known, body);
    made.erf = {.of = found->erf.of, .scale = found->erf.scale, .factor = found->factor};
  } else {
    for (const ValueId in : op.in) epilogue(in, layout, known, body);
  }
  body.push_back(std::move(made));
}

void BlockLowering::load_pointers(OpId id) {
  const Operation& op = operation(id);
  const bool is_scalar = type(op.out[0]).is_scalar();
  const Layout layout = is_scalar ? Layout(0, {}, {}) : home(op.out[0]);
  for (const ValueId in : op.in) require(in, layout);
  order({.op = id, .writes = false});
  add(LoadPointers{.op = id, .layout = layout});
  define(op.out[0], layout);
}

namespace {

/// Layout of a scalar that one thread writes.
Layout one_thread() {
  return Layout(0, {}, std::vector<IndexBit>(kLaneBits));
}

}  // namespace

void BlockLowering::store_pointers(OpId id) {
  const Operation& op = operation(id);
  const Layout layout = type(op.in[1]).is_scalar() ? one_thread() : home(op.in[1]);
  for (const ValueId in : op.in) require(in, layout);
  order({.op = id, .writes = true});
  add(StorePointers{.op = id, .layout = layout});
}

void BlockLowering::atomic(OpId id) {
  const Operation& op = operation(id);
  const bool cas = op.code == Code::Cas;
  const ValueId out = op.out[0], x = op.in[cas ? 2 : 1];
  const bool is_scalar = type(out).is_scalar();
  const bool is_update = cas || op.function == Function::Add || op.function == Function::Min ||
                         op.function == Function::Max || op.function == Function::And ||
                         op.function == Function::Or || op.function == Function::Xor ||
                         op.function == Function::Exchange;
  if (!is_update || dtype(x) == DType::Bool) {
    return fail(op, fmt::format("an atomic {} of {}", to_string(op.function), to_string(dtype(x))));
  }
  const Layout layout = is_scalar ? one_thread() : home(out);
  require(op.in[0], layout);
  require(x, layout);
  if (cas) require(op.in[1], layout);
  if (!cas && op.in.size() > 2) require(op.in[2], layout);
  const AccessOrder::Access access{.op = id, .writes = true};
  order(access);
  if (is_scalar) shared_.barrier();  // part of the operation
  const bool is_shared = layout.replicated() && planned_.uses[out] > 0;
  accesses_.complete(access, shared_.barriers());
  add(AtomicUpdate{.op = id, .layout = layout, .is_shared = is_shared});
  if (is_shared) {
    // Threads that hold copies of the element get the old value from the first one.
    Extents extents;
    for (int axis = 0; axis < layout.rank(); ++axis) extents.push_back(layout.extent(axis));
    SharedTile through = in_scratch(extents, dtype(x));
    exchanged();
    add(ShareAtomic{.op = id, .layout = layout, .through = std::move(through)});
  }
  define(out, layout);
}

}  // namespace tessera::tile::gpu
