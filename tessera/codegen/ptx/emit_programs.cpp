#include <llvm/IR/IntrinsicsNVPTX.h>

#include "tessera/codegen/ptx/emitter.h"

// A block that runs program after program of the grid. Programs are in no order, so the next one's
// loads may be done while this one runs, if it has not written before: each thread copies, by
// cp.async, what it will read itself, and no barrier is needed.

namespace tessera::codegen::ptx {

using tile::Code;
using tile::gpu::ByProgram;

llvm::Value* Emitter::own_slot(const Stream& stream, const Place& place, int reg) {
  const std::int64_t line = block_.threads() * kChunk;
  llvm::Value* at = ir_.CreateAdd(ir_.CreateMul(block_.thread(), block_.i32(kChunk)),
                                  block_.i32(stream.offset + reg / place.run * line));
  if (!stream.fixed && slot_ != nullptr)
    at = ir_.CreateAdd(at, ir_.CreateMul(slot_, block_.i32(stream.slot)));
  if (block_.which() != nullptr) {
    const std::int64_t bytes = place.layout.registers() / place.run * line;
    at = ir_.CreateAdd(at, ir_.CreateMul(block_.which(), block_.i32(bytes)));
  }
  return block_.shared(at);
}

void Emitter::copy_stream(const Operation& op, const Stream& stream) {
  const Place place = place_of(op, type(op.out[0]).shape);
  const auto chunks = [&] {
    for (int reg = 0; reg < place.layout.registers(); reg += place.run) {
      llvm::Value* target = own_slot(stream, place, reg);
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
      ir_.CreateAlignedStore(loaded_run(place, reg, 1, nullptr), own_slot(stream, place, reg),
                             llvm::Align(kChunk));
    return Pieces{};
  };
  either(place.aligned, chunks, elements);
}

void Emitter::take_stream(const Operation& op, const Stream& stream) {
  const Place place = place_of(op, type(op.out[0]).shape);
  Pieces registers, runs;
  for (int reg = 0; reg < place.layout.registers(); reg += place.run) {
    llvm::Value* packed = ir_.CreateAlignedLoad(block_.packed_type(place.dtype, place.run),
                                                own_slot(stream, place, reg), llvm::Align(kChunk));
    runs.push_back(packed);
    for (llvm::Value* value : block_.unpack(packed, place.dtype, place.run))
      registers.push_back(value);
  }
  if (!stream.fixed)
    keep_packed(op.out[0], {place.layout, runs, place.dtype, place.run, place.base});
  define(op.out[0], place.layout, std::move(registers));
}

/// The numbers that follow from program_, or those that are the same for all.
std::set<tile::OpId> Emitter::arithmetic(ByProgram by) {
  std::set<tile::OpId> emitted;
  for (const tile::OpId id : kernel_.body.ops) {
    const Operation& op = kernel_.ops[id];
    if (op.out.size() != 1) continue;
    const auto found = courses_.find(op.out[0]);
    if (found == courses_.end() || found->second != by) continue;
    operation(op);
    emitted.insert(id);
  }
  return emitted;
}

void Emitter::for_programs(const Turns& turns, const std::function<void()>& body) {
  llvm::BasicBlock *before = ir_.GetInsertBlock(), *header = block_.block("programs"),
                   *inside = block_.block("program"), *after = block_.block("end");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  llvm::PHINode* program = ir_.CreatePHI(ir_.getInt64Ty(), 2);
  program->addIncoming(turns.first, before);
  ir_.CreateCondBr(ir_.CreateICmpSLT(program, turns.count), inside, after);
  ir_.SetInsertPoint(inside);
  open_scope();
  program_ = program;
  block_.forget();
  body();
  close_scope();
  program_ = nullptr;
  accesses_.clear();
  program->addIncoming(ir_.CreateAdd(program, turns.step), ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
  ir_.CreateRetVoid();
}

void Emitter::each_program(llvm::Value* count) {
  courses_ = tile::gpu::courses_of(kernel_);
  for (const tile::gpu::Stream& found : streams_of(planned_, courses_)) {
    Stream& stream = streams_[found.load];
    stream = {.slot = shared_room(found.bytes * shape_.programs), .fixed = found.fixed};
    stream.offset = block_.reserve(stream.slot * (stream.fixed ? 1 : shape_.ahead));
  }
  using namespace llvm::Intrinsic;  // NOLINT(google-build-using-namespace): names of registers
  const Turns turns{
      .count = count,
      .first = pid(Code::Pid, 0),
      .step = ir_.CreateMul(
          ir_.CreateZExt(block_.intrinsic(nvvm_read_ptx_sreg_nctaid_x, {}), ir_.getInt64Ty()),
          block_.i64(shape_.programs))};
  const std::set<tile::OpId> same = arithmetic(ByProgram::Same);
  const auto copy_next = [&](llvm::Value* program, bool fixed) {
    block_.when(ir_.CreateICmpSLT(program, count), [&] {
      const std::vector<llvm::Value*> now = scalars_;
      std::swap(program_, program);
      arithmetic(ByProgram::Differs);
      for (const auto& [id, stream] : streams_)
        if (!stream.fixed || fixed) copy_stream(kernel_.ops[id], stream);
      std::swap(program_, program);
      scalars_ = now;
    });
    block_.intrinsic(nvvm_cp_async_commit_group, {});
  };
  const auto further = [&](llvm::Value* program, int programs) {
    return ir_.CreateAdd(program, ir_.CreateMul(turns.step, block_.i64(programs)));
  };
  const bool ring = shape_.ahead > 1;
  for (int i = 0; i < shape_.ahead; ++i) {
    slot_ = ring ? block_.i32(i) : nullptr;
    copy_next(further(turns.first, i), i == 0);
  }
  llvm::Value* slot = ring ? block_.slot(block_.i32(0)) : nullptr;
  for_programs(turns, [&] {
    if (ring) slot_ = ir_.CreateLoad(ir_.getInt32Ty(), slot);
    block_.intrinsic(nvvm_cp_async_wait_group, {block_.i32(shape_.ahead - 1)});
    std::set<tile::OpId> done = same;
    arithmetic(ByProgram::Differs);
    for (const auto& [id, stream] : streams_) {
      in_order(access_of(kernel_.ops[id]));
      if (stream.fixed) continue;
      take_stream(kernel_.ops[id], stream);
      done.insert(id);
    }
    block_.intrinsic(nvvm_membar_cta, {});  // what was read here is not overtaken by what follows
    copy_next(further(program_, shape_.ahead), false);
    for (const tile::OpId id : kernel_.body.ops) {
      if (error_) break;
      if (done.count(id) == 0) operation(kernel_.ops[id]);
    }
    if (!ring) return;
    llvm::Value* last = ir_.CreateICmpEQ(slot_, block_.i32(shape_.ahead - 1));
    ir_.CreateStore(ir_.CreateSelect(last, block_.i32(0), ir_.CreateAdd(slot_, block_.i32(1))),
                    slot);
  });
}

}  // namespace tessera::codegen::ptx
