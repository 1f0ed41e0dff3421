#include "tessera/codegen/ptx/view_access.h"

#include <algorithm>

namespace tessera::codegen::ptx {

using tile::Code;

const std::vector<tile::Facts>& PointerFacts::by_value() {
  if (facts_.empty()) facts_ = tile::facts_of(kernel_, options_.alignment, options_.divisors);
  return facts_;
}

// Views of disjoint memory do not conflict; arguments may overlap in any other way.
llvm::Value* ViewAccess::overlap(const Operation& a, const Operation& b) {
  struct Bytes {
    llvm::Value *from, *to;
  };
  const auto bytes_of = [&](const Operation& op) -> Bytes {
    const int width = byte_width(dtype(op.in[0]));
    llvm::Value* at = ir_.CreateSExt(scalar(op.in[1]), ir_.getInt64Ty());
    llvm::Value* from = ir_.CreateAdd(view(op.in[0]).base, ir_.CreateMul(at, block_.i64(width)));
    return {from, ir_.CreateAdd(from, block_.i64(plan_.access(op).extent(0) * width))};
  };
  const Bytes first = bytes_of(a), second = bytes_of(b);
  llvm::Value* meet = ir_.CreateAnd(ir_.CreateICmpULT(first.from, second.to),
                                    ir_.CreateICmpULT(second.from, first.to));
  if (byte_width(dtype(a.in[0])) != byte_width(dtype(b.in[0]))) return meet;
  return ir_.CreateAnd(meet, ir_.CreateICmpNE(first.from, second.from));
}

void ViewAccess::write(const tile::gpu::AddressView& access) {
  const Operation& op = operation(access.op);
  const View& view = this->view(op.in[0]);
  const tile::Type& view_type = type(op.in[0]);
  Place place{.op = &op,
              .id = access.op,
              .layout = access.layout,
              .shape = type(op.code == Code::Vload ? op.out[0] : op.in.back()).shape,
              .dtype = view_type.dtype,
              .axis = contiguous_axis(view_type),
              .run = access.run,
              .known = access.known,
              .is_masked = access.is_masked,
              .base = view.base,
              .extents = view.extents,
              .strides = view.strides};
  const int width = byte_width(place.dtype);
  llvm::Value* elements = block_.i64(0);
  for (int axis = 0; axis < view_type.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    llvm::Value* start = ir_.CreateSExt(scalar(op.in[1 + at]), ir_.getInt64Ty());
    llvm::Value* own = ir_.CreateZExt(block_.coordinate(place.layout, axis), ir_.getInt64Ty());
    place.start.push_back(start);
    place.first.push_back(ir_.CreateAdd(start, own));
    elements = ir_.CreateAdd(elements, ir_.CreateMul(place.first.back(), view.strides[at]));
  }
  place.address = ir_.CreateAdd(view.base, ir_.CreateMul(elements, block_.i64(width)));
  const bool is_aligned_here = place.known && place.known->aligned();
  if (place.run > 1 && is_aligned_here) {
    place.aligned = ir_.getTrue();
  } else if (place.run > 1 && place.known && place.known->unaligned) {
    llvm::Value* rest =
        ir_.CreateAnd(place.address, block_.i64(std::int64_t{place.run} * width - 1));
    place.aligned = ir_.CreateICmpEQ(rest, block_.i64(0));
  } else if (place.run > 1) {
    place.aligned = is_aligned(op, place.run);
  }
  places_.insert_or_assign(access.op, std::move(place));
}

// Bytes that divide the address of a view: of a parameter, or of one that is made of a pointer.
std::int64_t ViewAccess::view_alignment(ValueId view) {
  const auto params = kernel_.params();
  if (std::find(params.begin(), params.end(), view) != params.end()) return options_.alignment;
  const Operation* made = planned_.defining_op(view);
  return made != nullptr && made->code == Code::View ? facts_.by_value()[made->in[0]].divisor : 1;
}

// A vector is aligned where all terms of its address are, and is in bounds or out of bounds as a
// whole where the extent is a multiple of it too, or where all of the tile is in bounds.
llvm::Value* ViewAccess::is_aligned(const Operation& op, int run) {
  const View& view = this->view(op.in[0]);
  const tile::Type& type = this->type(op.in[0]);
  const auto c = static_cast<std::size_t>(contiguous_axis(type));
  const int width = byte_width(type.dtype);
  const auto is_multiple = [&](llvm::Value* bytes) {
    return ir_.CreateICmpEQ(ir_.CreateAnd(bytes, block_.i64(std::int64_t{run} * width - 1)),
                            block_.i64(0));
  };
  llvm::Value* start = ir_.CreateSExt(scalar(op.in[1 + c]), ir_.getInt64Ty());
  // LLVM sees what parameters are multiples of, but not what the index of a loop is.
  const bool is_multiple_start = facts_.by_value()[op.in[1 + c]].divisor % run == 0;
  llvm::Value* parts = is_multiple_start ? block_.i64(0) : start;
  for (std::size_t axis = 0; axis < view.strides.size(); ++axis)
    if (axis != c) parts = ir_.CreateOr(parts, view.strides[axis]);
  parts = ir_.CreateMul(parts, block_.i64(width));
  if (view_alignment(op.in[0]) % (std::int64_t{run} * width) != 0)
    parts = ir_.CreateOr(parts, view.base);
  const tile::Extents& shape = this->type(op.code == Code::Vload ? op.out[0] : op.in.back()).shape;
  llvm::Value* room = ir_.CreateSub(view.extents[c], block_.i64(shape[c]));
  llvm::Value* whole =
      ir_.CreateAnd(ir_.CreateICmpSGE(start, block_.i64(0)), ir_.CreateICmpSLE(start, room));
  llvm::Value* even = is_multiple(ir_.CreateMul(view.extents[c], block_.i64(width)));
  llvm::Value* aligned = ir_.CreateAnd(is_multiple(parts), ir_.CreateOr(even, whole));
  if (type.strides[c] == tile::kDynamic)
    aligned = ir_.CreateAnd(aligned, ir_.CreateICmpEQ(view.strides[c], block_.i64(1)));
  return aligned;
}

llvm::Value* ViewAccess::within(const Place& place, int reg) {
  llvm::Value* inside = block_.is_inside(place.layout, place.shape, reg);
  for (int axis = 0; axis < place.layout.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    if (place.is_known_inside(at)) continue;
    if (place.known && place.known->inside[at]) continue;
    // Padding alone is out of bounds where the tile is within the view.
    const auto* start = llvm::dyn_cast<llvm::ConstantInt>(place.start[at]);
    const auto* extent = llvm::dyn_cast<llvm::ConstantInt>(place.extents[at]);
    if (start != nullptr && extent != nullptr && !start->isNegative() &&
        start->getSExtValue() <= extent->getSExtValue() - place.shape[at])
      continue;
    llvm::Value* index = ir_.CreateAdd(place.first[at], block_.i64(place.layout.offset(axis, reg)));
    llvm::Value* below =
        ir_.CreateICmpULT(index, place.extents[at]);  // negative ones are large as unsigned
    inside = block_.both(inside, below);
  }
  if (place.is_masked)
    if (const std::optional<int> axis = tile::gpu::cut_axis(*mapping_.cut, *place.op))
      inside = block_.both(inside, within_row(place.layout, *axis, reg));
  return inside;
}

llvm::Value* ViewAccess::address(const Place& place, int reg) {
  llvm::Value* address = place.address;
  for (int axis = 0; axis < place.layout.rank(); ++axis) {
    const std::int64_t bytes = place.layout.offset(axis, reg) * byte_width(place.dtype);
    if (bytes == 0) continue;
    address = ir_.CreateAdd(
        address, ir_.CreateMul(place.strides[static_cast<std::size_t>(axis)], block_.i64(bytes)));
  }
  return address;
}

Pieces ViewAccess::by_runs(const Place& place, const std::function<Pieces(int run)>& access) {
  if (place.aligned == nullptr) return access(1);
  if (place.aligned == ir_.getTrue()) return access(place.run);
  return either(
      place.aligned, [&] { return access(place.run); }, [&] { return access(1); });
}

bool ViewAccess::is_never_written(const Place& place) const {
  if (!place.known || !place.known->constant) return false;
  if (!options_.programmatic_launch) return true;
  const auto root = tile::gpu::root_of(planned_, place.op->in[0]);
  return root && context_.scheduled.constants.contains(*root);
}

llvm::Value* ViewAccess::loaded_run(const Place& place, int reg, int run, llvm::Value* pad) {
  const KnownAccess* known = place.known ? &*place.known : nullptr;
  const auto load_at = [&](int first) {
    llvm::Value* inside =
        known != nullptr && known->edge ? touches_row(place, first, run) : within(place, first);
    llvm::Value* from = address(place, first);
    if (inside != nullptr) from = ir_.CreateSelect(inside, from, nowhere());
    llvm::LoadInst* load = ir_.CreateAlignedLoad(
        block_.packed_type(place.dtype, run), global(from),
        llvm::Align(static_cast<std::uint64_t>(run * byte_width(place.dtype))));
    if (is_never_written(place))
      load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                        llvm::MDNode::get(load->getContext(), {}));
    llvm::Value* packed = load;
    if (inside == nullptr || pad == nullptr) return packed;
    const std::vector<llvm::Value*> pads(static_cast<std::size_t>(run), pad);
    return ir_.CreateSelect(inside, packed, block_.pack(pads, place.dtype));
  };
  if (run == place.run) return load_at(reg);
  Pieces elements;
  for (int i = 0; i < place.run; ++i)
    elements.push_back(block_.unpack(load_at(reg + i), place.dtype, 1).front());
  return block_.pack(elements, place.dtype);
}

void ViewAccess::write(const tile::gpu::LoadView& of) {
  const Operation& op = operation(of.op);
  const Place& place = place_of(of.op);
  llvm::Value* pad = constant(type(op.out[0]), op.literal);
  if (llvm::cast<llvm::Constant>(pad)->isNullValue()) pad = nullptr;
  // Both versions produce packed vectors: unpacking before the merge would need moves.
  const auto load = [&](int run) {
    Pieces loaded;
    for (int reg = 0; reg < place.layout.registers(); reg += place.run)
      loaded.push_back(run == 0 ? load_unaligned(place, reg) : loaded_run(place, reg, run, pad));
    return loaded;
  };
  const Pieces runs = cached_runs(
      place, of, [&] { return may_be_unaligned(place) ? load(0) : by_runs(place, load); });
  Pieces registers;
  for (llvm::Value* packed : runs)
    for (llvm::Value* value : block_.unpack(packed, place.dtype, place.run))
      registers.push_back(value);
  if (of.keeps_packed) keep_packed(op.out[0], place, runs);
  define(op.out[0], place.layout, std::move(registers));
}

void ViewAccess::keep_packed(ValueId id, const Place& place, const Pieces& runs) {
  values_.packed.insert_or_assign(
      id, Values::Packed{place.layout, runs, place.dtype, place.run, place.base});
}

void ViewAccess::write(const tile::gpu::BarrierIfOverlap& barrier) {
  llvm::Value* meet = ir_.getFalse();
  for (const auto& [later, earlier] : barrier.accesses)
    meet = ir_.CreateOr(meet, overlap(operation(later), operation(earlier)));
  block_.when(meet, [&] { block_.barrier(); });
}

// Comparison in 32 bits, which needs half of the instructions: rows are shorter, and a position
// before a row is large as an unsigned number.
llvm::Value* ViewAccess::in_row(const Layout& layout, int axis, int reg) {
  return ir_.CreateAdd(ir_.CreateTrunc(scalar(mapping_.cut->column), ir_.getInt32Ty()),
                       block_.index(layout, axis, reg));
}

llvm::Value* ViewAccess::within_row(const Layout& layout, int axis, int reg) {
  return ir_.CreateICmpULT(in_row(layout, axis, reg), block_.i32(mapping_.cut->extent));
}

llvm::Value* ViewAccess::touches_row(const Place& place, int reg, int run) {
  llvm::Value* last =
      ir_.CreateAdd(in_row(place.layout, *tile::gpu::cut_axis(*mapping_.cut, *place.op), reg),
                    block_.i32(run - 1));
  return ir_.CreateICmpULT(last, block_.i32(mapping_.cut->extent + run - 1));
}

llvm::Value* ViewAccess::is_in_row(const Place& place, int reg, int run) {
  return ir_.CreateICmpULE(
      in_row(place.layout, *tile::gpu::cut_axis(*mapping_.cut, *place.op), reg),
      block_.i32(mapping_.cut->extent - run));
}

Pieces ViewAccess::cached_runs(const Place& place, const tile::gpu::LoadView& load,
                               const BranchBody& from_memory) {
  if (!load.cache) return from_memory();
  const tile::gpu::RowCache& cache = *load.cache;
  const std::int64_t line = block_.threads() * kChunk;
  const int width = byte_width(place.dtype);
  const auto slot = [&](int reg) {
    llvm::Value* at = ir_.CreateMul(values_.part, block_.i32(mapping_.cut->part * width));
    at = ir_.CreateAdd(at, ir_.CreateMul(block_.thread(), block_.i32(kChunk)));
    return block_.shared(ir_.CreateAdd(at, block_.i32(cache.offset + reg / place.run * line)));
  };
  llvm::Value* has_room =
      cache.is_whole ? nullptr : ir_.CreateICmpULT(values_.part, block_.i32(cache.parts));
  const auto take = [&] {
    Pieces runs;
    for (int reg = 0; reg < place.layout.registers(); reg += place.run)
      runs.push_back(ir_.CreateAlignedLoad(block_.packed_type(place.dtype, place.run), slot(reg),
                                           llvm::Align(kChunk)));
    return runs;
  };
  if (cache.is_filled) return has_room == nullptr ? take() : either(has_room, take, from_memory);
  const Pieces runs = from_memory();
  block_.when(has_room, [&] {
    for (std::size_t i = 0; i < runs.size(); ++i)
      ir_.CreateAlignedStore(runs[i], slot(static_cast<int>(i) * place.run), llvm::Align(kChunk));
  });
  return runs;
}

}  // namespace tessera::codegen::ptx
