#include "tessera/codegen/ptx/loop_range.h"

#include <algorithm>
#include <bit>

// Loop bounds without undefined behaviour: a step of 0 or less leaves no iteration, and no index
// wraps around past the end. The checks are omitted where bounds are known to be small.

namespace tessera::codegen::ptx {

using tile::Code;
using tile::Function;

/// Maximum number of bits of an integer, besides its sign; 64: unknown. Extents are bounded by the
/// size of memory.
int LoopBounds::most_bits(ValueId id) const {
  constexpr int kUnknown = 64, kExtent = 56, kGrid = 31;
  const int width = 8 * byte_width(type(id).dtype) - (is_signed(type(id).dtype) ? 1 : 0);
  const int whole = width < 63 ? width : kUnknown;
  if (!planned_.definitions[id]) return whole;
  const Operation& op = *planned_.defining_op(id);
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

LoopRange LoopBounds::range_of(const Operation& loop) {
  LoopRange range{scalar(loop.in[0]), scalar(loop.in[1]), scalar(loop.in[2]), false};
  // The end is often a minimum: one small operand is enough.
  const std::function<int(ValueId)> upper = [&](ValueId id) {
    const Operation* op = planned_.defining_op(id);
    if (op != nullptr && op->code == Code::Map && op->function == Function::Min)
      return std::min(upper(op->in[0]), upper(op->in[1]));
    return most_bits(id);
  };
  const int room = 8 * byte_width(type(loop.in[1]).dtype) - 2;
  const int iterations = index_bits(std::max(mapping_.stages, 1) + 1);
  range.may_wrap = std::max(upper(loop.in[1]), most_bits(loop.in[2]) + iterations) >= room;
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(range.step);
  if (known == nullptr || known->getSExtValue() <= 0) {
    llvm::Value* zero = llvm::ConstantInt::get(range.step->getType(), 0);
    range.to = ir_.CreateSelect(ir_.CreateICmpSGT(range.step, zero), range.to, range.from);
  }
  return range;
}

llvm::Value* LoopBounds::later(const LoopRange& range, llvm::Value* index, int iterations) {
  llvm::Value* count =
      llvm::ConstantInt::get(range.step->getType(), static_cast<std::uint64_t>(iterations));
  if (!range.may_wrap) return ir_.CreateAdd(index, ir_.CreateMul(range.step, count));
  // The remaining distance is not negative as long as no index is beyond the end; one step at a
  // time, because several steps may overflow.
  for (int i = 0; i < iterations; ++i) {
    llvm::Value* left =
        ir_.CreateSub(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, range.to, index), index);
    llvm::Value* step = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, range.step, left);
    index = ir_.CreateAdd(index, step);
  }
  return index;
}

}  // namespace tessera::codegen::ptx
