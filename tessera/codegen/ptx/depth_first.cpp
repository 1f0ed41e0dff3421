#include "tessera/codegen/ptx/depth_first.h"

#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "tessera/codegen/ptx/instructions.h"

namespace tessera::codegen::ptx {
namespace {

/// Loads from shared memory that nothing writes to until their block ends.
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

void reorder(llvm::BasicBlock& block) {
  std::vector<llvm::Instruction*> order;
  const Movable movable = movable_loads(block);
  for (llvm::Instruction& instruction : block)
    if (stays(instruction, movable) || leaves(instruction)) order.push_back(&instruction);
  llvm::SmallPtrSet<llvm::Instruction*, 32> placed;
  struct Visit {
    llvm::Instruction* instruction;
    unsigned operand;
  };
  std::vector<Visit> open;  // a stack of its own: chains may be long
  for (llvm::Instruction* root : order) {
    if (llvm::isa<llvm::PHINode>(root)) continue;
    if (placed.contains(root)) continue;
    open.push_back({root, 0});
    while (!open.empty()) {
      auto& [instruction, next] = open.back();
      if (next < instruction->getNumOperands()) {
        auto* needed = llvm::dyn_cast<llvm::Instruction>(instruction->getOperand(next++));
        if (needed != nullptr && needed->getParent() == &block && !stays(*needed, movable) &&
            !placed.contains(needed))
          open.push_back({needed, 0});
        continue;
      }
      placed.insert(instruction);
      if (instruction != &block.back()) instruction->moveBefore(block.getTerminator());
      open.pop_back();
    }
  }
}

}  // namespace

void depth_first(llvm::Module& module) {
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function) reorder(block);
}

}  // namespace tessera::codegen::ptx
