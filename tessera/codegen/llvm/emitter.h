#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tessera/codegen/llvm/emit.h"
#include "tessera/tile/passes/affine_scalars.h"

namespace tessera::codegen {

/// Run-time representation of a view in LLVM IR: constants where its type is static.
struct ViewParts {
  llvm::Value* base = nullptr;
  std::vector<llvm::Value*> shape = {}, strides = {};
};

/// Addition and multiplication that fold 0 and 1 when they are emitted, so that less code has to be
/// optimized. (LLVM's folder that does this looks through loops that are not yet complete.)
llvm::Value* sum_of(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b);
llvm::Value* product_of(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b);
/// Minimum and maximum of two integers; constants where both are.
llvm::Value* least_of(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b);
llvm::Value* greatest_of(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b);

/// Code generator of one CPU kernel: state that all parts share, that is the IRBuilder and the LLVM
/// values of scalars, views and buffers.
class Emitter {
 public:
  Emitter(const tile::cpu::ScheduledKernel& scheduled, const machine::Machine& machine,
          const EmitOptions& options, llvm::LLVMContext& context);

  const tile::cpu::ScheduledKernel& scheduled;
  const tile::Kernel& kernel;
  const machine::Machine& machine;
  EmitOptions options;
  std::vector<std::optional<tile::OpId>> definition;
  std::unique_ptr<llvm::Module> module;
  llvm::IRBuilder<> ir;
  llvm::Function* function = nullptr;
  llvm::Value *scratch = nullptr, *dot_scratch = nullptr;
  std::vector<llvm::Value*> buffers;  // their addresses
  std::vector<llvm::Value*> scalars;  // by value; null where there is none
  std::unordered_map<tile::ValueId, ViewParts> views;
  std::vector<std::pair<llvm::Value*, llvm::Value*>>
      memory;  // first and last address, in debug mode
  std::int64_t dot_scratch_bytes = 0;
  std::optional<tile::OpId>
      turned;  // a load whose tile is transposed into the buffer that a nest writes

  /// Reduction loop that is being emitted, where iterations accumulate a dot and the last one
  /// stores it.
  struct ReductionLoop {
    const tile::cpu::DotStep* dot = nullptr;
    const tile::Operation* store = nullptr;
    llvm::AllocaInst *ran = nullptr,
                     *stored = nullptr;  // i1: whether an iteration ran, and whether it stored
    llvm::Value *is_first = nullptr, *is_last = nullptr;  // of the current iteration
  };
  std::optional<ReductionLoop> reduction_loop;

  const tile::Type& type(tile::ValueId id) const { return kernel.type(id); }
  const tile::Operation& op(tile::OpId id) const { return kernel.ops[id]; }
  /// Type in a register, and in memory (a bool is a byte).
  llvm::Type* register_type(DType dtype, int width = 1);
  llvm::Type* memory_type(DType dtype, int width = 1);
  /// Type of a number or a pointer.
  llvm::Type* scalar_type(tile::ValueId id);
  llvm::Value* index(std::int64_t value) { return ir.getInt64(static_cast<std::uint64_t>(value)); }
  llvm::Constant* literal(DType dtype, const tile::Literal& literal);
  /// Integer scalar as i64.
  llvm::Value* as_index(llvm::IRBuilderBase& at, tile::ValueId id);

  /// Load and store of one element or a vector; `buffer` for alias information, -1: a view.
  llvm::Value* load(llvm::IRBuilderBase& at, DType dtype, llvm::Value* pointer, int width = 1,
                    int buffer = -1);
  void store(llvm::IRBuilderBase& at, DType dtype, llvm::Value* pointer, llvm::Value* x,
             int buffer = -1);
  /// Stack slot for a variable, in the function's entry block.
  llvm::AllocaInst* slot(llvm::Type* type);

  /// Emits for (i = from; i < to; i += step) body(i), where `to` may be less than `from`.
  void loop(llvm::Value* from, llvm::Value* to, std::int64_t step,
            const std::function<void(llvm::Value*)>& body);
  void branch(llvm::Value* condition, const std::function<void()>& then,
              const std::function<void()>& otherwise = {});
  /// Debug mode: returns from the kernel with an error unless the condition holds.
  void check(llvm::Value* condition, tile::OpId op);
  void check_address(llvm::Value* pointer, std::int64_t bytes, tile::OpId op);

  /// Increment of an integer from one program to the next along axis 0, where that is constant.
  std::int64_t per_program(tile::ValueId id);

  llvm::BasicBlock* block(const char* name);

  // Parts of code generation, one source file each.
  void emit_steps(const std::vector<tile::cpu::Step>& steps);
  void emit_loop(const tile::cpu::Step& step);
  /// Emits a reduction loop with a dot and the store of its result, if such steps begin at `at`;
  /// returns the index of the next step.
  std::size_t emit_reduction_loop(const std::vector<tile::cpu::Step>& steps, std::size_t at);
  void emit_scalar(tile::OpId id);
  /// Emits a nest, from a position of its lane axis on.
  void emit_nest(const tile::cpu::Nest& nest, std::int64_t first = 0);
  void emit_rows(const tile::cpu::Nest& nest, std::int64_t first);
  void emit_dot_step(const tile::cpu::DotStep& step);
  /// Scalar value of a tile of one element.
  llvm::Value* only_element(tile::ValueId id);
  /// Atomic read-modify-write of one element.
  llvm::Value* emit_atomic(const tile::Operation& op, llvm::Value* pointer, llvm::Value* x);
  llvm::Value* emit_cas(llvm::Value* pointer, llvm::Value* expected, llvm::Value* x);
  llvm::Value* emit_scalar_load(const tile::Operation& op, tile::OpId id, llvm::Value* pointer,
                                llvm::Value* mask, llvm::Value* other);

 private:
  /// Alias metadata: accesses to different buffers never overlap.
  void mark(llvm::Instruction* access, int buffer);

  std::optional<tile::AffineScalars> forms_;  // affine forms of the scalars; computed on first use
};

}  // namespace tessera::codegen
