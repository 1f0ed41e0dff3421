#pragma once

#include <llvm/IR/IRBuilder.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/codegen/llvm/math.h"
#include "tessera/support/dtype.h"
#include "tessera/tile/gpu/layout.h"
#include "tessera/tile/gpu/panels.h"
#include "tessera/tile/gpu/shared_tile.h"

namespace tessera::codegen::ptx {

using tile::gpu::held_extent;
using tile::gpu::index_bits;
using tile::gpu::IndexBit;
using tile::gpu::kGroupBits;
using tile::gpu::kLaneBits;
using tile::gpu::kSharedAlignment;
using tile::gpu::Layout;
using tile::gpu::shared_room;

/// Code generation for a thread block: thread indices, barriers, warp shuffles and accesses to
/// shared memory.
class Block {
 public:
  /// `threads` run one program. `own_bytes`: other programs run in other warps of the block, a warp
  /// each, and each has so many bytes of shared memory.
  Block(llvm::Function& function, int threads, std::optional<std::int64_t> own_bytes = {});

  llvm::IRBuilder<> ir;

  int threads() const { return threads_; }
  llvm::Value* i32(std::int64_t value) { return ir.getInt32(static_cast<std::uint32_t>(value)); }
  llvm::Value* i64(std::int64_t value) { return ir.getInt64(static_cast<std::uint64_t>(value)); }
  /// Type of an element in registers; a pointer is an i64. In memory a bool is a byte.
  llvm::Type* element(DType dtype);

  llvm::Value* thread() const { return thread_; }
  /// At the beginning of an iteration of a loop over programs: what follows from the thread index
  /// is computed in each of them. Compilers would compute it before the loop and keep it in
  /// registers.
  void renew_thread();
  /// Index of the block's program that this thread runs; null: there is one.
  llvm::Value* which() const { return which_; }
  /// Bits [from, from + count) of the thread index.
  llvm::Value* thread_bits(int from, int count);
  /// Thread part of the index along an axis, and the whole index of a register, as i32.
  llvm::Value* coordinate(const Layout& layout, int axis, int from_bit = 0);
  llvm::Value* index(const Layout& layout, int axis, int reg);
  /// Whether this thread is the first of those that hold copies of the same elements; null: there
  /// are no copies.
  llvm::Value* is_first(const Layout& layout);
  /// Whether a register holds an element of a tile of this shape, not padding; null: always.
  llvm::Value* is_inside(const Layout& layout, const tile::Extents& shape, int reg);
  /// Whether the index of a register along an axis is below an extent; a constant where it is
  /// known.
  llvm::Value* is_below(const Layout& layout, int axis, int reg, std::int64_t extent);

  /// Warp shuffle: the value of the thread whose index differs in this bit.
  llvm::Value* across(llvm::Value* value, int thread_bit);
  void barrier();
  /// Makes this thread's writes visible to wgmma; a barrier has to follow.
  void publish() { special("fence.proxy.async", {}); }
  /// Subset of the block's threads that the following code is for, from `first` on: groups of
  /// `threads` threads, which synchronize at named barriers, the first group at `barrier`. Each
  /// group has its own part of the shared memory that is not reserved yet: `own_bytes`, one after
  /// the other.
  struct ThreadGroups {
    int first = 0, threads = 0, barrier = 0;
    int groups = 1;
    std::int64_t own_bytes = 0;
  };
  void restrict_to(const ThreadGroups& of);
  /// Index of the group of threads, i32, uniform over a warp; null: there is one.
  llvm::Value* group() const { return group_; }
  /// Offset of memory that was reserved before the groups split, for `shared`.
  llvm::Value* common(llvm::Value* offset) {
    return own_ == nullptr ? offset : ir.CreateSub(offset, own_);
  }
  /// Packs values of one dtype into one value of up to 16 bytes for a vector access, and back.
  llvm::Value* pack(std::span<llvm::Value* const> values, DType dtype);
  Pieces unpack(llvm::Value* packed, DType dtype, int count);
  llvm::Type* packed_type(DType dtype, int count);

  llvm::Value* shared(llvm::Value* offset);

  /// A tile in shared memory.
  struct Buffer : tile::gpu::SharedTile {
    // NOLINTNEXTLINE(google-explicit-constructor): a tile is a buffer without a base
    Buffer(const tile::gpu::SharedTile& tile) : SharedTile(tile) {}
    llvm::Value* base = nullptr;  // i32, added to the offset
  };
  llvm::Value* address(const Buffer& buffer, std::span<llvm::Value* const> indices);
  /// Stores registers; elements outside of `shape`, if it is given, are not written.
  void put(const Buffer& buffer, const Layout& layout, const Pieces& registers,
           std::span<const std::int64_t> at = {}, const tile::Extents* shape = nullptr);
  Pieces take(const Buffer& buffer, const Layout& layout, std::span<const std::int64_t> at = {});
  llvm::Value* take_one(const Buffer& buffer, std::span<llvm::Value* const> indices);

  /// Registers in another layout: renamed, or exchanged through a tile in shared memory.
  Pieces convert(const Pieces& registers, const Layout& from, const Layout& to,
                 const std::optional<tile::gpu::SharedTile>& through);

  /// Conjunction of conditions, and conditional code; null is true.
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
  /// Emits a loop over the numbers from `from` on, below `to`.
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
  /// Instruction without NVVM intrinsic, by its name (instructions.h).
  llvm::Value* special(const std::string& name, llvm::ArrayRef<llvm::Value*> arguments,
                       llvm::Type* result = nullptr);
  /// Stack slot of this thread, for a variable.
  llvm::Value* slot(llvm::Value* initial);
  llvm::Module& module() { return *function_->getParent(); }
  llvm::Function& function() { return *function_; }

 private:
  /// Address of a register of a tile that is stored at `at`.
  llvm::Value* address(const Buffer& buffer, const Layout& layout, int reg,
                       std::span<const std::int64_t> at);
  /// Elements per vector access to shared memory.
  int shared_run(const Buffer& buffer, const Layout& layout,
                 std::span<const std::int64_t> at) const;

  llvm::Function* function_;
  llvm::Instruction* entry_end_;  // insertion point for computations that are done once
  llvm::Instruction* coordinates_end_ = nullptr;  // and for those of the thread index
  llvm::GlobalVariable* memory_;
  llvm::Value *thread_, *which_ = nullptr;
  llvm::Value *group_ = nullptr, *own_ = nullptr, *barrier_ = nullptr;
  int threads_;
  std::map<std::pair<Layout, std::pair<int, int>>, llvm::Value*> coordinates_;
};

}  // namespace tessera::codegen::ptx
