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
    packed_.clear();
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

void Emitter::keep_packed(ValueId id, const Packed& packed) {
  if (!shape_.packed || byte_width(packed.dtype) != 2 || packed.run < 2) return;
  packed_.insert_or_assign(id, packed);
}

void Emitter::unpack_again() {
  for (auto& [id, packed] : packed_) {
    // The compiler of PTX would keep what it has unpacked before, if it knew that this is the same:
    // the first bit of an address is 0, but it cannot know.
    llvm::Value* zero =
        ir_.CreateTrunc(ir_.CreateLShr(packed.base, block_.i64(63)), ir_.getInt32Ty());
    Pieces registers;
    for (llvm::Value*& run : packed.runs) {
      llvm::Value* zeros = zero;
      if (const auto* words = llvm::dyn_cast<llvm::FixedVectorType>(run->getType()))
        zeros = ir_.CreateVectorSplat(words->getNumElements(), zero);
      run = ir_.CreateOr(run, zeros);
      for (llvm::Value* value : block_.unpack(run, packed.dtype, packed.run))
        registers.push_back(value);
    }
    define(id, packed.layout, std::move(registers));
  }
  for (const tile::OpId id : kernel_.body.ops) {
    const Operation& op = kernel_.ops[id];
    if (op.code != Code::Cast || packed_.count(op.in[0]) == 0) continue;
    const Layout layout = home(op.out[0]);
    if (tiles_.count({op.out[0], layout}) == 0) continue;
    define(op.out[0], layout, computed(op, [&](ValueId in) { return tile(in, layout); }));
  }
}

}  // namespace tessera::codegen::ptx
