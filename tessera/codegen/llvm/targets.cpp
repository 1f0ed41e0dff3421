#include "tessera/codegen/llvm/targets.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>

#include "tessera/support/check.h"

namespace tessera::codegen {
namespace {

/// Sets LLVM command-line options that have no API.
void set_switch(const char* name, bool value) {
  const auto& switches = llvm::cl::getRegisteredOptions();
  if (const auto found = switches.find(name); found != switches.end())
    static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(value);
}

// They apply to all targets of the process: code of a kernel must not depend on which targets were
// used before it.
void set_switches() {
  // Loop strength reduction takes longer than all other passes together where a loop is unrolled,
  // to save two additions per iteration. Alias queries for each pair of accesses take a tenth of
  // the time; loads are emitted before stores already.
  set_switch("disable-lsr", true);
  set_switch("aarch64-use-aa", false);
}

bool registered() {
  set_switches();
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
