#include "tessera/codegen/llvm/emitter.h"
#include "tessera/support/check.h"

namespace tessera::codegen {

using tile::Code;
using tile::Function;
using tile::Operation;
using tile::ValueId;

namespace {

llvm::AtomicRMWInst::BinOp rmw_of(Function function, DType dtype) {
  using Rmw = llvm::AtomicRMWInst;
  const bool real = is_float(dtype), natural = is_unsigned(dtype);
  switch (function) {
    case Function::Add: return real ? Rmw::FAdd : Rmw::Add;
    case Function::Sub: return real ? Rmw::FSub : Rmw::Sub;
    case Function::Min:
    case Function::Minimum: return real ? Rmw::FMin : natural ? Rmw::UMin : Rmw::Min;
    case Function::Max:
    case Function::Maximum: return real ? Rmw::FMax : natural ? Rmw::UMax : Rmw::Max;
    case Function::And: return Rmw::And;
    case Function::Or: return Rmw::Or;
    case Function::Xor: return Rmw::Xor;
    case Function::Exchange: return Rmw::Xchg;
    default: break;
  }
  TESSERA_CHECK(false, "no atomic {}", to_string(function));
  return Rmw::Xchg;
}

}  // namespace

llvm::Value* Emitter::emit_atomic(const Operation& op, llvm::Value* pointer, llvm::Value* x) {
  const DType dtype = type(op.in[1]).dtype;
  const bool is_half = is_float(dtype) && byte_width(dtype) == 2;
  if (!is_half || op.function == Function::Exchange) {
    return ir.CreateAtomicRMW(rmw_of(op.function, dtype), pointer, x, llvm::MaybeAlign(),
                              llvm::AtomicOrdering::AcquireRelease);
  }
  // LLVM would call library functions for f16.
  llvm::AllocaInst* old = slot(x->getType());
  llvm::BasicBlock *round = block("round"), *after = block("after");
  ir.CreateStore(load(ir, dtype, pointer), old);
  ir.CreateBr(round);
  ir.SetInsertPoint(round);
  llvm::Value* expected = ir.CreateLoad(x->getType(), old);
  const std::vector<Pieces> operands = {{expected}, {x}};
  llvm::Value* found = emit_cas(
      pointer, expected, emit_map(ir, op.function, dtype, operands, options.precision).front());
  ir.CreateStore(found, old);
  llvm::Type* bits = ir.getInt16Ty();
  ir.CreateCondBr(ir.CreateICmpEQ(ir.CreateBitCast(found, bits), ir.CreateBitCast(expected, bits)),
                  after, round);
  ir.SetInsertPoint(after);
  return found;
}

llvm::Value* Emitter::emit_cas(llvm::Value* pointer, llvm::Value* expected, llvm::Value* x) {
  // Compares bits, not numbers.
  llvm::Type* bits = ir.getIntNTy(x->getType()->getScalarSizeInBits());
  llvm::Value* exchanged = ir.CreateAtomicCmpXchg(
      pointer, ir.CreateBitCast(expected, bits), ir.CreateBitCast(x, bits), llvm::MaybeAlign(),
      llvm::AtomicOrdering::AcquireRelease, llvm::AtomicOrdering::Acquire);
  return ir.CreateBitCast(ir.CreateExtractValue(exchanged, 0), x->getType());
}

llvm::Value* Emitter::emit_scalar_load(const Operation& op, tile::OpId id, llvm::Value* pointer,
                                       llvm::Value* mask, llvm::Value* other) {
  const DType dtype = type(op.in[0]).dtype;
  if (mask == nullptr) {
    check_address(pointer, byte_width(dtype), id);
    return load(ir, dtype, pointer);
  }
  llvm::AllocaInst* result = slot(register_type(dtype));
  ir.CreateStore(other != nullptr ? other : llvm::Constant::getNullValue(register_type(dtype)),
                 result);
  branch(mask, [&] {
    check_address(pointer, byte_width(dtype), id);
    ir.CreateStore(load(ir, dtype, pointer), result);
  });
  return ir.CreateLoad(result->getAllocatedType(), result);
}

void Emitter::emit_scalar(tile::OpId id) {
  const Operation& o = op(id);
  const auto in = [&](std::size_t i) { return i < o.in.size() ? scalars[o.in[i]] : nullptr; };
  const auto out = [&](llvm::Value* value) { scalars[o.out[0]] = value; };
  const auto pieces = [&](std::size_t i) { return Pieces{in(i)}; };
  switch (o.code) {
    case Code::Pid:
    case Code::Npid: return;  // computed at the start of the program
    case Code::Const: return out(literal(type(o.out[0]).dtype, o.literal));
    case Code::Map: {
      std::vector<Pieces> operands;
      for (std::size_t i = 0; i < o.in.size(); ++i) operands.push_back(pieces(i));
      return out(
          emit_map(ir, o.function, type(o.in.back()).dtype, operands, options.precision).front());
    }
    case Code::Cast:
      return out(emit_cast(ir, pieces(0), type(o.in[0]).dtype, type(o.out[0]).dtype).front());
    case Code::Bitcast: {
      const tile::Type& to = type(o.out[0]);
      return out(ir.CreateBitOrPointerCast(
          in(0), to.is_pointer() ? ir.getPtrTy() : register_type(to.dtype)));
    }
    case Code::Hint:
      if (type(o.in[0]).is_view()) {
        views[o.out[0]] = views[o.in[0]];
        return;
      }
      return out(in(0));
    case Code::Broadcast:
    case Code::Reshape: return out(type(o.in[0]).is_tile() ? only_element(o.in[0]) : in(0));
    case Code::Offset:
      return out(ir.CreateGEP(memory_type(type(o.in[0]).dtype), in(0), as_index(ir, o.in[1])));
    case Code::Load: return out(emit_scalar_load(o, id, in(0), in(1), in(2)));
    case Code::Store: {
      const DType dtype = type(o.in[1]).dtype;
      const auto write = [&] {
        check_address(in(0), byte_width(dtype), id);
        store(ir, dtype, in(0), in(1));
      };
      return o.in.size() > 2 ? branch(in(2), write) : write();
    }
    case Code::Atomic: {
      llvm::AllocaInst* old = slot(scalar_type(o.out[0]));
      ir.CreateStore(llvm::Constant::getNullValue(old->getAllocatedType()), old);
      const auto change = [&] {
        check_address(in(0), byte_width(type(o.in[1]).dtype), id);
        ir.CreateStore(emit_atomic(o, in(0), in(1)), old);
      };
      o.in.size() > 2 ? branch(in(2), change) : change();
      return out(ir.CreateLoad(old->getAllocatedType(), old));
    }
    case Code::Cas:
      check_address(in(0), byte_width(type(o.in[1]).dtype), id);
      return out(emit_cas(in(0), in(1), in(2)));
    case Code::View: {
      const tile::Type& t = type(o.out[0]);
      ViewParts view{.base = in(0)};
      std::size_t next = 1;
      const auto part = [&](std::int64_t known) {
        return known == tile::kDynamic ? as_index(ir, o.in[next++]) : index(known);
      };
      // Bounds are compared as unsigned numbers: a view that ends before it begins is empty.
      for (const std::int64_t extent : t.shape)
        view.shape.push_back(extent == tile::kDynamic ? greatest_of(ir, part(extent), index(0))
                                                      : part(extent));
      for (const std::int64_t stride : t.strides) view.strides.push_back(part(stride));
      views[o.out[0]] = std::move(view);
      return;
    }
    case Code::Dim: return out(views[o.in[0]].shape[static_cast<std::size_t>(o.ints[0])]);
    case Code::Stride: return out(views[o.in[0]].strides[static_cast<std::size_t>(o.ints[0])]);
    case Code::Base: return out(views[o.in[0]].base);
    case Code::Assert:
      if (options.assertions) check(in(0), id);
      return;
    default: break;
  }
  TESSERA_CHECK(false, "{} of scalars", to_string(o.code));
}

}  // namespace tessera::codegen
