#include <fmt/format.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "tessera/codegen/ptx/emitter.h"
#include "tessera/codegen/ptx/erf_pattern.h"
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

}  // namespace

Emitter::Emitter(const tile::gpu::ScheduledKernel& scheduled, const PtxOptions& options,
                 llvm::Function& function)
    : planned_(*scheduled.planned),
      kernel_(planned_.kernel),
      plan_(planned_.plan),
      options_(options),
      mapping_(scheduled.mapping),
      block_(function, plan_.threads(), mapping_.programs > 1),
      ir_(block_.ir),
      definitions_(planned_.definitions),
      uses_(planned_.uses),
      scalars_(kernel_.values.size(), nullptr),
      stages_(mapping_.stages),
      fast_quotients_(options.triton_abi || allows_fast_quotients(kernel_)) {
  if (mapping_.warp_specialized)
    specialization_ = WarpSpecialization{*scheduled.warp_specialization};
  if (!mapping_.rows) find_epilogues(kernel_.body);  // rows are in registers as a whole
}

Expected<Done> Emitter::emit() {
  open_scope();
  bind_params();
  if (mapping_.warp_specialized) {
    emit_warp_specialized(pid(Code::Npid, 0));
    if (error_) return *error_;
    return Done{};
  }
  if (mapping_.persistent) {
    each_program(kernel_programs());
    if (error_) return *error_;
    return Done{};
  }
  if (mapping_.programs > 1) {
    // Warps beyond the end of the grid exit.
    llvm::BasicBlock *inside = block_.block("inside"), *end = block_.block("end");
    ir_.CreateCondBr(ir_.CreateICmpULT(pid(Code::Pid, 0), kernel_programs()), inside, end);
    ir_.SetInsertPoint(end);
    ir_.CreateRetVoid();
    ir_.SetInsertPoint(inside);
  }
  if (mapping_.cut != nullptr) {
    by_passes();
  } else if (mapping_.rows) {
    by_versions();
  } else {
    region(kernel_.body);
    ir_.CreateRetVoid();
  }
  if (error_) return *error_;
  return Done{};
}

void Emitter::fail(const Operation& op, const std::string& message) {
  if (error_) return;
  const std::string line =
      op.source.line > 0 ? fmt::format("line {}", op.source.line) : kernel_.name;
  error_ = Diagnostic{.id = "ptx-unsupported",
                      .where = {.file = op.source.file, .item = line},
                      .message = message,
                      .note = "the GPU backend does not know it"};
}

DType Emitter::dtype(ValueId id) const {
  return type(id).is_pointer() ? DType::U64 : type(id).dtype;
}

Layout Emitter::home(ValueId id) const {
  return planned_.home(id);
}

void Emitter::bind_params() {
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
      views_[id] = std::move(view);
    } else if (param.is_pointer()) {
      define(id, next());
    } else {
      llvm::Type* element = block_.element(param.dtype);
      const unsigned bits = element->getPrimitiveSizeInBits();
      define(id, ir_.CreateBitCast(ir_.CreateTrunc(next(), ir_.getIntNTy(bits)), element));
    }
  }
}

void Emitter::define(ValueId id, const Layout& layout, Pieces registers) {
  if (type(id).is_scalar()) {
    scalars_[id] = registers.front();
    return;
  }
  if (tiles_.insert_or_assign({id, layout}, std::move(registers)).second)
    scopes_.back().emplace_back(id, layout);
}

void Emitter::close_scope() {
  for (const auto& key : scopes_.back()) tiles_.erase(key);
  scopes_.pop_back();
}

Pieces Emitter::tile(ValueId id, const Layout& layout) {
  if (type(id).is_scalar())
    return Pieces(static_cast<std::size_t>(layout.registers()), scalars_[id]);
  wait_for(id);
  if (const auto found = tiles_.find({id, layout}); found != tiles_.end()) return found->second;
  Pieces registers;
  if (const std::optional<Layout>& home = plan_.home(id)) {
    if (is_in_epilogue(id) && tiles_.count({id, *home}) == 0) {
      define(id, *home, made(id, *home));
      return tile(id, layout);
    }
    registers = block_.convert(tiles_.at({id, *home}), dtype(id), *home, layout);
  } else {
    registers = made(id, layout);
  }
  define(id, layout, registers);
  return registers;
}

llvm::Value* Emitter::constant(const tile::Type& type, const tile::Literal& literal) {
  llvm::Type* element = block_.element(type.dtype);
  if (is_float(type.dtype)) return llvm::ConstantFP::get(element, literal.number);
  return llvm::ConstantInt::get(element, static_cast<std::uint64_t>(literal.integer));
}

Pieces Emitter::made(ValueId id, const Layout& layout) {
  const Operation& op = kernel_.ops[*definitions_[id]];
  const auto count = static_cast<std::size_t>(layout.registers());
  switch (op.code) {
    case Code::Const: return Pieces(count, constant(type(id), op.literal));
    case Code::Iota: {
      Pieces registers;
      for (int reg = 0; reg < layout.registers(); ++reg)
        registers.push_back(
            ir_.CreateZExtOrTrunc(block_.index(layout, 0, reg), block_.element(type(id).dtype)));
      return registers;
    }
    case Code::Broadcast: {
      const tile::Type& from = type(op.in[0]);
      if (from.is_scalar()) return tile(op.in[0], layout);
      Layout narrow = layout;
      for (int axis = 0; axis < from.rank(); ++axis)
        if (from.shape[static_cast<std::size_t>(axis)] == 1) narrow = narrow.collapsed(axis);
      const Pieces source = tile(op.in[0], narrow);
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
    case Code::Permute: {
      std::vector<std::int64_t> back(op.ints.size());
      for (std::size_t i = 0; i < op.ints.size(); ++i)
        back[static_cast<std::size_t>(op.ints[i])] = static_cast<std::int64_t>(i);
      return tile(op.in[0], layout.permuted(back));
    }
    case Code::Reshape: {
      if (type(op.in[0]).is_scalar()) return Pieces(count, scalar(op.in[0]));
      const Extents &from = type(op.in[0]).shape, &to = type(id).shape;
      if (const auto source = reshaped(layout, to, from)) return tile(op.in[0], *source);
      const Layout standard = plan_.standard(to);
      const auto source = reshaped(standard, to, from);
      TESSERA_CHECK(source.has_value(), "a reshape without a home must be followed back");
      return block_.convert(tile(op.in[0], *source), dtype(id), standard, layout);
    }
    default: break;
  }
  return computed(op, [&](ValueId in) { return tile(in, layout); });
}

Pieces Emitter::computed(const Operation& op, const std::function<Pieces(ValueId)>& operand) {
  const ErfPattern erf{kernel_, definitions_, options_.precision};
  if (const auto x = erf.plus_one(op)) return one_plus_erf(ir_, operand(x->of), x->scale);
  if (const auto found = erf.times_plus_one(op))
    return times_one_plus_erf(ir_, operand(found->factor), operand(found->erf.of),
                              found->erf.scale);
  std::vector<Pieces> operands;
  for (const ValueId in : op.in) operands.push_back(operand(in));
  return elementwise(op, std::move(operands));
}

Pieces Emitter::elementwise(const Operation& op, std::vector<Pieces> operands) {
  const DType from = dtype(op.in[0]), to = dtype(op.out[0]);
  switch (op.code) {
    case Code::Hint: return operands[0];
    case Code::Map: {
      // The first operand of select is a condition: the dtype is that of the others.
      const DType of = op.function == Function::Select ? dtype(op.in[1]) : from;
      const bool exact = op.function == Function::Div && !fast_quotients_;
      return emit_function(ir_, op.function, of, operands,
                           exact ? Precision::Exact : options_.precision);
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
    default: fail(op, fmt::format("'{}' is not supported here", to_string(op.code)));
  }
  return Pieces(operands.empty() ? 1 : operands[0].size(),
                llvm::PoisonValue::get(block_.element(to)));
}

llvm::Value* Emitter::pid(Code code, std::int64_t axis) {
  llvm::Function& function = block_.function();
  if (program_ != nullptr && axis == 0 && code == Code::Pid) return program_;
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

llvm::Value* Emitter::kernel_programs() {
  llvm::Value* of_grid = pid(Code::Npid, 0);
  if (mapping_.coarsening == 1) return of_grid;
  return ir_.CreateUDiv(ir_.CreateAdd(of_grid, block_.i64(mapping_.coarsening - 1)),
                        block_.i64(mapping_.coarsening));
}

void Emitter::region(const tile::Region& region) {
  for (const tile::OpId id : region.ops) {
    if (error_) return;
    operation(kernel_.ops[id]);
  }
}

void Emitter::operation(const Operation& op) {
  if (op.code != Code::Reduce) finish_folds();
  switch (op.code) {
    case Code::Pid:
    case Code::Npid: return define(op.out[0], pid(op.code, op.ints[0]));
    case Code::Reduce: return reduce(op);
    case Code::Scan: return scan(op);
    case Code::Gather: return gather(op);
    case Code::Concat: return concat(op);
    case Code::Slice: return slice(op);
    case Code::Dot: return dot(op);
    case Code::Load: return load(op);
    case Code::Store: return store(op);
    case Code::Vload: return vload(op);
    case Code::Vstore: return vstore(op);
    case Code::Atomic:
    case Code::Cas: return atomic(op);
    case Code::For: return loop(op);
    case Code::While: return while_loop(op);
    case Code::If: return branch(op);
    case Code::View: {
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
      views_[op.out[0]] = std::move(view);
      return;
    }
    case Code::Dim:
      return define(op.out[0], view(op.in[0]).extents[static_cast<std::size_t>(op.ints[0])]);
    case Code::Stride:
      return define(op.out[0], view(op.in[0]).strides[static_cast<std::size_t>(op.ints[0])]);
    case Code::Base: return define(op.out[0], view(op.in[0]).base);
    case Code::Hint:
      if (type(op.out[0]).is_view()) {
        views_[op.out[0]] = view(op.in[0]);
        return;
      }
      break;
    case Code::Barrier: block_.barrier(); return;
    case Code::Print: return fail(op, "'print' has no place to print to");
    case Code::Yield:
    case Code::Assume:
    case Code::Assert: return;
    default: break;
  }
  // All other operations are elementwise, or free.
  const ValueId out = op.out[0];
  if (type(out).is_scalar()) {
    if (op.code == Code::Const) return define(out, constant(type(out), op.literal));
    if (op.code == Code::Reshape) return reshape(op);
    std::vector<Pieces> operands;
    for (const ValueId in : op.in) operands.push_back({scalar(in)});
    return define(out, elementwise(op, std::move(operands)).front());
  }
  if (!plan_.home(out) || is_in_epilogue(out)) return;  // rematerialized at its uses
  if (names_shared(op)) return;
  if (op.code == Code::Reshape) return reshape(op);
  if (op.code == Code::Permute && plan_.home(op.in[0]) &&
      plan_.home(op.in[0])->permuted(op.ints) == home(out))
    return define(out, home(out), tile_at_home(op.in[0]));
  define(out, home(out), made(out, home(out)));
}

}  // namespace tessera::codegen::ptx
