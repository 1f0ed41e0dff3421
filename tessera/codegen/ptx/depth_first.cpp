#include "tessera/codegen/ptx/depth_first.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <vector>

#include "tessera/codegen/ptx/instructions.h"

namespace tessera::codegen::ptx {
namespace {

/// Loads from read-only memory, and loads from shared memory that is not written until the end of
/// their block.
using Movable = llvm::SmallPtrSet<const llvm::Instruction*, 32>;
Movable movable_loads(const llvm::BasicBlock& block) {
  Movable found;
  for (auto at = block.rbegin(); at != block.rend(); ++at) {
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&*at)) {
      if (load->getPointerAddressSpace() == kShared && !load->isVolatile()) found.insert(load);
    } else if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&*at)) {
      if (store->getPointerAddressSpace() == kShared) break;
    } else if (at->mayWriteToMemory()) {
      break;
    }
  }
  for (const llvm::Instruction& instruction : block)
    if (instruction.hasMetadata(llvm::LLVMContext::MD_invariant_load)) found.insert(&instruction);
  return found;
}

bool stays(const llvm::Instruction& instruction, const Movable& movable) {
  if (llvm::isa<llvm::PHINode>(instruction) || instruction.isTerminator()) return true;
  if (movable.contains(&instruction)) return false;
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  return instruction.mayReadOrWriteMemory() || instruction.mayHaveSideEffects() ||
         (call != nullptr && call->isConvergent());
}

bool leaves(const llvm::Instruction& instruction) {
  for (const llvm::User* user : instruction.users()) {
    const auto* other = llvm::cast<llvm::Instruction>(user);
    if (other->getParent() != instruction.getParent() || llvm::isa<llvm::PHINode>(other))
      return true;
  }
  return false;
}

/// Schedules the instructions of a basic block, before its terminator.
class Order {
 public:
  explicit Order(llvm::BasicBlock& block) : block_(block), movable_(movable_loads(block)) {
    for (llvm::Instruction& instruction : block)
      if (stays(instruction, movable_) || leaves(instruction)) roots_.push_back(&instruction);
  }

  void place_all() {
    for (std::size_t i = 0; i < roots_.size();) {
      std::vector<llvm::Instruction*> needed;
      if (const std::size_t end = exchanges(i); end > i + 1) {
        visit(i, end, needed);
        i = end;
      } else {
        const std::size_t count = together(i);
        for (const std::size_t last = i + count; i < last; ++i) visit(i, i + 1, needed);
        if (count > 1 && needed.size() <= kMostTogether) interleave(needed);
      }
      for (llvm::Instruction* instruction : needed)
        if (instruction != &block_.back()) instruction->moveBefore(block_.getTerminator());
    }
  }

 private:
  /// Whether the operands of several roots are few enough to be in flight at once.
  static constexpr std::size_t kMostTogether = 512;
  static constexpr std::uint64_t kBytesTogether = 16;

  /// Number of roots from one on that are scheduled together: stores to shared memory of few bytes
  /// in all.
  std::size_t together(std::size_t first) const {
    std::uint64_t bytes = 0;
    std::size_t count = 0;
    for (; first + count < roots_.size(); ++count) {
      const auto* store = llvm::dyn_cast<llvm::StoreInst>(roots_[first + count]);
      if (store == nullptr || store->getPointerAddressSpace() != kShared) break;
      bytes += store->getValueOperand()->getType()->getPrimitiveSizeInBits() / 8;
      if (bytes > kBytesTogether) break;
    }
    return std::max<std::size_t>(count, 1);
  }

  /// End of a sequence of roots that are independent exchanges between lanes.
  std::size_t exchanges(std::size_t first) const {
    std::size_t end = first;
    while (end < roots_.size() && is_exchange(*roots_[end]) &&
           (end == first || !needs_exchange(*roots_[end])))
      ++end;
    return end;
  }
  static bool is_exchange(const llvm::Instruction& instruction) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::nvvm_shfl_sync_bfly_i32;
  }
  /// An instruction to be scheduled.
  bool needs_exchange(const llvm::Instruction& root) const {
    llvm::SmallPtrSet<const llvm::Instruction*, 32> seen;
    std::vector<const llvm::Instruction*> open = {&root};
    while (!open.empty()) {
      const llvm::Instruction* instruction = open.back();
      open.pop_back();
      for (const llvm::Value* operand : instruction->operands()) {
        const auto* made = llvm::dyn_cast<llvm::Instruction>(operand);
        if (made == nullptr || made->getParent() != &block_ || placed_.contains(made)) continue;
        if (is_exchange(*made)) return true;
        if (!stays(*made, movable_) && seen.insert(made).second) open.push_back(made);
      }
    }
    return false;
  }

  /// Unscheduled operands of the roots from one up to `end`, operands first, and the roots: one
  /// instruction for each in turn, so that shared operands need not stay live.
  void visit(std::size_t first, std::size_t end, std::vector<llvm::Instruction*>& needed) {
    struct Visit {
      llvm::Instruction* instruction;
      unsigned operand;
    };
    std::vector<std::vector<Visit>> stacks;  // explicit: chains may be long
    for (std::size_t i = first; i < end; ++i)
      if (!llvm::isa<llvm::PHINode>(roots_[i])) stacks.push_back({{roots_[i], 0}});
    const auto step = [&](std::vector<Visit>& open) {
      while (!open.empty()) {
        auto& [instruction, next] = open.back();
        if (next < instruction->getNumOperands()) {
          auto* operand = llvm::dyn_cast<llvm::Instruction>(instruction->getOperand(next++));
          if (operand != nullptr && operand->getParent() == &block_ && !stays(*operand, movable_) &&
              !placed_.contains(operand))
            open.push_back({operand, 0});
          continue;
        }
        llvm::Instruction* made = instruction;
        open.pop_back();
        // Another root may have scheduled it meanwhile.
        if (!placed_.insert(made).second) continue;
        needed.push_back(made);
        return;
      }
    };
    const auto is_open = [](const auto& open) { return !open.empty(); };
    while (std::any_of(stacks.begin(), stacks.end(), is_open))
      for (std::vector<Visit>& open : stacks) step(open);
  }

  /// Interleaves chains: the instruction farthest from the end of its chain comes first.
  static void interleave(std::vector<llvm::Instruction*>& needed) {
    llvm::DenseMap<const llvm::Instruction*, int> heights;
    for (auto at = needed.rbegin(); at != needed.rend(); ++at) {
      const int next = heights[*at] + 1;
      for (const llvm::Use& operand : (*at)->operands()) {
        const auto* made = llvm::dyn_cast<llvm::Instruction>(operand.get());
        if (made != nullptr) heights[made] = std::max(heights[made], next);
      }
    }
    std::stable_sort(needed.begin(), needed.end(), [&](const auto* a, const auto* b) {
      return heights.lookup(a) > heights.lookup(b);
    });
  }

  llvm::BasicBlock& block_;
  Movable movable_;
  std::vector<llvm::Instruction*> roots_;
  llvm::SmallPtrSet<const llvm::Instruction*, 32> placed_;
};

}  // namespace

void depth_first(llvm::Module& module) {
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function) Order(block).place_all();
}

}  // namespace tessera::codegen::ptx
