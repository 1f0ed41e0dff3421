#include <limits>

#include "tessera/codegen/llvm/row.h"
#include "tessera/support/check.h"

namespace tessera::codegen {

using tile::Code;
using tile::Function;
using tile::Operation;
using tile::ValueId;
using tile::cpu::Root;

namespace {

/// Neutral element; for a min or max that ignores NaN that is NaN.
llvm::Constant* neutral(llvm::Type* type, Function function, DType dtype) {
  llvm::Type* element = type->getScalarType();
  const unsigned bits = element->getScalarSizeInBits();
  const bool natural = is_unsigned(dtype) || dtype == DType::Bool;
  const auto number = [&](double value) { return llvm::ConstantFP::get(type, value); };
  const auto integer = [&](const llvm::APInt& value) {
    return llvm::ConstantInt::get(type, value);
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const bool real = is_float(dtype);
  switch (function) {
    case Function::Add:
    case Function::Or:
    case Function::Xor: return real ? number(-0.0) : llvm::Constant::getNullValue(type);
    case Function::Mul: return real ? number(1) : integer(llvm::APInt(bits, 1));
    case Function::And: return integer(llvm::APInt::getAllOnes(bits));
    case Function::Max:
      if (real) return number(std::numeric_limits<double>::quiet_NaN());
      return integer(natural ? llvm::APInt::getMinValue(bits)
                             : llvm::APInt::getSignedMinValue(bits));
    case Function::Min:
      if (real) return number(std::numeric_limits<double>::quiet_NaN());
      return integer(natural ? llvm::APInt::getMaxValue(bits)
                             : llvm::APInt::getSignedMaxValue(bits));
    case Function::Maximum:
      if (real) return number(-infinity);
      return integer(natural ? llvm::APInt::getMinValue(bits)
                             : llvm::APInt::getSignedMinValue(bits));
    case Function::Minimum:
      if (real) return number(infinity);
      return integer(natural ? llvm::APInt::getMaxValue(bits)
                             : llvm::APInt::getSignedMaxValue(bits));
    default: break;
  }
  TESSERA_CHECK(false, "no fold by {}", to_string(function));
  return nullptr;
}

/// Sums and products of narrow floats are accumulated in f32.
DType gathered_in(const Operation& op, DType dtype) {
  const bool adds = op.function == Function::Add || op.function == Function::Mul;
  return adds && (dtype == DType::F16 || dtype == DType::BF16) ? DType::F32 : dtype;
}

}  // namespace

void Row::start_fold(const Operation& op, const Mode& mode) {
  llvm::IRBuilderBase& at = folds_lanes() ? static_cast<llvm::IRBuilderBase&>(row_) : e_.ir;
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    Accumulator accumulator{.dtype = gathered_in(op, e_.type(op.in[i]).dtype)};
    const auto add_slot = [&](int width) {
      llvm::AllocaInst* slot = e_.slot(e_.register_type(accumulator.dtype, width));
      if (op.regions.empty()) {
        at.CreateStore(neutral(slot->getAllocatedType(), op.function, accumulator.dtype), slot);
      }
      return slot;
    };
    for (int piece = 0; piece < mode.pieces; ++piece)
      accumulator.pieces.push_back(add_slot(mode.width));
    if (folds_lanes()) accumulator.scalar = add_slot(1);
    accumulators_[op.out[i]] = std::move(accumulator);
  }
}

std::vector<llvm::AllocaInst*> Row::slots_of(const Accumulator& accumulator) const {
  if (folds_lanes() && mode_.width == 1) return {accumulator.scalar};
  return {accumulator.pieces.begin(), accumulator.pieces.begin() + mode_.pieces};
}

/// The two factors of a sum of products that have no other use: the rounding of a sum is not
/// specified, so it may use fma.
const Operation* Row::summed_product(const Operation& op) const {
  const ValueId in = op.in[0];
  if (op.function != Function::Add || !op.regions.empty() || op.code != Code::Reduce)
    return nullptr;
  if (e_.type(in).dtype != DType::F32 && e_.type(in).dtype != DType::F64) return nullptr;
  if (e_.scheduled.buffer_of[in] >= 0 || !e_.definition[in]) return nullptr;
  const Operation& product = e_.op(*e_.definition[in]);
  return product.code == Code::Map && product.function == Function::Mul ? &product : nullptr;
}

/// Replaces lanes that other vectors compute by the neutral element.
void Row::leave_out_repeated(Pieces& x, llvm::Constant* by) const {
  if (mode_.repeated == 0 || !folds_lanes()) return;
  std::vector<llvm::Constant*> own;
  for (int lane = 0; lane < mode_.width; ++lane)
    own.push_back(e_.ir.getInt1(lane >= mode_.repeated));
  for (llvm::Value*& piece : x)
    piece = e_.ir.CreateSelect(llvm::ConstantVector::get(own), piece, by);
}

void Row::fold(const Root& root, bool first) {
  const Operation& op = e_.op(root.op);
  if (const Operation* product = summed_product(op)) {
    const Accumulator& accumulator = accumulators_[op.out[0]];
    std::vector<Pieces> operands;
    for (const ValueId in : product->in) {
      operands.push_back(spread(evaluate(in, identity())));
      llvm::Type* type = operands.back().front()->getType();
      leave_out_repeated(operands.back(), llvm::Constant::getNullValue(type));
    }
    const std::vector<llvm::AllocaInst*> slots = slots_of(accumulator);
    Pieces sum;
    for (llvm::AllocaInst* slot : slots)
      sum.push_back(e_.ir.CreateLoad(slot->getAllocatedType(), slot));
    operands.push_back(std::move(sum));
    const Pieces next =
        emit_map(e_.ir, Function::Fma, accumulator.dtype, operands, e_.options.precision);
    for (std::size_t i = 0; i < slots.size(); ++i) e_.ir.CreateStore(next[i], slots[i]);
    return;
  }
  std::vector<Pieces> taken, gathered;
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    const Accumulator& accumulator = accumulators_[op.out[i]];
    const DType dtype = e_.type(op.in[i]).dtype;
    Pieces x = spread(evaluate(op.in[i], identity()));
    if (dtype != accumulator.dtype) x = emit_cast(e_.ir, x, dtype, accumulator.dtype);
    if (mode_.repeated > 0 && folds_lanes())
      leave_out_repeated(x, neutral(x.front()->getType(), op.function, accumulator.dtype));
    taken.push_back(std::move(x));
    Pieces old;
    for (llvm::AllocaInst* slot : slots_of(accumulator)) {
      old.push_back(e_.ir.CreateLoad(slot->getAllocatedType(), slot));
    }
    gathered.push_back(std::move(old));
  }
  const std::vector<Pieces> next = first ? taken : combined(op, gathered, taken);
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    const std::vector<llvm::AllocaInst*> slots = slots_of(accumulators_[op.out[i]]);
    for (std::size_t piece = 0; piece < slots.size(); ++piece) {
      e_.ir.CreateStore(next[i][piece], slots[piece]);
    }
    if (root.kind == Root::Kind::Scan) {
      Pieces prefix = next[i];
      const DType dtype = e_.type(op.out[i]).dtype;
      if (dtype != accumulators_[op.out[i]].dtype) {
        prefix = emit_cast(e_.ir, prefix, accumulators_[op.out[i]].dtype, dtype);
      }
      write(dtype,
            buffer_place(e_.scheduled.buffer_of[op.out[i]], dtype, e_.type(op.out[i]).shape,
                         identity()),
            {prefix, false, false});
    }
  }
}

std::vector<Pieces> Row::combined(const Operation& op, const std::vector<Pieces>& left,
                                  const std::vector<Pieces>& right) {
  if (op.regions.empty()) {
    const std::vector<Pieces> both = {left[0], right[0]};
    return {
        emit_map(e_.ir, op.function, accumulators_[op.out[0]].dtype, both, e_.options.precision)};
  }
  // Emits the operations of the region on all pieces at once.
  const tile::Region& region = op.regions[0];
  std::map<ValueId, Lanes> values;
  for (std::size_t i = 0; i < left.size(); ++i) {
    values[region.params[i]] = {left[i], false, false};
    values[region.params[left.size() + i]] = {right[i], false, false};
  }
  const auto operand = [&](ValueId id) -> Lanes {
    if (const auto found = values.find(id); found != values.end()) return found->second;
    return {{e_.scalars[id]}, true, true};
  };
  for (const tile::OpId id : region.ops) {
    const Operation& inner = e_.op(id);
    if (inner.code == Code::Yield) {
      std::vector<Pieces> result;
      for (const ValueId in : inner.in) result.push_back(spread(operand(in)));
      return result;
    }
    if (inner.code == Code::Const) {
      values[inner.out[0]] = {{e_.literal(e_.type(inner.out[0]).dtype, inner.literal)}, true, true};
      continue;
    }
    std::vector<Lanes> operands;
    for (const ValueId in : inner.in) operands.push_back(operand(in));
    values[inner.out[0]] = map(inner, operands);
  }
  return {};
}

/// Horizontal reduction of one vector, by halves.
llvm::Value* Row::across(const Operation& op, llvm::Value* vector, DType dtype) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(vector->getType());
  if (type == nullptr) return vector;
  for (unsigned width = type->getNumElements(); width > 1; width /= 2) {
    std::vector<int> low, high;
    for (unsigned i = 0; i < width / 2; ++i) {
      low.push_back(static_cast<int>(i));
      high.push_back(static_cast<int>(i + width / 2));
    }
    const std::vector<Pieces> halves = {{e_.ir.CreateShuffleVector(vector, low)},
                                        {e_.ir.CreateShuffleVector(vector, high)}};
    vector = emit_map(e_.ir, op.function, dtype, halves, e_.options.precision).front();
  }
  return e_.ir.CreateExtractElement(vector, std::uint64_t{0});
}

void Row::finish_fold(const Operation& op) {
  for (std::size_t which = 0; which < op.out.size(); ++which) {
    const Accumulator& accumulator = accumulators_[op.out[which]];
    Pieces folded;
    for (llvm::AllocaInst* slot : accumulator.pieces) {
      folded.push_back(e_.ir.CreateLoad(slot->getAllocatedType(), slot));
    }
    if (folds_lanes()) {
      const auto both = [&](llvm::Value* a, llvm::Value* b) {
        const std::vector<Pieces> pair = {{a}, {b}};
        return emit_map(e_.ir, op.function, accumulator.dtype, pair, e_.options.precision).front();
      };
      while (folded.size() > 1) {
        Pieces half;
        for (std::size_t i = 0; i + 1 < folded.size(); i += 2)
          half.push_back(both(folded[i], folded[i + 1]));
        if (folded.size() % 2 == 1) half.push_back(folded.back());
        folded = std::move(half);
      }
      llvm::Value* scalar =
          e_.ir.CreateLoad(accumulator.scalar->getAllocatedType(), accumulator.scalar);
      folded = {both(across(op, folded[0], accumulator.dtype), scalar)};
    }
    write_result(op, which, folded);
  }
}

void Row::write_result(const Operation& op, std::size_t which, const Pieces& folded) {
  const ValueId out = op.out[which];
  const DType dtype = e_.type(out).dtype;
  Pieces result = folded;
  if (const DType from = accumulators_[out].dtype; from != dtype) {
    result = emit_cast(e_.ir, result, from, dtype);
  }
  if (e_.type(out).is_scalar()) {
    e_.scalars[out] = result.front();
    return;
  }
  Positions positions = identity();
  positions.erase(positions.begin() + op.ints[0]);
  const bool is_single = lane_ < 0 || folds_lanes();
  write(dtype, buffer_place(e_.scheduled.buffer_of[out], dtype, e_.type(out).shape, positions),
        {result, is_single, false});
}

}  // namespace tessera::codegen
