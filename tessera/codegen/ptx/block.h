#pragma once

#include <llvm/IR/IRBuilder.h>

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/codegen/llvm/math.h"
#include "tessera/support/dtype.h"
#include "tessera/tile/gpu/layout.h"
#include "tessera/tile/gpu/panels.h"

namespace tessera::codegen::ptx {

using tile::gpu::held_extent;
using tile::gpu::index_bits;
using tile::gpu::IndexBit;
using tile::gpu::kGroupBits;
using tile::gpu::kLaneBits;
using tile::gpu::kSharedAlignment;
using tile::gpu::Layout;
using tile::gpu::shared_room;

/// What one thread of a block is written with: where it stands, how it meets the others, and the
/// memory that they share.
///
/// Shared memory is a stack: `reserve` and `release` for what lives long, and above it scratch that
/// the next user takes over. Barriers are written where scratch changes hands.
class Block {
 public:
  /// `threads` run one program. `several`: other programs have their own warps in the block, so
  /// that a program's threads are one warp and share no memory.
  Block(llvm::Function& function, int threads, bool several = false);

  llvm::IRBuilder<> ir;

  int threads() const { return threads_; }
  llvm::Value* i32(std::int64_t value) { return ir.getInt32(static_cast<std::uint32_t>(value)); }
  llvm::Value* i64(std::int64_t value) { return ir.getInt64(static_cast<std::uint64_t>(value)); }
  /// In registers; a pointer is an i64. In memory a bool is a byte.
  llvm::Type* element(DType dtype);

  llvm::Value* thread() const { return thread_; }
  /// Which of the block's programs this thread runs; null: there is one.
  llvm::Value* which() const { return which_; }
  /// Bits [from, from + count) of the thread's number.
  llvm::Value* thread_bits(int from, int count);
  /// The part of the index along an axis that is the thread's own, and the whole index, as i32.
  llvm::Value* coordinate(const Layout& layout, int axis, int from_bit = 0);
  llvm::Value* index(const Layout& layout, int axis, int reg);
  /// Whether this thread is the first of those that hold the same elements; null: each holds other
  /// ones.
  llvm::Value* is_first(const Layout& layout);
  /// Whether a register holds an element of a tile of this shape; null: always.
  llvm::Value* is_inside(const Layout& layout, const tile::Extents& shape, int reg);

  /// Of the thread whose number differs in this bit, of the same warp.
  llvm::Value* across(llvm::Value* value, int thread_bit);
  void barrier();
  /// Where a condition holds, which is the same in all threads; orders nothing elsewhere.
  void barrier_if(llvm::Value* condition);
  /// From here on code is for some of the block's threads, those from `first` on: teams of
  /// `threads` each, which meet at barriers of their own, the first team at `barrier`. Each team
  /// has the shared memory that is not reserved yet to itself: `own_bytes`, one after the other.
  struct Role {
    int first = 0, threads = 0, barrier = 0;
    int teams = 1;
    std::int64_t own_bytes = 0;
  };
  void become(const Role& role);
  /// The number of the team, i32, the same in a warp; null: there is one.
  llvm::Value* team() const { return team_; }
  /// Of what was reserved before, for `shared`.
  llvm::Value* common(llvm::Value* offset) {
    return own_ == nullptr ? offset : ir.CreateSub(offset, own_);
  }
  /// Ends what the barriers so far have ordered: code comes that is reached in several ways.
  void forget();
  /// How many barriers have been written: two accesses with the same count may meet.
  int barriers() const { return barriers_; }

  /// Values of one dtype as one of up to 16 bytes that memory takes, and back.
  llvm::Value* pack(std::span<llvm::Value* const> values, DType dtype);
  Pieces unpack(llvm::Value* packed, DType dtype, int count);
  llvm::Type* packed_type(DType dtype, int count);

  llvm::Value* shared(llvm::Value* offset);
  std::int64_t reserve(std::int64_t bytes);
  void release(std::int64_t bytes) { top_ -= bytes; }
  /// Bytes for the next exchange. Whoever takes it puts, meets at a barrier, and reads.
  std::int64_t scratch(std::int64_t bytes);
  /// The same where nothing was before, in code that runs once: nobody has to wait for it.
  std::int64_t fresh(std::int64_t bytes);
  std::int64_t shared_bytes() const { return peak_; }
  /// Of it, what is not reserved now.
  std::int64_t scratch_bytes() const { return shared_room(peak_ - top_); }
  /// Whether threads have exchanged anything through it.
  bool exchanges() const { return exchanges_; }

  /// A tile in shared memory, row by row; a row ends with a gap that spreads columns over banks.
  struct Buffer {
    std::int64_t offset = 0;
    llvm::Value* base = nullptr;  // i32, added to the offset
    tile::Extents extents = {};
    std::vector<std::int64_t> strides = {};  // in bytes
    DType dtype = DType::F32;
    std::int64_t bytes() const {
      return strides.empty() ? byte_width(dtype) : strides.front() * extents.front();
    }
  };
  static Buffer buffer(const tile::Extents& extents, DType dtype);
  llvm::Value* address(const Buffer& buffer, std::span<llvm::Value* const> indices);
  /// Elements outside of `shape`, where it is given, are not written.
  void put(const Buffer& buffer, const Layout& layout, const Pieces& registers,
           std::span<const std::int64_t> at = {}, const tile::Extents* shape = nullptr);
  Pieces take(const Buffer& buffer, const Layout& layout, std::span<const std::int64_t> at = {});
  llvm::Value* take_one(const Buffer& buffer, std::span<llvm::Value* const> indices);

  Pieces convert(const Pieces& registers, DType dtype, const Layout& from, const Layout& to);

  /// Conditions that are null hold always: both of two, and what is run where one holds.
  llvm::Value* both(llvm::Value* a, llvm::Value* b) {
    return a == nullptr ? b : b == nullptr ? a : ir.CreateAnd(a, b);
  }
  template <class Then>
  void when(llvm::Value* condition, const Then& then) {
    if (condition == nullptr) return then();
    llvm::BasicBlock* inside = block("when");
    llvm::BasicBlock* after = block("after");
    ir.CreateCondBr(condition, inside, after);
    ir.SetInsertPoint(inside);
    then();
    ir.CreateBr(after);
    ir.SetInsertPoint(after);
  }
  /// Runs `body` with the numbers from `from` on, below `to`, in a loop.
  template <class Body>
  void repeat(llvm::Value* from, std::int64_t to, std::int64_t step, const Body& body) {
    llvm::BasicBlock *before = ir.GetInsertBlock(), *header = block("repeat"),
                     *inside = block("inside"), *after = block("after");
    ir.CreateBr(header);
    ir.SetInsertPoint(header);
    llvm::PHINode* number = ir.CreatePHI(from->getType(), 2);
    number->addIncoming(from, before);
    ir.CreateCondBr(ir.CreateICmpULT(number, i32(to)), inside, after);
    ir.SetInsertPoint(inside);
    body(number);
    number->addIncoming(ir.CreateAdd(number, i32(step)), ir.GetInsertBlock());
    ir.CreateBr(header);
    ir.SetInsertPoint(after);
  }
  llvm::BasicBlock* block(const char* name);
  llvm::Value* intrinsic(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> arguments,
                         llvm::ArrayRef<llvm::Type*> types = {});
  /// An instruction that NVVM has no intrinsic for, by its name (instructions.h).
  llvm::Value* special(const std::string& name, llvm::ArrayRef<llvm::Value*> arguments,
                       llvm::Type* result = nullptr);
  /// Of this thread alone, for a number that changes from place to place.
  llvm::Value* slot(llvm::Value* initial);
  llvm::Module& module() { return *function_->getParent(); }
  llvm::Function& function() { return *function_; }

 private:
  /// Where a register of a tile lies that is put at `at`.
  llvm::Value* address(const Buffer& buffer, const Layout& layout, int reg,
                       std::span<const std::int64_t> at);
  /// Runs of registers that shared memory takes at once: their length.
  int shared_run(const Buffer& buffer, const Layout& layout,
                 std::span<const std::int64_t> at) const;

  llvm::Function* function_;
  llvm::Instruction* entry_end_;  // what is computed once stands before it
  llvm::GlobalVariable* memory_;
  llvm::Value *thread_, *which_ = nullptr;
  llvm::Value *team_ = nullptr, *own_ = nullptr, *barrier_ = nullptr;
  int threads_;
  std::map<std::pair<Layout, std::pair<int, int>>, llvm::Value*> coordinates_;
  std::int64_t top_ = 0, peak_ = 0, fresh_ = 0;
  bool scratch_used_ = false, exchanges_ = false;
  int barriers_ = 0;
};

}  // namespace tessera::codegen::ptx
