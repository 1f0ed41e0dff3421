#include "tessera/codegen/ptx/block_writer.h"

#include <type_traits>
#include <utility>

namespace tessera::codegen::ptx {

namespace gpu = tile::gpu;

BlockWriter::BlockWriter(const gpu::ScheduledKernel& scheduled, const PtxOptions& options,
                         llvm::Function& function)
    : scheduled_(scheduled),
      block_(function, scheduled.plan->threads(),
             scheduled.mapping.programs > 1 ? std::optional(scheduled.program.shared.own_bytes)
                                            : std::nullopt),
      context_{scheduled, options, block_, values_},
      facts_(scheduled.planned->kernel, options),
      evaluator_(context_),
      moves_(context_),
      reductions_(context_, evaluator_),
      scans_(context_, reductions_),
      views_(context_, facts_),
      pointers_(context_, facts_),
      stores_(context_, evaluator_, views_),
      matmuls_(context_),
      bounds_(context_),
      copies_(context_, evaluator_, bounds_),
      loops_(context_, bounds_, copies_, *this),
      rows_(context_, evaluator_, views_, reductions_, *this),
      persistent_(context_, evaluator_, views_, *this),
      specialized_(context_, {evaluator_, bounds_, copies_, loops_, *this}),
      pipelines_(context_, evaluator_, copies_, *this) {
  values_.scalars.resize(scheduled.planned->kernel.values.size(), nullptr);
}

void BlockWriter::check_program() {
  llvm::IRBuilder<>& ir = block_.ir;
  llvm::BasicBlock *inside = block_.block("inside"), *end = block_.block("end");
  llvm::Value* count = evaluator_.kernel_programs();
  ir.CreateCondBr(ir.CreateICmpULT(evaluator_.pid(tile::Code::Pid, 0), count), inside, end);
  ir.SetInsertPoint(end);
  ir.CreateRetVoid();
  ir.SetInsertPoint(inside);
}

void BlockWriter::write() {
  evaluator_.bind_params();
  if (scheduled_.mapping.persistent && !scheduled_.mapping.warp_specialized) {
    persistent_.begin();
  } else if (scheduled_.mapping.programs > 1 && !scheduled_.mapping.warp_specialized) {
    check_program();
  }
  write(scheduled_.program.body);
  block_.ir.CreateRetVoid();
}

namespace {

template <class One>
constexpr bool kIsWrittenHere =
    std::is_same_v<One, gpu::Barrier> || std::is_same_v<One, gpu::LaunchDependents> ||
    std::is_same_v<One, gpu::AwaitGrids> || std::is_same_v<One, gpu::Yield>;

/// The writer that has a method for the instruction.
template <class One, class First, class... Rest>
void write_by(const One& one, First& first, Rest&... rest) {
  if constexpr (requires { first.write(one); }) {
    first.write(one);
  } else {
    write_by(one, rest...);
  }
}

}  // namespace

Pieces BlockWriter::write(const gpu::Body& body) {
  for (const gpu::Instruction& instruction : body) {
    if (std::holds_alternative<gpu::Barrier>(instruction)) {
      block_.barrier();
    } else if (std::holds_alternative<gpu::LaunchDependents>(instruction)) {
      block_.special("grid.launch_dependents", {});
    } else if (std::holds_alternative<gpu::AwaitGrids>(instruction)) {
      block_.special("grid.await", {});
    } else if (const auto* yield = std::get_if<gpu::Yield>(&instruction)) {
      yielded_ = loops_.yielded(*yield);
    } else {
      std::visit(
          [&]<class One>(const One& one) {
            if constexpr (!kIsWrittenHere<One>)
              write_by(one, evaluator_, moves_, reductions_, scans_, views_, pointers_, stores_,
                       matmuls_, loops_, rows_, persistent_, specialized_, pipelines_);
          },
          static_cast<const gpu::AnyInstruction&>(instruction));
    }
  }
  return std::exchange(yielded_, {});
}

}  // namespace tessera::codegen::ptx
