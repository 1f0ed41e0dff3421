#include "tessera/codegen/ptx/persistent_writer.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

namespace tessera::codegen::ptx {

using tile::Code;

void PersistentWriter::begin() {
  llvm::Value* count = evaluator_.kernel_programs();
  programs_ = {.count = count, .first = evaluator_.pid(Code::Pid, 0)};
  llvm::Value* blocks = block_.intrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, {});
  programs_.step =
      ir_.CreateMul(ir_.CreateZExt(blocks, ir_.getInt64Ty()), block_.i64(mapping_.programs));
}

llvm::Value* PersistentWriter::further(llvm::Value* program, int count) {
  return ir_.CreateAdd(program, ir_.CreateMul(programs_.step, block_.i64(count)));
}

llvm::Value* PersistentWriter::own_slot(const tile::gpu::PrefetchBuffer& buffer, const Place& place,
                                        int reg) {
  const std::int64_t line = block_.threads() * kChunk;
  llvm::Value* at = ir_.CreateAdd(ir_.CreateMul(block_.thread(), block_.i32(kChunk)),
                                  block_.i32(buffer.offset + reg / place.run * line));
  if (!buffer.is_fixed && values_.slot != nullptr)
    at = ir_.CreateAdd(at, ir_.CreateMul(values_.slot, block_.i32(buffer.slot)));
  return block_.shared(at);
}

void PersistentWriter::write(const tile::gpu::PrefetchLoad& prefetch) {
  const Place& place = views_.place_of(prefetch.op);
  const auto chunks = [&] {
    for (int reg = 0; reg < place.layout.registers(); reg += place.run) {
      llvm::Value* target = own_slot(prefetch.buffer, place, reg);
      llvm::Value* from = global(views_.address(place, reg));
      if (llvm::Value* inside = views_.within(place, reg)) {
        block_.intrinsic(
            llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s,
            {target, from, ir_.CreateSelect(inside, block_.i32(kChunk), block_.i32(0))});
      } else {
        block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16, {target, from});
      }
    }
    return Pieces{};
  };
  const auto elements = [&] {
    for (int reg = 0; reg < place.layout.registers(); reg += place.run)
      ir_.CreateAlignedStore(views_.loaded_run(place, reg, 1, nullptr),
                             own_slot(prefetch.buffer, place, reg), llvm::Align(kChunk));
    return Pieces{};
  };
  either(place.aligned, chunks, elements);
}

void PersistentWriter::write(const tile::gpu::TakePrefetched& take) {
  const Place& place = views_.place_of(take.op);
  Pieces registers, runs;
  for (int reg = 0; reg < place.layout.registers(); reg += place.run) {
    llvm::Value* packed =
        ir_.CreateAlignedLoad(block_.packed_type(place.dtype, place.run),
                              own_slot(take.buffer, place, reg), llvm::Align(kChunk));
    runs.push_back(packed);
    for (llvm::Value* value : block_.unpack(packed, place.dtype, place.run))
      registers.push_back(value);
  }
  const ValueId out = operation(take.op).out[0];
  if (take.keeps_packed) views_.keep_packed(out, place, runs);
  define(out, place.layout, std::move(registers));
}

void PersistentWriter::write(const tile::gpu::WaitPrefetch& /*wait*/) {
  block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group,
                   {block_.i32(mapping_.prefetched - 1)});
}

void PersistentWriter::write(const tile::gpu::PrefetchProgram& prefetch) {
  if (prefetch.is_prologue) {
    values_.slot = is_multi_stage() ? block_.i32(prefetch.ahead) : nullptr;
  } else {  // later writes to the buffer stay behind the reads of it
    block_.intrinsic(llvm::Intrinsic::nvvm_membar_cta, {});
  }
  llvm::Value* program =
      further(prefetch.is_prologue ? programs_.first : values_.program, prefetch.ahead);
  block_.when(ir_.CreateICmpSLT(program, programs_.count), [&] {
    const std::vector<llvm::Value*> now = values_.scalars;
    std::swap(values_.program, program);
    bodies_.write(prefetch.body);
    std::swap(values_.program, program);
    values_.scalars = now;
  });
  block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {});
}

void PersistentWriter::write(const tile::gpu::ProgramLoop& loop) {
  llvm::Value* slot = is_multi_stage() ? block_.slot(block_.i32(0)) : nullptr;
  for_programs(programs_, [&] {
    if (is_multi_stage()) values_.slot = ir_.CreateLoad(ir_.getInt32Ty(), slot);
    bodies_.write(loop.body);
    if (!is_multi_stage()) return;
    llvm::Value* last = ir_.CreateICmpEQ(values_.slot, block_.i32(mapping_.prefetched - 1));
    llvm::Value* next = ir_.CreateAdd(values_.slot, block_.i32(1));
    ir_.CreateStore(ir_.CreateSelect(last, block_.i32(0), next), slot);
  });
}

}  // namespace tessera::codegen::ptx
