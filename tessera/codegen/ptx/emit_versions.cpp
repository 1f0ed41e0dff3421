#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"

namespace tessera::codegen::ptx {

using tile::Code;
using tile::gpu::ProgramDependence;

const KnownAccess* Emitter::known_access_of(const Operation& op) const {
  const auto found =
      std::find_if(known_accesses_.begin(), known_accesses_.end(),
                   [&](const auto& item) { return &kernel_.ops[item.first] == &op; });
  return found == known_accesses_.end() ? nullptr : &found->second;
}

void Emitter::by_versions() {
  dependences_ = tile::gpu::program_dependences(kernel_);
  std::set<tile::OpId> done = arithmetic(ProgramDependence::Uniform);
  done.merge(arithmetic(ProgramDependence::Varying));
  llvm::Value* all = nullptr;
  const auto accesses = known_accesses(planned_, dependences_);
  for (const auto& [id, known] : accesses) {
    const Operation& op = kernel_.ops[id];
    if (known.constant)
      all = block_.both(all, ir_.CreateICmpUGT(pid(Code::Npid, 0), block_.i64(1)));
    if (known.aligned()) all = block_.both(all, is_aligned(op, known.run));
    for (std::size_t axis = 0; axis < known.inside.size(); ++axis) {
      if (!known.inside[axis]) continue;
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
    known_accesses_ = {accesses.begin(), accesses.end()};
    version();
    known_accesses_.clear();
    ir_.SetInsertPoint(slow);
  }
  version();
}

void Emitter::keep_packed(ValueId id, const Packed& packed) {
  if (!mapping_.packed || byte_width(packed.dtype) != 2 || packed.run < 2) return;
  packed_.insert_or_assign(id, packed);
}

void Emitter::unpack_again() {
  for (auto& [id, packed] : packed_) {
    // Hides from ptxas that the unpacked values are known, so that it does not keep them in
    // registers: adds the lowest bit of an address, which is 0.
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
