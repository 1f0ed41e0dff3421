#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"

namespace tessera::codegen::ptx {

using tile::Code;
using tile::gpu::ByProgram;

const Sure* Emitter::sure_of(const Operation& op) const {
  const auto found = std::find_if(sure_.begin(), sure_.end(), [&](const auto& item) {
    return &kernel_.ops[item.first] == &op;
  });
  return found == sure_.end() ? nullptr : &found->second;
}

void Emitter::by_versions() {
  courses_ = tile::gpu::courses_of(kernel_);
  std::set<tile::OpId> done = arithmetic(ByProgram::Same);
  done.merge(arithmetic(ByProgram::Differs));
  llvm::Value* all = nullptr;
  const auto accesses = sure_accesses(planned_, courses_);
  for (const auto& [id, sure] : accesses) {
    const Operation& op = kernel_.ops[id];
    if (sure.constant) all = block_.both(all, ir_.CreateICmpUGT(pid(Code::Npid, 0), block_.i64(1)));
    if (sure.aligned()) all = block_.both(all, is_aligned(op, sure.run));
    for (std::size_t axis = 0; axis < sure.inside.size(); ++axis) {
      if (!sure.inside[axis]) continue;
      llvm::Value* at = ir_.CreateSExt(scalar(op.in[1 + axis]), ir_.getInt64Ty());
      all = block_.both(all, ir_.CreateICmpULT(at, view(op.in[0]).extents[axis]));
    }
  }
  const auto version = [&] {
    const std::vector<llvm::Value*> scalars = scalars_;
    open_scope();
    for (const tile::OpId id : kernel_.body.ops) {
      if (error_) break;
      if (done.count(id) == 0) operation(kernel_.ops[id]);
    }
    close_scope();
    accesses_.clear();
    scalars_ = scalars;
    ir_.CreateRetVoid();
  };
  if (all != nullptr) {
    llvm::BasicBlock *fast = block_.block("fast"), *slow = block_.block("slow");
    ir_.CreateCondBr(all, fast, slow);
    ir_.SetInsertPoint(fast);
    sure_ = {accesses.begin(), accesses.end()};
    version();
    sure_.clear();
    ir_.SetInsertPoint(slow);
  }
  version();
}

}  // namespace tessera::codegen::ptx
