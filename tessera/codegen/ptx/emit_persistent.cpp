#include <llvm/IR/IntrinsicsNVPTX.h>

#include "tessera/codegen/ptx/emitter.h"

// Persistent blocks: a block runs program after program of the grid. Programs are unordered, so the
// loads of the next one may overlap with the current one, if they precede its stores: each thread
// prefetches, by cp.async, the elements that it will read itself, and no barrier is needed.

namespace tessera::codegen::ptx {

using tile::Code;
using tile::gpu::ProgramDependence;

llvm::Value* Emitter::own_slot(const PrefetchBuffer& buffer, const Place& place, int reg) {
  const std::int64_t line = block_.threads() * kChunk;
  llvm::Value* at = ir_.CreateAdd(ir_.CreateMul(block_.thread(), block_.i32(kChunk)),
                                  block_.i32(buffer.offset + reg / place.run * line));
  if (!buffer.fixed && slot_ != nullptr)
    at = ir_.CreateAdd(at, ir_.CreateMul(slot_, block_.i32(buffer.slot)));
  if (block_.which() != nullptr) {
    const std::int64_t bytes = place.layout.registers() / place.run * line;
    at = ir_.CreateAdd(at, ir_.CreateMul(block_.which(), block_.i32(bytes)));
  }
  return block_.shared(at);
}

void Emitter::prefetch_load(const Operation& op, const PrefetchBuffer& buffer) {
  const Place place = place_of(op, type(op.out[0]).shape);
  const auto chunks = [&] {
    for (int reg = 0; reg < place.layout.registers(); reg += place.run) {
      llvm::Value* target = own_slot(buffer, place, reg);
      llvm::Value* from = global(address(place, reg));
      if (llvm::Value* inside = within(place, reg)) {
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
      ir_.CreateAlignedStore(loaded_run(place, reg, 1, nullptr), own_slot(buffer, place, reg),
                             llvm::Align(kChunk));
    return Pieces{};
  };
  either(place.aligned, chunks, elements);
}

void Emitter::take_prefetched(const Operation& op, const PrefetchBuffer& buffer) {
  const Place place = place_of(op, type(op.out[0]).shape);
  Pieces registers, runs;
  for (int reg = 0; reg < place.layout.registers(); reg += place.run) {
    llvm::Value* packed = ir_.CreateAlignedLoad(block_.packed_type(place.dtype, place.run),
                                                own_slot(buffer, place, reg), llvm::Align(kChunk));
    runs.push_back(packed);
    for (llvm::Value* value : block_.unpack(packed, place.dtype, place.run))
      registers.push_back(value);
  }
  if (!buffer.fixed)
    keep_packed(op.out[0], {place.layout, runs, place.dtype, place.run, place.base});
  define(op.out[0], place.layout, std::move(registers));
}

/// Scalars that depend on program_, or those that are uniform.
std::set<tile::OpId> Emitter::arithmetic(ProgramDependence by) {
  std::set<tile::OpId> emitted;
  for (const tile::OpId id : kernel_.body.ops) {
    const Operation& op = kernel_.ops[id];
    if (op.out.size() != 1) continue;
    const auto found = dependences_.find(op.out[0]);
    if (found == dependences_.end() || found->second != by) continue;
    operation(op);
    emitted.insert(id);
  }
  return emitted;
}

void Emitter::for_programs(const ProgramRange& programs, const std::function<void()>& body) {
  llvm::BasicBlock *before = ir_.GetInsertBlock(), *header = block_.block("programs"),
                   *inside = block_.block("program"), *after = block_.block("end");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  llvm::PHINode* program = ir_.CreatePHI(ir_.getInt64Ty(), 2);
  program->addIncoming(programs.first, before);
  ir_.CreateCondBr(ir_.CreateICmpSLT(program, programs.count), inside, after);
  ir_.SetInsertPoint(inside);
  open_scope();
  program_ = program;
  block_.forget();
  body();
  close_scope();
  program_ = nullptr;
  accesses_.clear();
  program->addIncoming(ir_.CreateAdd(program, programs.step), ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
  ir_.CreateRetVoid();
}

void Emitter::each_program(llvm::Value* count) {
  dependences_ = tile::gpu::program_dependences(kernel_);
  for (const tile::gpu::PrefetchedLoad& found : prefetched_loads(planned_, dependences_)) {
    PrefetchBuffer& buffer = prefetch_buffers_[found.load];
    buffer = {.slot = shared_room(found.bytes * mapping_.programs), .fixed = found.fixed};
    buffer.offset = block_.reserve(buffer.slot * (buffer.fixed ? 1 : mapping_.prefetched));
  }
  using namespace llvm::Intrinsic;  // NOLINT(google-build-using-namespace): names of registers
  const ProgramRange programs{
      .count = count,
      .first = pid(Code::Pid, 0),
      .step = ir_.CreateMul(
          ir_.CreateZExt(block_.intrinsic(nvvm_read_ptx_sreg_nctaid_x, {}), ir_.getInt64Ty()),
          block_.i64(mapping_.programs))};
  const std::set<tile::OpId> same = arithmetic(ProgramDependence::Uniform);
  const auto copy_next = [&](llvm::Value* program, bool fixed) {
    block_.when(ir_.CreateICmpSLT(program, count), [&] {
      const std::vector<llvm::Value*> now = scalars_;
      std::swap(program_, program);
      arithmetic(ProgramDependence::Varying);
      for (const auto& [id, buffer] : prefetch_buffers_)
        if (!buffer.fixed || fixed) prefetch_load(kernel_.ops[id], buffer);
      std::swap(program_, program);
      scalars_ = now;
    });
    block_.intrinsic(nvvm_cp_async_commit_group, {});
  };
  const auto further = [&](llvm::Value* program, int count) {
    return ir_.CreateAdd(program, ir_.CreateMul(programs.step, block_.i64(count)));
  };
  const bool multi_stage = mapping_.prefetched > 1;
  for (int i = 0; i < mapping_.prefetched; ++i) {
    slot_ = multi_stage ? block_.i32(i) : nullptr;
    copy_next(further(programs.first, i), i == 0);
  }
  llvm::Value* slot = multi_stage ? block_.slot(block_.i32(0)) : nullptr;
  for_programs(programs, [&] {
    if (multi_stage) slot_ = ir_.CreateLoad(ir_.getInt32Ty(), slot);
    block_.intrinsic(nvvm_cp_async_wait_group, {block_.i32(mapping_.prefetched - 1)});
    std::set<tile::OpId> done = same;
    arithmetic(ProgramDependence::Varying);
    for (const auto& [id, buffer] : prefetch_buffers_) {
      in_order(access_of(kernel_.ops[id]));
      if (buffer.fixed) continue;
      take_prefetched(kernel_.ops[id], buffer);
      done.insert(id);
    }
    block_.intrinsic(nvvm_membar_cta, {});  // later writes to the buffer stay behind these reads
    copy_next(further(program_, mapping_.prefetched), false);
    for (const tile::OpId id : kernel_.body.ops) {
      if (error_) break;
      if (done.count(id) == 0) operation(kernel_.ops[id]);
    }
    if (!multi_stage) return;
    llvm::Value* last = ir_.CreateICmpEQ(slot_, block_.i32(mapping_.prefetched - 1));
    ir_.CreateStore(ir_.CreateSelect(last, block_.i32(0), ir_.CreateAdd(slot_, block_.i32(1))),
                    slot);
  });
}

}  // namespace tessera::codegen::ptx
