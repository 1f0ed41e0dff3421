#include "tessera/codegen/llvm/targets.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>

#include "tessera/support/check.h"

namespace tessera::codegen {
namespace {

bool registered() {
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  return true;
}

}  // namespace

void register_targets() {
  [[maybe_unused]] static const bool once = registered();
}

const llvm::Target& target_named(const std::string& triple) {
  register_targets();
  std::string problem;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, problem);
  TESSERA_CHECK(target != nullptr, "LLVM was built without {}: {}", triple, problem);
  return *target;
}

}  // namespace tessera::codegen
