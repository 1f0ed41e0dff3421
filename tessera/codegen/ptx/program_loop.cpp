#include "tessera/codegen/ptx/program_loop.h"

namespace tessera::codegen::ptx {

void ProgramLoopWriter::for_programs(const ProgramRange& programs,
                                     const std::function<void()>& body) {
  for_programs(
      programs, [&] { return programs.step; }, body);
}

void ProgramLoopWriter::for_programs(const ProgramRange& programs,
                                     const std::function<llvm::Value*()>& step,
                                     const std::function<void()>& body) {
  llvm::BasicBlock *before = ir_.GetInsertBlock(), *header = block_.block("programs"),
                   *inside = block_.block("program"), *after = block_.block("end");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  llvm::PHINode* program = ir_.CreatePHI(ir_.getInt64Ty(), 2);
  program->addIncoming(programs.first, before);
  ir_.CreateCondBr(ir_.CreateICmpSLT(program, programs.count), inside, after);
  ir_.SetInsertPoint(inside);
  values_.program = program;
  body();
  values_.program = nullptr;
  program->addIncoming(ir_.CreateAdd(program, step()), ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
}

void ProgramLoopWriter::end_idle_producers(llvm::Value* mapped) {
  llvm::BasicBlock *some = block_.block("some"), *idle = block_.block("idle");
  llvm::Value* first = ir_.CreateICmpEQ(block_.thread(), block_.i32(0));
  ir_.CreateCondBr(ir_.CreateOr(ir_.CreateNot(mapped), first), some, idle);
  ir_.SetInsertPoint(idle);
  ir_.CreateRetVoid();
  ir_.SetInsertPoint(some);
}

}  // namespace tessera::codegen::ptx
