#include "tessera/codegen/ptx/evaluator.h"

#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <map>

#include "tessera/codegen/ptx/functions.h"
#include "tessera/tile/argument.h"

namespace tessera::codegen::ptx {

using tile::Code;
using tile::Extents;
using tile::Function;

namespace {

/// Whether f32 quotients may be off by 2 ulp: where the kernel has 16-bit floats, of fewer bits,
/// and rounds nothing to integers, which a quotient next to a tie would change by one.
bool allows_fast_quotients(const tile::Kernel& kernel) {
  bool has_half = false, has_rounding = false;
  for (const tile::Value& value : kernel.values) {
    const DType dtype = value.type.dtype;
    has_half = has_half || dtype == DType::F16 || dtype == DType::BF16;
  }
  for (const tile::Operation& op : kernel.ops) {
    const bool to_integer = op.code == Code::Cast && is_float(kernel.type(op.in[0]).dtype) &&
                            !is_float(kernel.type(op.out[0]).dtype);
    const bool whole =
        op.code == Code::Map && (op.function == Function::Floor || op.function == Function::Ceil ||
                                 op.function == Function::Round);
    has_rounding = has_rounding || to_integer || whole;
  }
  return has_half && !has_rounding;
}

/// Comparisons with x + c, an index of a register: with the constant c and the other operand less
/// x, which registers that differ in their constants have in common.
void subtract_indices(llvm::IRBuilderBase& ir, std::vector<Pieces>& operands) {
  constexpr std::int64_t kFar = std::int64_t{1} << 30;  // where saturation changes nothing
  for (std::size_t i = 0; i < operands[0].size(); ++i)
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      llvm::Value *&index = operands[side][i], *&other = operands[1 - side][i];
      auto* const sum = llvm::dyn_cast<llvm::BinaryOperator>(index);
      if (sum == nullptr || sum->getOpcode() != llvm::Instruction::Add || !sum->hasNoSignedWrap() ||
          llvm::isa<llvm::ConstantInt>(other))
        continue;
      auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(sum->getOperand(1));
      if (constant == nullptr || std::abs(constant->getSExtValue()) >= kFar) continue;
      other = ir.CreateBinaryIntrinsic(llvm::Intrinsic::ssub_sat, other, sum->getOperand(0));
      index = constant;
      break;
    }
}

/// Values of which only the results of rounding to 16-bit floats are used.
std::set<tile::ValueId> rounded_to_half(const tile::gpu::PlannedKernel& planned) {
  std::map<tile::ValueId, int> casts;
  tile::for_each_op(planned.kernel, planned.kernel.body, [&](tile::OpId id) {
    const tile::Operation& op = planned.kernel.ops[id];
    if (op.code != Code::Cast) return;
    const DType to = planned.type(op.out[0]).dtype;
    if (to == DType::F16 || to == DType::BF16) ++casts[op.in[0]];
  });
  std::set<tile::ValueId> found;
  for (const auto& [id, count] : casts)
    if (count == planned.uses[id]) found.insert(id);
  return found;
}

}  // namespace

Evaluator::Evaluator(const Context& context)
    : CodeWriter(context),
      fast_quotients_(options_.triton_abi || allows_fast_quotients(kernel_)),
      halves_(rounded_to_half(planned_)) {}

void Evaluator::bind_params() {
  const std::vector<int> positions = tile::word_positions(kernel_);
  llvm::Function& function = block_.function();
  for (std::size_t i = 0; i < kernel_.params().size(); ++i) {
    const ValueId id = kernel_.params()[i];
    const tile::Type& param = type(id);
    const auto word = [&, next = positions[i]]() mutable {
      return static_cast<llvm::Value*>(function.getArg(static_cast<unsigned>(next++)));
    };
    auto next = word;
    if (param.is_view()) {
      View view{.base = next(), .extents = {}, .strides = {}};
      for (const auto& [list, values] :
           {std::pair(&param.shape, &view.extents), std::pair(&param.strides, &view.strides)}) {
        for (const std::int64_t known : *list) {
          llvm::Value* given = next();
          values->push_back(known == tile::kDynamic ? given : block_.i64(known));
        }
      }
      values_.views[id] = std::move(view);
    } else if (param.is_pointer()) {
      define(id, next());
    } else {
      llvm::Type* element = block_.element(param.dtype);
      const unsigned bits = element->getPrimitiveSizeInBits();
      define(id, ir_.CreateBitCast(ir_.CreateTrunc(next(), ir_.getIntNTy(bits)), element));
    }
  }
}

Pieces Evaluator::elementwise(const Operation& op, std::vector<Pieces> operands) {
  const DType from = dtype(op.in[0]), to = dtype(op.out[0]);
  switch (op.code) {
    case Code::Hint: return operands[0];
    case Code::Map: {
      // The first operand of select is a condition: the dtype is that of the others.
      const DType of = op.function == Function::Select ? dtype(op.in[1]) : from;
      const bool exact = op.function == Function::Div && !fast_quotients_;
      if (of == DType::I32 && (op.function == Function::Less || op.function == Function::LessEqual))
        subtract_indices(ir_, operands);
      return emit_function(ir_, op.function, of, operands,
                           exact ? Precision::Exact : options_.precision,
                           halves_.contains(op.out[0]));
    }
    case Code::Cast: return emit_conversion(ir_, operands[0], from, to);
    case Code::Bitcast:
      if (type(op.in[0]).is_pointer() || type(op.out[0]).is_pointer()) return operands[0];
      for (llvm::Value*& value : operands[0]) value = ir_.CreateBitCast(value, block_.element(to));
      return operands[0];
    case Code::Offset: {
      const int width = byte_width(type(op.in[0]).dtype);
      const bool with_sign = is_signed(dtype(op.in[1]));
      for (std::size_t i = 0; i < operands[0].size(); ++i) {
        llvm::Value* elements = ir_.CreateIntCast(operands[1][i], ir_.getInt64Ty(), with_sign);
        operands[0][i] = ir_.CreateAdd(operands[0][i], ir_.CreateMul(elements, block_.i64(width)));
      }
      return operands[0];
    }
    default: break;
  }
  TESSERA_CHECK(false, "'{}' is not elementwise", to_string(op.code));
  return {};
}

llvm::Value* Evaluator::pid(Code code, std::int64_t axis) {
  llvm::Function& function = block_.function();
  if (values_.program != nullptr && axis == 0 && code == Code::Pid) return values_.program;
  if (mapping_.has_program_count() && axis == 0 && code == Code::Npid)
    return function.getArg(static_cast<unsigned>(tile::word_positions(kernel_).back()));
  using namespace llvm::Intrinsic;  // NOLINT(google-build-using-namespace): a table of its names
  constexpr llvm::Intrinsic::ID kRegisters[2][3] = {
      {nvvm_read_ptx_sreg_ctaid_x, nvvm_read_ptx_sreg_ctaid_y, nvvm_read_ptx_sreg_ctaid_z},
      {nvvm_read_ptx_sreg_nctaid_x, nvvm_read_ptx_sreg_nctaid_y, nvvm_read_ptx_sreg_nctaid_z}};
  llvm::Value* number = ir_.CreateZExt(
      block_.intrinsic(kRegisters[code == Code::Npid ? 1 : 0][axis], {}), ir_.getInt64Ty());
  if (mapping_.programs == 1 || axis != 0) return number;
  return ir_.CreateAdd(ir_.CreateMul(number, block_.i64(mapping_.programs)),
                       ir_.CreateZExt(block_.which(), ir_.getInt64Ty()));
}

llvm::Value* Evaluator::kernel_programs() {
  llvm::Value* of_grid = pid(Code::Npid, 0);
  if (mapping_.coarsening == 1) return of_grid;
  return ir_.CreateUDiv(ir_.CreateAdd(of_grid, block_.i64(mapping_.coarsening - 1)),
                        block_.i64(mapping_.coarsening));
}

void Evaluator::define_view(const Operation& op) {
  View view{.base = scalar(op.in[0]), .extents = {}, .strides = {}};
  std::size_t next = 1;
  const tile::Type& made = type(op.out[0]);
  for (const auto& [list, values] :
       {std::pair(&made.shape, &view.extents), std::pair(&made.strides, &view.strides)}) {
    for (const std::int64_t known : *list) {
      values->push_back(known != tile::kDynamic
                            ? block_.i64(known)
                            : ir_.CreateSExt(scalar(op.in[next++]), ir_.getInt64Ty()));
    }
  }
  // Bounds are compared as unsigned numbers: a view that ends before it begins is empty.
  for (llvm::Value*& extent : view.extents)
    extent = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, extent, block_.i64(0));
  values_.views[op.out[0]] = std::move(view);
}

void Evaluator::evaluate(const Operation& op) {
  const ValueId out = op.out[0];
  switch (op.code) {
    case Code::Pid:
    case Code::Npid: return define(out, pid(op.code, op.ints[0]));
    case Code::View: return define_view(op);
    case Code::Dim:
      return define(out, view(op.in[0]).extents[static_cast<std::size_t>(op.ints[0])]);
    case Code::Stride:
      return define(out, view(op.in[0]).strides[static_cast<std::size_t>(op.ints[0])]);
    case Code::Base: return define(out, view(op.in[0]).base);
    case Code::Const: return define(out, constant(type(out), op.literal));
    case Code::Reshape: return define(out, scalar(op.in[0]));
    case Code::Hint:
      if (type(out).is_view()) {
        values_.views[out] = view(op.in[0]);
        return;
      }
      break;
    default: break;
  }
  std::vector<Pieces> operands;
  for (const ValueId in : op.in) operands.push_back({scalar(in)});
  define(out, elementwise(op, std::move(operands)).front());
}

llvm::Value* Evaluator::scalar_at(const Operation& loop, ValueId id, llvm::Value* index) {
  if (id == loop.regions[0].params[0]) return index;
  if (!planned_.is_defined_in(loop, id)) return scalar(id);
  const Operation& op = *planned_.defining_op(id);
  if (op.code == Code::Const) return constant(type(id), op.literal);
  std::vector<Pieces> operands;
  for (const ValueId in : op.in) operands.push_back({scalar_at(loop, in, index)});
  return elementwise(op, std::move(operands)).front();
}

void Evaluator::write(const tile::gpu::Compute& compute) {
  const Operation& op = operation(compute.op);
  if (!compute.layout) return evaluate(op);
  define(op.out[0], *compute.layout, moved(compute));
}

Pieces Evaluator::moved(const tile::gpu::Compute& compute) {
  const Operation& op = operation(compute.op);
  const Layout& layout = *compute.layout;
  const auto count = static_cast<std::size_t>(layout.registers());
  switch (op.code) {
    case Code::Const: return Pieces(count, constant(type(op.out[0]), op.literal));
    case Code::Iota: {
      Pieces registers;
      for (int reg = 0; reg < layout.registers(); ++reg)
        registers.push_back(ir_.CreateZExtOrTrunc(block_.index(layout, 0, reg),
                                                  block_.element(type(op.out[0]).dtype)));
      return registers;
    }
    case Code::Broadcast: {
      const tile::Type& from = type(op.in[0]);
      if (from.is_scalar()) return Pieces(count, scalar(op.in[0]));
      const Pieces source = tile(op.in[0], *compute.source);
      Pieces registers;
      for (int reg = 0; reg < layout.registers(); ++reg) {
        std::size_t index = 0, bit = 0;  // of the remaining register bits
        for (std::size_t i = 0; i < layout.register_bits().size(); ++i) {
          if (from.shape[static_cast<std::size_t>(layout.register_bits()[i].axis)] == 1) continue;
          index |= static_cast<std::size_t>((reg >> i) & 1) << bit++;
        }
        registers.push_back(source[index]);
      }
      return registers;
    }
    case Code::Permute: return tile(op.in[0], *compute.source);
    case Code::Reshape:
      return compute.source ? tile(op.in[0], *compute.source) : Pieces(count, scalar(op.in[0]));
    default: return computed(compute, [&](ValueId in) { return tile(in, layout); });
  }
}

Pieces Evaluator::computed(const tile::gpu::Compute& compute,
                           const std::function<Pieces(ValueId)>& operand) {
  if (const auto& erf = compute.erf) {
    const Pieces of = operand(erf->of);
    if (!erf->factor) return one_plus_erf(ir_, of, erf->scale);
    return times_one_plus_erf(ir_, operand(*erf->factor), of, erf->scale);
  }
  const Operation& op = operation(compute.op);
  std::vector<Pieces> operands;
  for (const ValueId in : op.in) operands.push_back(operand(in));
  return elementwise(op, std::move(operands));
}

}  // namespace tessera::codegen::ptx
