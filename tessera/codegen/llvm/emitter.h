#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tessera/codegen/llvm/emit.h"
#include "tessera/tile/passes/linear.h"

namespace tessera::codegen {

/// A view as numbers: constants where its type knows them.
struct ViewParts {
  llvm::Value* base = nullptr;
  std::vector<llvm::Value*> shape = {}, strides = {};
};

/// a + b and a * b without the steps that a 0 or a 1 makes needless: what is not written need not
/// be optimized. (LLVM's folder that does this looks through loops that are not yet whole.)
llvm::Value* sum_of(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b);
llvm::Value* product_of(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b);
/// The smaller and the greater of two integers; a constant, where both are.
llvm::Value* least_of(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b);
llvm::Value* greatest_of(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b);

/// What the parts of the emission of one kernel share: the builder, and what scalars, views and
/// buffers have become.
class Emitter {
 public:
  Emitter(const tile::cpu::Scheduled& scheduled, const machine::Machine& machine,
          const EmitOptions& options, llvm::LLVMContext& context);

  const tile::cpu::Scheduled& scheduled;
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
  std::optional<tile::OpId> turned;  // a load whose tile lies in the buffer that a nest writes

  /// The loop that is being written, where its rounds add up products and the last one stores them.
  struct Rounds {
    const tile::cpu::DotStep* dot = nullptr;
    const tile::Operation* store = nullptr;
    llvm::AllocaInst *ran = nullptr, *stored = nullptr;   // bits: whether one did
    llvm::Value *is_first = nullptr, *is_last = nullptr;  // of the round
  };
  std::optional<Rounds> rounds;

  const tile::Type& type(tile::ValueId id) const { return kernel.type(id); }
  const tile::Operation& op(tile::OpId id) const { return kernel.ops[id]; }
  /// As it is computed with, and as it lies in memory (a bool takes a byte).
  llvm::Type* register_type(DType dtype, int width = 1);
  llvm::Type* memory_type(DType dtype, int width = 1);
  /// Of a number or a pointer.
  llvm::Type* scalar_type(tile::ValueId id);
  llvm::Value* index(std::int64_t value) { return ir.getInt64(static_cast<std::uint64_t>(value)); }
  llvm::Constant* literal(DType dtype, const tile::Literal& literal);
  /// An integer scalar as i64.
  llvm::Value* as_index(llvm::IRBuilderBase& at, tile::ValueId id);

  /// Of one element or a vector; in a buffer, if it is not -1.
  llvm::Value* load(llvm::IRBuilderBase& at, DType dtype, llvm::Value* pointer, int width = 1,
                    int buffer = -1);
  void store(llvm::IRBuilderBase& at, DType dtype, llvm::Value* pointer, llvm::Value* x,
             int buffer = -1);
  /// A place for a value that loops change; in the function's first block.
  llvm::AllocaInst* slot(llvm::Type* type);

  /// for (i = from; i < to; i += step) body(i), where `to` may be less than `from`.
  void loop(llvm::Value* from, llvm::Value* to, std::int64_t step,
            const std::function<void(llvm::Value*)>& body);
  void branch(llvm::Value* condition, const std::function<void()>& then,
              const std::function<void()>& otherwise = {});
  /// In debug mode: leaves the kernel unless the condition holds.
  void check(llvm::Value* condition, tile::OpId op);
  void check_address(llvm::Value* pointer, std::int64_t bytes, tile::OpId op);

  /// How much larger an integer is in the next program along axis 0, where that is a fixed number.
  std::int64_t per_program(tile::ValueId id);

  llvm::BasicBlock* block(const char* name);

  // The parts, one source each.
  void emit_steps(const std::vector<tile::cpu::Step>& steps);
  void emit_loop(const tile::cpu::Step& step);
  /// The steps from one on that add up products and store them, if such begin there; returns the
  /// next step.
  std::size_t emit_rounds(const std::vector<tile::cpu::Step>& steps, std::size_t at);
  void emit_scalar(tile::OpId id);
  /// A nest, from a position of its lane axis on.
  void emit_nest(const tile::cpu::Nest& nest, std::int64_t first = 0);
  void emit_rows(const tile::cpu::Nest& nest, std::int64_t first);
  void emit_dot_step(const tile::cpu::DotStep& step);
  /// A tile of one element as a scalar.
  llvm::Value* only_element(tile::ValueId id);
  /// A read-modify-write, scalar by scalar.
  llvm::Value* emit_atomic(const tile::Operation& op, llvm::Value* pointer, llvm::Value* x);
  llvm::Value* emit_cas(llvm::Value* pointer, llvm::Value* expected, llvm::Value* x);
  llvm::Value* emit_scalar_load(const tile::Operation& op, tile::OpId id, llvm::Value* pointer,
                                llvm::Value* mask, llvm::Value* other);

 private:
  /// Lets LLVM know that accesses to different buffers never meet.
  void mark(llvm::Instruction* access, int buffer);

  std::optional<tile::LinearForms> forms_;  // of the scalars; made when first asked for
};

}  // namespace tessera::codegen
