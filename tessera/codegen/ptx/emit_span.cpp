#include <algorithm>
#include <bit>

#include "tessera/codegen/ptx/emitter.h"

// From where to where a loop goes, whatever its bounds: no step leads nowhere, and no index wraps
// around on its way past the end. Where bounds are known to be small, neither is asked for.

namespace tessera::codegen::ptx {

using tile::Code;
using tile::Function;

/// How many bits an integer has at most, beside its sign; 64: nothing is known. Extents are of
/// something that lies in memory.
int Emitter::most_bits(ValueId id) const {
  constexpr int kUnknown = 64, kExtent = 56, kGrid = 31;
  const int width = 8 * byte_width(type(id).dtype) - (is_signed(type(id).dtype) ? 1 : 0);
  const int whole = width < 63 ? width : kUnknown;
  if (!definitions_[id]) return whole;
  const Operation& op = kernel_.ops[*definitions_[id]];
  const auto of = [&](std::size_t i) { return most_bits(op.in[i]); };
  switch (op.code) {
    case Code::Const:
      return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(
          op.literal.integer < 0 ? ~op.literal.integer : op.literal.integer)));
    case Code::Pid:
    case Code::Npid: return kGrid;
    case Code::Dim: return kExtent;
    case Code::Hint: return of(0);
    case Code::Cast: return is_integer(type(op.in[0]).dtype) ? std::min(whole, of(0)) : whole;
    case Code::Map: break;
    default: return whole;
  }
  int bits = kUnknown;
  switch (op.function) {
    case Function::Add:
    case Function::Sub: bits = std::max(of(0), of(1)) + 1; break;
    case Function::Mul: bits = of(0) + of(1); break;
    case Function::Min:
    case Function::Max: bits = std::max(of(0), of(1)); break;
    case Function::Div: bits = of(0); break;
    case Function::Rem: bits = std::min(of(0), of(1)); break;
    default: break;
  }
  return std::min(bits, whole);
}

Emitter::Span Emitter::span_of(const Operation& loop) {
  Span span{scalar(loop.in[0]), scalar(loop.in[1]), scalar(loop.in[2]), false};
  // The end is a minimum as often as not: one that is small is enough.
  const std::function<int(ValueId)> upper = [&](ValueId id) {
    const Operation* op = definitions_[id] ? &kernel_.ops[*definitions_[id]] : nullptr;
    if (op != nullptr && op->code == Code::Map && op->function == Function::Min)
      return std::min(upper(op->in[0]), upper(op->in[1]));
    return most_bits(id);
  };
  const int room = 8 * byte_width(type(loop.in[1]).dtype) - 2;
  const int rounds = index_bits(std::max(stages_, 1) + 1);
  span.may_wrap = std::max(upper(loop.in[1]), most_bits(loop.in[2]) + rounds) >= room;
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(span.step);
  if (known == nullptr || known->getSExtValue() <= 0) {
    llvm::Value* zero = llvm::ConstantInt::get(span.step->getType(), 0);
    span.to = ir_.CreateSelect(ir_.CreateICmpSGT(span.step, zero), span.to, span.from);
  }
  return span;
}

llvm::Value* Emitter::later(const Span& span, llvm::Value* index, int rounds) {
  llvm::Value* count =
      llvm::ConstantInt::get(span.step->getType(), static_cast<std::uint64_t>(rounds));
  if (!span.may_wrap) return ir_.CreateAdd(index, ir_.CreateMul(span.step, count));
  // What is left is not negative as long as no index is beyond the end; one at a time, because
  // several steps may be too many bits.
  for (int i = 0; i < rounds; ++i) {
    llvm::Value* left =
        ir_.CreateSub(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, span.to, index), index);
    llvm::Value* step = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, span.step, left);
    index = ir_.CreateAdd(index, step);
  }
  return index;
}

}  // namespace tessera::codegen::ptx
