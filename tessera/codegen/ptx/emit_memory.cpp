#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"
#include "tessera/codegen/ptx/instructions.h"

namespace tessera::codegen::ptx {

using tile::Code;
using tile::Function;

llvm::Value* Emitter::global(llvm::Value* address) {
  return ir_.CreateIntToPtr(address, ir_.getPtrTy(kGlobal));
}

// Zeros that out-of-bounds loads read: cheaper than a branch around each load.
llvm::Value* Emitter::nowhere() {
  llvm::Module& module = block_.module();
  llvm::GlobalVariable* zeros = module.getGlobalVariable("tessera_zeros", true);
  if (zeros == nullptr) {
    auto* bytes = llvm::ArrayType::get(ir_.getInt8Ty(), kChunk);
    zeros = new llvm::GlobalVariable(module, bytes, false, llvm::GlobalValue::InternalLinkage,
                                     llvm::ConstantAggregateZero::get(bytes), "tessera_zeros",
                                     nullptr, llvm::GlobalValue::NotThreadLocal, kGlobal);
    zeros->setAlignment(llvm::Align(kChunk));
  }
  return ir_.CreatePtrToInt(zeros, ir_.getInt64Ty());
}

void Emitter::forget_accesses(bool writes) {
  accesses_ = {{.writes = writes || wrote_}};
  ordered_at_ = block_.barriers();
}

Emitter::Access Emitter::access_of(const Operation& op) const {
  const bool writes = op.code == Code::Vstore;
  const tile::Type& view = type(op.in[0]);
  return {.writes = writes,
          .known = view.strides == tile::Extents{1},
          .view = op.in[0],
          .at = {op.in.begin() + 1, op.in.begin() + 1 + view.rank()},
          .layout = plan_.access(op)};
}

// Identical views, and views of disjoint memory, do not conflict; arguments may overlap in any
// other way, which is checked at launch.
llvm::Value* Emitter::overlap(const Access& a, const Access& b) {
  if (a.view == b.view) return ir_.getFalse();
  struct Bytes {
    llvm::Value *from, *to;
  };
  const auto bytes_of = [&](const Access& access) -> Bytes {
    const int width = byte_width(dtype(access.view));
    llvm::Value* at = ir_.CreateSExt(scalar(access.at[0]), ir_.getInt64Ty());
    llvm::Value* from = ir_.CreateAdd(view(access.view).base, ir_.CreateMul(at, block_.i64(width)));
    return {from, ir_.CreateAdd(from, block_.i64(access.layout->extent(0) * width))};
  };
  const Bytes first = bytes_of(a), second = bytes_of(b);
  llvm::Value* meet = ir_.CreateAnd(ir_.CreateICmpULT(first.from, second.to),
                                    ir_.CreateICmpULT(second.from, first.to));
  if (byte_width(dtype(a.view)) != byte_width(dtype(b.view))) return meet;
  return ir_.CreateAnd(meet, ir_.CreateICmpNE(first.from, second.from));
}

void Emitter::in_order(const Access& access) {
  if (unordered_) return;
  if (block_.barriers() != ordered_at_) accesses_.clear();
  bool overlaps = false;
  llvm::Value* may_meet = ir_.getFalse();
  for (const Access& earlier : accesses_) {
    if (!access.writes && !earlier.writes) continue;
    // Threads that hold the same elements in both accesses, each alone, do not conflict.
    overlaps = overlaps || !access.known || !earlier.known || access.at != earlier.at ||
               access.layout != earlier.layout || access.layout->replicated();
    if (overlaps) break;
    may_meet = ir_.CreateOr(may_meet, overlap(access, earlier));
  }
  if (overlaps) {
    block_.barrier();
    accesses_.clear();
  } else if (may_meet != ir_.getFalse()) {
    block_.barrier_if(may_meet);
  }
  ordered_at_ = block_.barriers();
  wrote_ = wrote_ || access.writes;
  accesses_.push_back(access);
}

void Emitter::accessed(const Access& access) {
  if (block_.barriers() != ordered_at_) accesses_ = {access};
  ordered_at_ = block_.barriers();
}

Emitter::Place Emitter::place_of(const Operation& op, const tile::Extents& shape) {
  const View& view = this->view(op.in[0]);
  const tile::Type& view_type = type(op.in[0]);
  Place place{.op = &op,
              .layout = plan_.access(op),
              .shape = shape,
              .dtype = view_type.dtype,
              .axis = contiguous_axis(view_type),
              .base = view.base,
              .start = {},
              .first = {},
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

  place.run = run_of(view_type, place.layout, shape);
  // Memory behind the row is unchanged.
  if (masked_ && op.code == Code::Vstore && known_access_of(op) == nullptr && cut_axis(op) &&
      mapping_.cut->extent % place.run != 0)
    place.run = 1;
  if (place.run == 1) return place;

  const KnownAccess* known = known_access_of(op);
  if (known != nullptr && known->aligned()) {
    place.aligned = ir_.getTrue();
  } else if (known != nullptr && known->unaligned) {
    llvm::Value* rest =
        ir_.CreateAnd(place.address, block_.i64(std::int64_t{place.run} * width - 1));
    place.aligned = ir_.CreateICmpEQ(rest, block_.i64(0));
  } else {
    place.aligned = is_aligned(op, place.run);
  }
  return place;
}

const std::vector<tile::Facts>& Emitter::facts() {
  if (facts_.empty()) facts_ = tile::facts_of(kernel_, options_.alignment);
  return facts_;
}

// Bytes that divide the address of a view: of a parameter, or of one that is made of a pointer.
std::int64_t Emitter::view_alignment(ValueId view) {
  const auto params = kernel_.params();
  if (std::find(params.begin(), params.end(), view) != params.end()) return options_.alignment;
  if (!definitions_[view]) return 1;
  const Operation& made = kernel_.ops[*definitions_[view]];
  return made.code == Code::View ? facts()[made.in[0]].divisor : 1;
}

// A vector is aligned where all terms of its address are, and is in bounds or out of bounds as a
// whole where the extent is a multiple of it too, or where all of the tile is in bounds.
llvm::Value* Emitter::is_aligned(const Operation& op, int run) {
  const View& view = this->view(op.in[0]);
  const tile::Type& type = this->type(op.in[0]);
  const auto c = static_cast<std::size_t>(contiguous_axis(type));
  const int width = byte_width(type.dtype);
  const auto is_multiple = [&](llvm::Value* bytes) {
    return ir_.CreateICmpEQ(ir_.CreateAnd(bytes, block_.i64(std::int64_t{run} * width - 1)),
                            block_.i64(0));
  };
  llvm::Value* start = ir_.CreateSExt(scalar(op.in[1 + c]), ir_.getInt64Ty());
  llvm::Value* parts = start;
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

bool Emitter::is_known_inside(const Place& place, std::size_t axis) {
  return axis < place.op->ints.size() && place.op->ints[axis] != 0;
}

llvm::Value* Emitter::within(const Place& place, int reg) {
  llvm::Value* inside = block_.is_inside(place.layout, place.shape, reg);
  const KnownAccess* known = known_access_of(*place.op);
  for (int axis = 0; axis < place.layout.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    if (is_known_inside(place, at)) continue;
    if (known != nullptr && known->inside[at]) continue;
    llvm::Value* index = ir_.CreateAdd(place.first[at], block_.i64(place.layout.offset(axis, reg)));
    llvm::Value* below =
        ir_.CreateICmpULT(index, place.extents[at]);  // negative ones are large as unsigned
    inside = block_.both(inside, below);
  }
  if (masked_)
    if (const std::optional<int> axis = cut_axis(*place.op))
      inside = block_.both(inside, within_row(place.layout, *axis, reg));
  return inside;
}

llvm::Value* Emitter::address(const Place& place, int reg) {
  llvm::Value* address = place.address;
  for (int axis = 0; axis < place.layout.rank(); ++axis) {
    const std::int64_t bytes = place.layout.offset(axis, reg) * byte_width(place.dtype);
    if (bytes == 0) continue;
    address = ir_.CreateAdd(
        address, ir_.CreateMul(place.strides[static_cast<std::size_t>(axis)], block_.i64(bytes)));
  }
  return address;
}

Pieces Emitter::by_runs(const Place& place, const std::function<Pieces(int run)>& access) {
  if (place.aligned == nullptr) return access(1);
  if (place.aligned == ir_.getTrue()) return access(place.run);
  return either(
      place.aligned, [&] { return access(place.run); }, [&] { return access(1); });
}

// Loads one packed value, by one access or element by element; `pad` where it is out of bounds, or
// 0.
llvm::Value* Emitter::loaded_run(const Place& place, int reg, int run, llvm::Value* pad) {
  const KnownAccess* known = known_access_of(*place.op);
  const auto load_at = [&](int first) {
    llvm::Value* inside =
        known != nullptr && known->edge ? touches_row(place, first, run) : within(place, first);
    llvm::Value* from = address(place, first);
    if (inside != nullptr) from = ir_.CreateSelect(inside, from, nowhere());
    llvm::LoadInst* load = ir_.CreateAlignedLoad(
        block_.packed_type(place.dtype, run), global(from),
        llvm::Align(static_cast<std::uint64_t>(run * byte_width(place.dtype))));
    if (known != nullptr && known->constant)
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

void Emitter::vload(const Operation& op) {
  if (operands_.count(op.out[0]) != 0) return;  // prefetched
  if (const auto buffer = prefetch_buffers_.find(*definitions_[op.out[0]]);
      buffer != prefetch_buffers_.end())
    return take_prefetched(op, buffer->second);
  const Place place = place_of(op, type(op.out[0]).shape);
  const KnownAccess* known = known_access_of(op);
  if (known == nullptr || !known->constant) in_order(access_of(op));
  llvm::Value* pad = constant(type(op.out[0]), op.literal);
  if (llvm::cast<llvm::Constant>(pad)->isNullValue()) pad = nullptr;
  // Both versions produce packed vectors: unpacking before the merge would need moves.
  const auto load = [&](int run) {
    Pieces loaded;
    for (int reg = 0; reg < place.layout.registers(); reg += place.run)
      loaded.push_back(run == 0 ? load_unaligned(place, reg) : loaded_run(place, reg, run, pad));
    return loaded;
  };
  const Pieces runs =
      cached_runs(place, [&] { return may_be_unaligned(place) ? load(0) : by_runs(place, load); });
  Pieces registers;
  for (llvm::Value* packed : runs)
    for (llvm::Value* value : block_.unpack(packed, place.dtype, place.run))
      registers.push_back(value);
  keep_packed(op.out[0], {place.layout, runs, place.dtype, place.run, place.base});
  define(op.out[0], place.layout, std::move(registers));
}

// The addresses of a vector are consecutive and aligned, and its elements are all accessed or none.
int Emitter::pointer_run(const Operation& op, const Layout& layout) {
  const ValueId tile = op.code == Code::Load ? op.out[0] : op.in[1];
  const std::size_t mask = op.code == Code::Load ? 1 : 2;
  if (type(tile).is_scalar()) return 1;
  const int width = byte_width(dtype(tile));
  const tile::Facts& pointers = facts()[op.in[0]];
  int longest = 1;
  for (int axis = 0; axis < layout.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    std::int64_t run = std::min(layout.run(axis), static_cast<int>(tile::gpu::kChunk) / width);
    const auto divides = [&](std::int64_t count) { return count % run == 0; };
    while (run > 1 && !(divides(pointers.contiguity[at]) && pointers.divisor % (run * width) == 0 &&
                        divides(type(tile).shape[at]) &&
                        (op.in.size() <= mask || divides(facts()[op.in[mask]].constancy[at]))))
      run /= 2;
    longest = std::max(longest, static_cast<int>(run));
  }
  return longest;
}

void Emitter::load(const Operation& op) {
  const ValueId out = op.out[0];
  const Layout layout = type(out).is_scalar() ? Layout(0, {}, {}) : home(out);
  const Pieces pointers = tile(op.in[0], layout);
  const Pieces masks = op.in.size() > 1 ? tile(op.in[1], layout) : Pieces{};
  const Pieces others = op.in.size() > 2 ? tile(op.in[2], layout) : Pieces{};
  in_order({.writes = false});
  const int run = pointer_run(op, layout);
  const auto align = llvm::Align(static_cast<std::uint64_t>(run * byte_width(dtype(out))));
  Pieces registers;
  for (int reg = 0; reg < layout.registers(); reg += run) {
    const auto i = static_cast<std::size_t>(reg);
    llvm::Value* wanted = masks.empty() ? nullptr : masks[i];
    if (!type(out).is_scalar())
      wanted = block_.both(wanted, block_.is_inside(layout, type(out).shape, reg));
    llvm::Value* from = pointers[i];
    if (wanted != nullptr) from = ir_.CreateSelect(wanted, from, nowhere());
    llvm::Value* packed =
        ir_.CreateAlignedLoad(block_.packed_type(dtype(out), run), global(from), align);
    for (llvm::Value* value : block_.unpack(packed, dtype(out), run))
      registers.push_back(
          others.empty() ? value : ir_.CreateSelect(wanted, value, others[registers.size()]));
  }
  define(out, layout, std::move(registers));
}

void Emitter::store(const Operation& op) {
  const ValueId x = op.in[1];
  const bool scalar_store = type(x).is_scalar();
  const Layout layout = scalar_store ? Layout(0, {}, std::vector<IndexBit>(5)) : home(x);
  const Pieces pointers = tile(op.in[0], layout), values = tile(x, layout);
  const Pieces masks = op.in.size() > 2 ? tile(op.in[2], layout) : Pieces{};
  in_order({.writes = true});
  llvm::Value* first =
      scalar_store ? ir_.CreateICmpEQ(block_.thread(), block_.i32(0)) : block_.is_first(layout);
  const int run = pointer_run(op, layout);
  const auto align = llvm::Align(static_cast<std::uint64_t>(run * byte_width(dtype(x))));
  for (int reg = 0; reg < layout.registers(); reg += run) {
    const auto i = static_cast<std::size_t>(reg);
    llvm::Value* wanted = block_.both(first, masks.empty() ? nullptr : masks[i]);
    if (!scalar_store) wanted = block_.both(wanted, block_.is_inside(layout, type(x).shape, reg));
    const auto write = [&] {
      ir_.CreateAlignedStore(
          block_.pack(std::span(values).subspan(i, static_cast<std::size_t>(run)), dtype(x)),
          global(pointers[i]), align);
    };
    block_.when(wanted, write);
  }
}

void Emitter::atomic(const Operation& op) {
  const bool cas = op.code == Code::Cas;
  const ValueId out = op.out[0], x = op.in[cas ? 2 : 1];
  const bool scalars = type(out).is_scalar();
  const DType of = dtype(x);
  const auto operation = [&]() -> std::optional<llvm::AtomicRMWInst::BinOp> {
    using Rmw = llvm::AtomicRMWInst;
    const bool floats = is_float(of);
    const bool natural = is_unsigned(of);
    switch (op.function) {
      case Function::Add: return floats ? Rmw::FAdd : Rmw::Add;
      case Function::Min: return floats ? Rmw::FMin : natural ? Rmw::UMin : Rmw::Min;
      case Function::Max: return floats ? Rmw::FMax : natural ? Rmw::UMax : Rmw::Max;
      case Function::And: return Rmw::And;
      case Function::Or: return Rmw::Or;
      case Function::Xor: return Rmw::Xor;
      case Function::Exchange: return Rmw::Xchg;
      default: return {};
    }
  }();
  if ((!cas && !operation) || of == DType::Bool)
    return fail(op, fmt::format("an atomic {} of {}", to_string(op.function), to_string(of)));

  const Layout layout = scalars ? Layout(0, {}, std::vector<IndexBit>(5)) : home(out);
  const Pieces pointers = tile(op.in[0], layout), values = tile(x, layout);
  const Pieces expected = cas ? tile(op.in[1], layout) : Pieces{};
  const Pieces masks = !cas && op.in.size() > 2 ? tile(op.in[2], layout) : Pieces{};
  in_order({.writes = true});
  // A scalar atomic synchronizes blocks: earlier accesses of this block are made visible first.
  if (scalars) {
    block_.intrinsic(llvm::Intrinsic::nvvm_membar_gl, {});
    block_.barrier();
  }
  llvm::Value* first =
      scalars ? ir_.CreateICmpEQ(block_.thread(), block_.i32(0)) : block_.is_first(layout);
  llvm::Type* element = block_.element(of);
  const auto order = llvm::AtomicOrdering::Monotonic;
  Pieces before;
  for (int reg = 0; reg < layout.registers(); ++reg) {
    const auto i = static_cast<std::size_t>(reg);
    llvm::Value* wanted = first == nullptr ? ir_.getTrue() : first;
    if (!masks.empty()) wanted = ir_.CreateAnd(wanted, masks[i]);
    if (!scalars)
      if (llvm::Value* inside = block_.is_inside(layout, type(out).shape, reg))
        wanted = ir_.CreateAnd(wanted, inside);
    llvm::Value* old = nullptr;
    llvm::BasicBlock* from = ir_.GetInsertBlock();
    llvm::BasicBlock* inside = nullptr;
    block_.when(wanted, [&] {
      const auto align = llvm::MaybeAlign(static_cast<std::uint64_t>(byte_width(of)));
      if (cas) {
        llvm::Type* bits = ir_.getIntNTy(element->getPrimitiveSizeInBits());
        llvm::Value* pair =
            ir_.CreateAtomicCmpXchg(global(pointers[i]), ir_.CreateBitCast(expected[i], bits),
                                    ir_.CreateBitCast(values[i], bits), align, order, order);
        old = ir_.CreateBitCast(ir_.CreateExtractValue(pair, 0), element);
      } else {
        old = ir_.CreateAtomicRMW(*operation, global(pointers[i]), values[i], align, order);
      }
      inside = ir_.GetInsertBlock();
    });
    llvm::PHINode* result = ir_.CreatePHI(element, 2);
    result->addIncoming(llvm::Constant::getNullValue(element), from);
    result->addIncoming(old, inside);
    before.push_back(result);
  }
  accessed({.writes = true});
  if (first != nullptr && uses_[out] > 0) {
    // Threads that hold copies of the element get the old value from the first one.
    tile::Extents extents;
    for (int axis = 0; axis < layout.rank(); ++axis) extents.push_back(layout.extent(axis));
    Block::Buffer exchange = Block::buffer(extents, of);
    exchange.offset = block_.scratch(exchange.bytes());
    block_.when(first, [&] { block_.put(exchange, layout, before); });
    block_.barrier();
    before = block_.take(exchange, layout);
    block_.forget();
  }
  if (scalars) block_.intrinsic(llvm::Intrinsic::nvvm_membar_gl, {});
  define(out, layout, std::move(before));
}

}  // namespace tessera::codegen::ptx
