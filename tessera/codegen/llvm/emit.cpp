#include "tessera/codegen/llvm/emit.h"

#include <algorithm>

#include "tessera/codegen/llvm/emitter.h"
#include "tessera/runtime/launch.h"
#include "tessera/tile/argument.h"

namespace tessera::codegen {
namespace {

using tile::Code;
using tile::Type;
using tile::ValueId;
using tile::cpu::Step;

using runtime::kGridWords;

/// Frame of the kernel function: unpacks arguments from their words, loops over programs, emits the
/// steps.
void emit_function(Emitter& e) {
  llvm::LLVMContext& context = e.ir.getContext();
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getInt32Ty(context), {pointer, i64, i64, pointer}, false);
  e.function =
      llvm::Function::Create(type, llvm::Function::ExternalLinkage, kEntrySymbol, *e.module);
  e.function->addFnAttr(llvm::Attribute::NoUnwind);
  // Attributes are set before code is emitted, which depends on them.
  e.function->addFnAttr("target-features", machine::llvm_features(e.machine));
  e.function->getArg(3)->addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(128)));
  e.function->getArg(3)->addAttr(llvm::Attribute::NoAlias);
  llvm::Value* words = e.function->getArg(0);
  e.scratch = e.function->getArg(3);
  e.ir.SetInsertPoint(e.block("entry"));

  const auto word = [&](int i) {
    return e.ir.CreateConstInBoundsGEP1_64(i64, words, static_cast<std::uint64_t>(i));
  };
  const auto load = [&](llvm::Type* of, int i) { return e.ir.CreateLoad(of, word(i)); };
  std::vector<llvm::Value*> grid;
  for (int i = 0; i < static_cast<int>(kGridWords); ++i) grid.push_back(load(i64, i));

  int at = static_cast<int>(kGridWords);
  for (const ValueId param : e.kernel.params()) {
    const Type& t = e.type(param);
    if (t.is_view()) {
      ViewParts view{.base = load(pointer, at++)};
      for (const std::int64_t extent : t.shape) {
        view.shape.push_back(extent == tile::kDynamic ? load(i64, at) : e.index(extent));
        ++at;
      }
      for (const std::int64_t stride : t.strides) {
        view.strides.push_back(stride == tile::kDynamic ? load(i64, at) : e.index(stride));
        ++at;
      }
      e.views[param] = std::move(view);
    } else if (t.is_pointer()) {
      e.scalars[param] = load(pointer, at++);
    } else if (t.dtype == DType::Bool) {
      e.scalars[param] = e.ir.CreateICmpNE(load(i64, at++), e.index(0));
    } else {
      e.scalars[param] = load(e.register_type(t.dtype), at++);
    }
  }
  if (e.options.checked) {
    for (std::size_t i = 0; i < e.kernel.params().size(); ++i, at += 2) {
      e.memory.emplace_back(load(i64, at), load(i64, at + 1));
    }
  }
  for (const auto& buffer : e.scheduled.buffers) {
    e.buffers.push_back(e.ir.CreateConstInBoundsGEP1_64(e.ir.getInt8Ty(), e.scratch,
                                                        static_cast<std::uint64_t>(buffer.offset)));
  }
  e.dot_scratch = e.ir.CreateConstInBoundsGEP1_64(
      e.ir.getInt8Ty(), e.scratch, static_cast<std::uint64_t>(e.scheduled.buffer_bytes));

  e.loop(e.function->getArg(1), e.function->getArg(2), 1, [&](llvm::Value* program) {
    llvm::Value* rest = e.ir.CreateUDiv(program, grid[0]);
    llvm::Value* pid[3] = {e.ir.CreateURem(program, grid[0]), e.ir.CreateURem(rest, grid[1]),
                           e.ir.CreateUDiv(rest, grid[1])};
    tile::for_each_op(e.kernel, e.kernel.body, [&](tile::OpId id) {
      const tile::Operation& op = e.op(id);
      if (op.code == Code::Pid) e.scalars[op.out[0]] = pid[op.ints[0]];
      if (op.code == Code::Npid) e.scalars[op.out[0]] = grid[static_cast<std::size_t>(op.ints[0])];
    });
    e.emit_steps(e.scheduled.steps);
  });
  e.ir.CreateRet(e.ir.getInt32(0));
}

/// Conversion from f32 to bf16, a library function that LLVM calls on x86-64 without bf16
/// instructions: its argument and result are in the first vector register.
void define_narrowing(Emitter& e) {
  const bool has_bf16 = std::ranges::any_of(
      e.kernel.values, [](const auto& value) { return value.type.dtype == DType::BF16; });
  if (e.machine.architecture != machine::Architecture::X86_64 || !has_bf16 ||
      e.machine.has("avx512bf16"))
    return;
  llvm::Type* result = llvm::FixedVectorType::get(e.ir.getInt16Ty(), 8);
  auto* type = llvm::FunctionType::get(result, {e.ir.getFloatTy()}, false);
  auto* function =
      llvm::Function::Create(type, llvm::Function::ExternalLinkage, "__truncsfbf2", *e.module);
  function->setVisibility(llvm::Function::HiddenVisibility);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("target-features", machine::llvm_features(e.machine));
  e.ir.SetInsertPoint(llvm::BasicBlock::Create(e.ir.getContext(), "entry", function));
  llvm::Value* narrow = emit_cast(e.ir, {function->getArg(0)}, DType::F32, DType::BF16).front();
  e.ir.CreateRet(e.ir.CreateInsertElement(llvm::Constant::getNullValue(result),
                                          e.ir.CreateBitCast(narrow, e.ir.getInt16Ty()),
                                          std::uint64_t{0}));
}

}  // namespace

void Emitter::emit_steps(const std::vector<Step>& steps) {
  for (std::size_t at = 0; at < steps.size(); ++at) {
    while (at < steps.size()) {
      const std::size_t next = emit_reduction_loop(steps, at);
      if (next == at) break;
      at = next;
    }
    if (at == steps.size()) break;
    const Step& step = steps[at];
    const tile::Operation* operation = step.kind == Step::Kind::Nest ? nullptr : &op(step.op);
    switch (step.kind) {
      case Step::Kind::Scalar: emit_scalar(step.op); break;
      case Step::Kind::Nest: emit_nest(step.nest); break;
      case Step::Kind::Dot: emit_dot_step(step.dot); break;
      case Step::Kind::For:
      case Step::Kind::While: emit_loop(step); break;
      case Step::Kind::If: {
        std::vector<llvm::AllocaInst*> results;
        for (const ValueId out : operation->out) {
          results.push_back(type(out).is_scalar() ? slot(scalar_type(out)) : nullptr);
        }
        const auto side = [&](std::size_t which) {
          emit_steps(step.bodies[which]);
          const std::vector<ValueId>& yields = op(operation->regions[which].ops.back()).in;
          for (std::size_t i = 0; i < yields.size(); ++i) {
            if (results[i] != nullptr) ir.CreateStore(scalars[yields[i]], results[i]);
          }
        };
        branch(
            scalars[operation->in[0]], [&] { side(0); }, [&] { side(1); });
        for (std::size_t i = 0; i < results.size(); ++i) {
          if (results[i] != nullptr) {
            scalars[operation->out[i]] = ir.CreateLoad(results[i]->getAllocatedType(), results[i]);
          }
        }
        break;
      }
    }
  }
}

/// Loop-carried scalars are stack slots, which become registers; loop-carried tiles are buffers.
void Emitter::emit_loop(const Step& step) {
  const tile::Operation& operation = op(step.op);
  const bool is_for = step.kind == Step::Kind::For;
  const std::size_t fixed = is_for ? 3 : 0, index_params = is_for ? 1 : 0;
  std::vector<llvm::AllocaInst*> slots;
  for (std::size_t i = 0; i < operation.out.size(); ++i) {
    slots.push_back(type(operation.out[i]).is_scalar() ? slot(scalar_type(operation.out[i]))
                                                       : nullptr);
    if (slots[i] != nullptr) ir.CreateStore(scalars[operation.in[i + fixed]], slots[i]);
  }
  const auto enter = [&](const tile::Region& region) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] == nullptr) continue;
      scalars[region.params[i + index_params]] =
          ir.CreateLoad(slots[i]->getAllocatedType(), slots[i]);
    }
  };
  const auto leave = [&](const tile::Region& region) {
    const std::vector<ValueId>& yields = op(region.ops.back()).in;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] != nullptr) ir.CreateStore(scalars[yields[i]], slots[i]);
    }
  };
  llvm::BasicBlock *head = block("head"), *round = block("round"), *after = block("after");
  if (is_for) {
    // A non-positive step or an empty range has no iteration; the count is computed before the loop
    // so that an index near the end of its type never wraps.
    const ValueId param = operation.regions[0].params[0];
    llvm::Value *from = scalars[operation.in[0]], *to = scalars[operation.in[1]],
                *by = scalars[operation.in[2]];
    llvm::Type* i = from->getType();
    const bool natural = is_unsigned(type(operation.in[0]).dtype);
    llvm::Value* runs =
        ir.CreateAnd(natural ? ir.CreateICmpULT(from, to) : ir.CreateICmpSLT(from, to),
                     natural ? ir.CreateICmpNE(by, llvm::ConstantInt::get(i, 0))
                             : ir.CreateICmpSGT(by, llvm::ConstantInt::get(i, 0)));
    llvm::Value* safe = ir.CreateSelect(runs, by, llvm::ConstantInt::get(i, 1));
    llvm::Value* span = ir.CreateSub(to, from);
    llvm::Value* count =
        ir.CreateAdd(ir.CreateUDiv(ir.CreateSub(span, llvm::ConstantInt::get(i, 1)), safe),
                     llvm::ConstantInt::get(i, 1));
    count = ir.CreateSelect(runs, count, llvm::ConstantInt::get(i, 0));
    llvm::BasicBlock* before = ir.GetInsertBlock();
    ir.CreateBr(head);
    ir.SetInsertPoint(head);
    llvm::PHINode* done = ir.CreatePHI(i, 2);
    llvm::PHINode* position = ir.CreatePHI(i, 2);
    done->addIncoming(llvm::ConstantInt::get(i, 0), before);
    position->addIncoming(from, before);
    ir.CreateCondBr(ir.CreateICmpULT(done, count), round, after);
    ir.SetInsertPoint(round);
    scalars[param] = position;
    if (reduction_loop) {
      reduction_loop->is_first = ir.CreateICmpEQ(done, llvm::ConstantInt::get(i, 0));
      reduction_loop->is_last =
          ir.CreateICmpEQ(ir.CreateAdd(done, llvm::ConstantInt::get(i, 1)), count);
    }
    enter(operation.regions[0]);
    emit_steps(step.bodies[0]);
    leave(operation.regions[0]);
    done->addIncoming(ir.CreateAdd(done, llvm::ConstantInt::get(i, 1)), ir.GetInsertBlock());
    position->addIncoming(ir.CreateAdd(position, by), ir.GetInsertBlock());
    ir.CreateBr(head);
  } else {
    ir.CreateBr(head);
    ir.SetInsertPoint(head);
    enter(operation.regions[0]);
    emit_steps(step.bodies[0]);
    ir.CreateCondBr(scalars[op(operation.regions[0].ops.back()).in[0]], round, after);
    ir.SetInsertPoint(round);
    enter(operation.regions[1]);
    emit_steps(step.bodies[1]);
    leave(operation.regions[1]);
    ir.CreateBr(head);
  }
  ir.SetInsertPoint(after);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] != nullptr) {
      scalars[operation.out[i]] = ir.CreateLoad(slots[i]->getAllocatedType(), slots[i]);
    }
  }
}

std::unique_ptr<llvm::Module> emit(const tile::cpu::ScheduledKernel& scheduled,
                                   const machine::Machine& machine, const EmitOptions& options,
                                   llvm::LLVMContext& context) {
  Emitter emitter(scheduled, machine, options, context);
  emit_function(emitter);
  define_narrowing(emitter);
  auto* i64 = llvm::Type::getInt64Ty(context);
  const std::int64_t bytes = scheduled.buffer_bytes + emitter.dot_scratch_bytes;
  new llvm::GlobalVariable(*emitter.module, i64, true, llvm::GlobalValue::ExternalLinkage,
                           llvm::ConstantInt::get(i64, static_cast<std::uint64_t>(bytes)),
                           kScratchSymbol);
  return std::move(emitter.module);
}

}  // namespace tessera::codegen
