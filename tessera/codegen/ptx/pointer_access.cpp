#include "tessera/codegen/ptx/pointer_access.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

namespace tessera::codegen::ptx {

using tile::Code;
using tile::Function;

// The addresses of a vector are consecutive and aligned, and its elements are all accessed or none.
int PointerAccess::run_of(const Operation& op, const Layout& layout) {
  const ValueId tile = op.code == Code::Load ? op.out[0] : op.in[1];
  const std::size_t mask = op.code == Code::Load ? 1 : 2;
  if (type(tile).is_scalar()) return 1;
  const int width = byte_width(dtype(tile));
  const tile::Facts& pointers = facts_.by_value()[op.in[0]];
  int longest = 1;
  for (int axis = 0; axis < layout.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    std::int64_t run = std::min(layout.run(axis), static_cast<int>(tile::gpu::kChunk) / width);
    const auto divides = [&](std::int64_t count) { return count % run == 0; };
    while (run > 1 &&
           !(divides(pointers.contiguity[at]) && pointers.divisor % (run * width) == 0 &&
             divides(type(tile).shape[at]) &&
             (op.in.size() <= mask || divides(facts_.by_value()[op.in[mask]].constancy[at]))))
      run /= 2;
    longest = std::max(longest, static_cast<int>(run));
  }
  return longest;
}

void PointerAccess::write(const tile::gpu::LoadPointers& load) {
  const Operation& op = operation(load.op);
  const ValueId out = op.out[0];
  const Layout& layout = load.layout;
  const Pieces pointers = tile(op.in[0], layout);
  const Pieces masks = op.in.size() > 1 ? tile(op.in[1], layout) : Pieces{};
  const Pieces others = op.in.size() > 2 ? tile(op.in[2], layout) : Pieces{};
  const int run = run_of(op, layout);
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

void PointerAccess::write(const tile::gpu::StorePointers& store) {
  const Operation& op = operation(store.op);
  const ValueId x = op.in[1];
  const bool scalar_store = type(x).is_scalar();
  const Layout& layout = store.layout;
  const Pieces pointers = tile(op.in[0], layout), values = tile(x, layout);
  const Pieces masks = op.in.size() > 2 ? tile(op.in[2], layout) : Pieces{};
  llvm::Value* first =
      scalar_store ? ir_.CreateICmpEQ(block_.thread(), block_.i32(0)) : block_.is_first(layout);
  const int run = run_of(op, layout);
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

namespace {

llvm::AtomicRMWInst::BinOp rmw_of(Function function, DType of) {
  using Rmw = llvm::AtomicRMWInst;
  const bool floats = is_float(of);
  const bool natural = is_unsigned(of);
  switch (function) {
    case Function::Add: return floats ? Rmw::FAdd : Rmw::Add;
    case Function::Min: return floats ? Rmw::FMin : natural ? Rmw::UMin : Rmw::Min;
    case Function::Max: return floats ? Rmw::FMax : natural ? Rmw::UMax : Rmw::Max;
    case Function::And: return Rmw::And;
    case Function::Or: return Rmw::Or;
    case Function::Xor: return Rmw::Xor;
    case Function::Exchange: return Rmw::Xchg;
    default: break;
  }
  TESSERA_CHECK(false, "an atomic {}", to_string(function));
  return Rmw::BAD_BINOP;
}

}  // namespace

llvm::Value* PointerAccess::update(const Operation& op, llvm::Value* pointer, llvm::Value* expected,
                                   llvm::Value* value) {
  const DType of = dtype(op.in[op.code == Code::Cas ? 2 : 1]);
  const auto align = llvm::MaybeAlign(static_cast<std::uint64_t>(byte_width(of)));
  const auto order = llvm::AtomicOrdering::Monotonic;
  if (expected == nullptr)
    return ir_.CreateAtomicRMW(rmw_of(op.function, of), global(pointer), value, align, order);
  llvm::Type* element = block_.element(of);
  llvm::Type* bits = ir_.getIntNTy(element->getPrimitiveSizeInBits());
  llvm::Value* pair = ir_.CreateAtomicCmpXchg(global(pointer), ir_.CreateBitCast(expected, bits),
                                              ir_.CreateBitCast(value, bits), align, order, order);
  return ir_.CreateBitCast(ir_.CreateExtractValue(pair, 0), element);
}

void PointerAccess::write(const tile::gpu::AtomicUpdate& atomic) {
  const Operation& op = operation(atomic.op);
  const bool cas = op.code == Code::Cas;
  const ValueId out = op.out[0], x = op.in[cas ? 2 : 1];
  const bool scalars = type(out).is_scalar();
  const Layout& layout = atomic.layout;
  const Pieces pointers = tile(op.in[0], layout), values = tile(x, layout);
  const Pieces expected = cas ? tile(op.in[1], layout) : Pieces{};
  const Pieces masks = !cas && op.in.size() > 2 ? tile(op.in[2], layout) : Pieces{};
  // A scalar atomic synchronizes blocks: earlier accesses of this block are made visible first.
  if (scalars) {
    block_.intrinsic(llvm::Intrinsic::nvvm_membar_gl, {});
    block_.barrier();
  }
  llvm::Value* first =
      scalars ? ir_.CreateICmpEQ(block_.thread(), block_.i32(0)) : block_.is_first(layout);
  llvm::Type* element = block_.element(dtype(x));
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
      old = update(op, pointers[i], cas ? expected[i] : nullptr, values[i]);
      inside = ir_.GetInsertBlock();
    });
    llvm::PHINode* result = ir_.CreatePHI(element, 2);
    result->addIncoming(llvm::Constant::getNullValue(element), from);
    result->addIncoming(old, inside);
    before.push_back(result);
  }
  if (scalars && !atomic.is_shared) block_.intrinsic(llvm::Intrinsic::nvvm_membar_gl, {});
  define(out, layout, std::move(before));
}

void PointerAccess::write(const tile::gpu::ShareAtomic& share) {
  const ValueId out = operation(share.op).out[0];
  const bool scalars = type(out).is_scalar();
  const Pieces before = tile(out, share.layout);
  llvm::Value* first =
      scalars ? ir_.CreateICmpEQ(block_.thread(), block_.i32(0)) : block_.is_first(share.layout);
  block_.when(first, [&] { block_.put(share.through, share.layout, before); });
  block_.barrier();
  Pieces after = block_.take(share.through, share.layout);
  if (scalars) block_.intrinsic(llvm::Intrinsic::nvvm_membar_gl, {});
  define(out, share.layout, std::move(after));
}

}  // namespace tessera::codegen::ptx
