#include "tessera/tile/gpu/block_lowering.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/tile/gpu/epilogue.h"
#include "tessera/tile/gpu/erf_pattern.h"

namespace tessera::tile::gpu {

BlockLowering::BlockLowering(const ScheduledKernel& scheduled)
    : scheduled_(scheduled),
      planned_(*scheduled.planned),
      kernel_(planned_.kernel),
      plan_(planned_.plan),
      mapping_(scheduled.mapping) {
  if (!mapping_.rows) epilogue_ = find_epilogues(planned_);  // rows are in registers as a whole
}

Expected<BlockProgram> BlockLowering::run() {
  BlockProgram program;
  program.body = body_of([&] {
    open_scope();
    if (mapping_.tile_pipelines) return with_tile_pipelines();
    if (mapping_.warp_specialized) return warp_specialized();
    if (mapping_.persistent) return persistent();
    if (mapping_.cut != nullptr) return passes();
    if (mapping_.rows) return versions();
    lower(kernel_.body);
  });
  if (error_) return *error_;
  program.shared = {.bytes = shared_.bytes() + more_bytes_, .own_bytes = own_bytes_};
  if (mapping_.programs > 1)
    program.shared = {.bytes = shared_.bytes() * mapping_.programs, .own_bytes = shared_.bytes()};
  return program;
}

DType BlockLowering::dtype(ValueId id) const {
  return type(id).is_pointer() ? DType::U64 : type(id).dtype;
}

void BlockLowering::fail(const Operation& op, const std::string& message) {
  if (error_) return;
  const std::string line =
      op.source.line > 0 ? fmt::format("line {}", op.source.line) : kernel_.name;
  error_ = Diagnostic{.id = "ptx-unsupported",
                      .where = {.file = op.source.file, .item = line},
                      .message = message,
                      .note = "the GPU backend does not know it"};
}

void BlockLowering::barrier() {
  shared_.barrier();
  add(Barrier{});
}

void BlockLowering::place_in_scratch(std::vector<SharedTile>& tiles) {
  const SharedStack::Scratch scratch = shared_.scratch(place_in_sequence(tiles));
  if (scratch.needs_barrier) add(Barrier{});
  place_in_sequence(tiles, scratch.offset);
}

SharedTile BlockLowering::in_scratch(const Extents& extents, DType dtype) {
  SharedTile tile = SharedTile::of(extents, dtype);
  const SharedStack::Scratch scratch = shared_.scratch(tile.bytes());
  if (scratch.needs_barrier) add(Barrier{});
  tile.offset = scratch.offset;
  return tile;
}

void BlockLowering::exchanged() {
  shared_.barrier();
  shared_.use_scratch();
}

void BlockLowering::define(ValueId id, const Layout& layout) {
  if (type(id).is_scalar()) return;
  if (fragments_.emplace(id, layout).second) scopes_.back().fragments.emplace_back(id, layout);
}

void BlockLowering::close_scope() {
  for (const auto& key : scopes_.back().fragments) fragments_.erase(key);
  for (const ValueId id : scopes_.back().held) held_.erase(id);
  shared_.release(scopes_.back().held_bytes);
  scopes_.pop_back();
}

bool BlockLowering::is_in_epilogue(ValueId id) const {
  return planned_.definitions[id] && epilogue_.contains(*planned_.definitions[id]);
}

void BlockLowering::require(ValueId id, const Layout& layout) {
  if (type(id).is_scalar()) return;
  wait_for(id);
  if (has(id, layout)) return;
  if (const std::optional<Layout>& home = plan_.home(id)) {
    if (is_in_epilogue(id) && !has(id, *home)) {
      rematerialize(id, *home);
      define(id, *home);
      return require(id, layout);
    }
    TESSERA_CHECK(error_ || has(id, *home), "{}: a tile is used before it is made", kernel_.name);
    convert(id, *home, layout);
  } else {
    rematerialize(id, layout);
  }
  define(id, layout);
}

void BlockLowering::convert(ValueId id, const Layout& from, const Layout& to) {
  if (from == to) return;
  Convert made{.value = id, .from = from, .to = to};
  // Registers are only renamed where threads hold the same elements.
  if (!renames(from, to)) {
    Extents extents;
    for (int axis = 0; axis < from.rank(); ++axis)
      extents.push_back(std::max(from.extent(axis), to.extent(axis)));
    made.through = in_scratch(extents, dtype(id));
    exchanged();
  }
  add(std::move(made));
}

Compute BlockLowering::elementwise(OpId id, const std::optional<Layout>& layout) {
  const Operation& op = operation(id);
  Compute made{.op = id, .layout = layout};
  const auto use = [&](ValueId in) {
    if (layout) require(in, *layout);
  };
  if (layout) {
    const ErfPattern erf{kernel_, planned_.definitions, scheduled_.fast_erf};
    if (const auto x = erf.plus_one(op)) {
      use(x->of);
      made.erf = {.of = x->of, .scale = x->scale};
      return made;
    }
    if (const auto found = erf.times_plus_one(op)) {
      use(found->erf.of);
      use(found->factor);
      made.erf = {.of = found->erf.of, .scale = found->erf.scale, .factor = found->factor};
      return made;
    }
  }
  switch (op.code) {
    case Code::Hint:
    case Code::Map:
    case Code::Cast:
    case Code::Bitcast:
    case Code::Offset: break;
    default: fail(op, fmt::format("'{}' is not supported here", to_string(op.code)));
  }
  // A matmul is waited for before the other operands are made: predicates that are live across the
  // wait would not fit into their registers.
  if (layout && mapping_.tile_pipelines)
    for (const ValueId in : op.in) wait_for(in);
  for (const ValueId in : op.in) use(in);
  return made;
}

void BlockLowering::rematerialize(ValueId id, const Layout& layout) {
  const OpId by = *planned_.definitions[id];
  const Operation& op = operation(by);
  Compute made{.op = by, .layout = layout};
  const auto from = [&](const Layout& source) {
    require(op.in[0], source);
    made.source = source;
  };
  switch (op.code) {
    case Code::Const:
    case Code::Iota: break;
    case Code::Broadcast: {
      const Type& narrow = type(op.in[0]);
      Layout source = layout;
      for (int axis = 0; axis < narrow.rank(); ++axis)
        if (narrow.shape[static_cast<std::size_t>(axis)] == 1) source = source.collapsed(axis);
      if (!narrow.is_scalar()) from(source);
      break;
    }
    case Code::Permute: {
      std::vector<std::int64_t> back(op.ints.size());
      for (std::size_t i = 0; i < op.ints.size(); ++i)
        back[static_cast<std::size_t>(op.ints[i])] = static_cast<std::int64_t>(i);
      from(layout.permuted(back));
      break;
    }
    case Code::Reshape: {
      if (type(op.in[0]).is_scalar()) break;
      const Extents &in = type(op.in[0]).shape, &out = type(id).shape;
      if (const auto source = reshaped(layout, out, in)) {
        from(*source);
        break;
      }
      const Layout standard = plan_.standard(out);
      const auto source = reshaped(standard, out, in);
      TESSERA_CHECK(source.has_value(), "a reshape without a home must be followed back");
      made.layout = standard;
      from(*source);
      add(std::move(made));
      return convert(id, standard, layout);
    }
    default: made = elementwise(by, layout);
  }
  add(std::move(made));
}

void BlockLowering::lower(const Region& region) {
  for (const OpId id : region.ops) {
    if (error_) return;
    lower(id);
  }
}

void BlockLowering::lower(OpId id) {
  const Operation& op = operation(id);
  if (op.code != Code::Reduce) finish_reductions();
  lower_operation(id);
  if (mapping_.tile_pipelines) release_tiles_after(id);
}

void BlockLowering::lower_operation(OpId id) {
  const Operation& op = operation(id);
  switch (op.code) {
    case Code::Reduce: return reduce(id);
    case Code::Scan: return scan(id);
    case Code::Gather: return gather(id);
    case Code::Concat: return concat(id);
    case Code::Slice: return slice(id);
    case Code::Dot: return dot(id);
    case Code::Load: return load_pointers(id);
    case Code::Store: return store_pointers(id);
    case Code::Vload: return load_view(id);
    case Code::Vstore: return store_view(id);
    case Code::Atomic:
    case Code::Cas: return atomic(id);
    case Code::For: return for_loop(id);
    case Code::While: return while_loop(id);
    case Code::If: return branch(id);
    case Code::Barrier: return barrier();
    case Code::Print: return fail(op, "'print' has no place to print to");
    case Code::Yield:
    case Code::Assume:
    case Code::Assert: return;
    case Code::Pid:
    case Code::Npid:
    case Code::View:
    case Code::Dim:
    case Code::Stride:
    case Code::Base: return add(Compute{.op = id});
    default: return lower_value(id);
  }
}

void BlockLowering::lower_value(OpId id) {
  const Operation& op = operation(id);
  const ValueId out = op.out[0];
  if (type(out).is_view()) return add(Compute{.op = id});
  if (type(out).is_scalar()) {
    if (op.code == Code::Const) return add(Compute{.op = id});
    if (op.code == Code::Reshape) return reshape(id);
    return add(elementwise(id, {}));
  }
  if (!plan_.home(out) || is_in_epilogue(out)) return;  // rematerialized at its uses
  if (names_buffer(id)) return;
  if (op.code == Code::Reshape) return reshape(id);
  if (op.code == Code::Permute && plan_.home(op.in[0]) &&
      plan_.home(op.in[0])->permuted(op.ints) == home(out)) {
    require_at_home(op.in[0]);
    add(Compute{.op = id, .layout = home(out), .source = home(op.in[0])});
  } else {
    rematerialize(out, home(out));
  }
  define(out, home(out));
}

}  // namespace tessera::tile::gpu
