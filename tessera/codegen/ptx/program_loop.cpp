#include "tessera/codegen/ptx/program_loop.h"

namespace tessera::codegen::ptx {

void ProgramLoopWriter::for_programs(const ProgramRange& programs,
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
  program->addIncoming(ir_.CreateAdd(program, programs.step), ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
}

}  // namespace tessera::codegen::ptx
