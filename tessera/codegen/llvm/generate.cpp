#include "tessera/codegen/llvm/generate.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tessera/support/check.h"

namespace tessera::codegen {
namespace {

/// Keeps the first error that LLVM reports; without a handler LLVM ends the process.
class FirstError : public llvm::DiagnosticHandler {
 public:
  explicit FirstError(std::string& error) : error_(error) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error && error_.empty()) {
      llvm::raw_string_ostream stream(error_);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    }
    return true;
  }

 private:
  std::string& error_;
};

/// Passes that are skipped for some functions.
class PassGate : public llvm::OptPassGate {
 public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef function) override {
    return pass != "Machine Instruction Scheduler" || !function.contains(kInOrder);
  }
};

/// Passes for garbage collectors, debuggers, profilers, exceptions, hardening and errata, which
/// kernels do not use; for jumps, stack slots, library calls and wide integers, of which they have
/// few or none; and for patterns that are not emitted: interleaved loads, duplicate constants and
/// computations.
constexpr llvm::StringLiteral kLeftOut[] = {
    "Lower Garbage Collection Instructions",
    "Shadow Stack GC Lowering",
    "Analyze Machine Code For Garbage Collection",
    "Fixup Statepoint Caller Saved",
    "StackMap Liveness Analysis",
    "Live DEBUG_VALUE analysis",
    "Remove Redundant DEBUG_VALUE analysis",
    "Stack Frame Layout Analysis",
    "Insert XRay ops",
    "Insert fentry calls",
    "Implement the 'patchable-function' attribute",
    "Machine Sanitizer Binary Metadata",
    "Contiguously Lay Out Funclets",
    "Early Tail Duplication",
    "Tail Duplication",
    "Early If-Conversion",
    "Shrink Wrapping analysis",
    "Merge disjoint stack slots",
    "Machine Late Instructions Cleanup Pass",
    "PostRA Machine Sink",
    "Loop Data Prefetch",  // prefetches are placed by the schedule
    "Interleaved Load Combine Pass",
    "Interleaved Access Pass",
    "Complex Deinterleaving Pass",
    "Constant Hoisting",
    "Expand memcmp() to load/stores",
    "Merge contiguous icmps into a memcmp",
    "Partially inline calls to library functions",
    "Replace intrinsics with calls to vector library",
    "Expand large div/rem",
    "Expand large fp convert",
    "Lower constant intrinsics",
    "Expand vector predication intrinsics",
    "Exception handling preparation",
    "Safe Stack instrumentation pass",
    "Insert stack protectors",
    "TLS Variable Hoist",
    "Prepare callbr",
    "Insert KCFI indirect call checks",
    "Instrument function entry/exit with calls to e.g. mcount() (post inlining)",
    "AArch64 Local Dynamic TLS Access Clean-up",
    "AArch64 Compress Jump Tables",
    "AArch64 Stack Tagging",
    "AArch64 Stack Tagging PreRA",
    "AArch64 speculation hardening pass",
    "AArch64 sls hardening pass",
    "AArch64 Branch Targets",
    "Workaround A53 erratum 835769 pass",
    "A57 FP Anti-dependency breaker",
    "Falkor HW Prefetch Fix",
    "Falkor HW Prefetch Fix Late Phase",
    "Machine Outliner",
    "X86 Domain Reassignment Pass",
    "X86 Avoid Store Forwarding Blocks",
    "X86 cmov Conversion",
    "X86 Byte/Word Instruction Fixup",
    "X86 LEA Fixup",
    "X86 Optimize Call Frame",
    "X86 Load Value Injection (LVI) Load Hardening",
    "X86 Load Value Injection (LVI) Ret-Hardening",
    "X86 speculative load hardening",
    "X86 Speculative Execution Side Effect Suppression",
    "X86 Indirect Branch Tracking",
    "X86 Indirect Thunks",
    "X86 Return Thunks",
    "X86 Discriminate Memory Operands",
    "X86 Insert Cache Prefetches",
    "X86 Atom pad short functions",
    "X86 Windows Fixup Buffer Security Check",
};

/// Forwards all passes but those.
class Chosen : public llvm::PassManagerBase {
 public:
  explicit Chosen(llvm::PassManagerBase& passes) : passes_(passes) {}
  void add(llvm::Pass* pass) override {
    if (llvm::is_contained(kLeftOut, pass->getPassName()))
      delete pass;
    else
      passes_.add(pass);
  }

 private:
  llvm::PassManagerBase& passes_;
};

/// Code generation pipeline for one target, reused for any number of modules: setting it up takes
/// longer than running it on a short kernel.
class Generator {
 public:
  Generator(llvm::TargetMachine& machine, llvm::CodeGenFileType type) : stream_(code_) {
    auto& target = static_cast<llvm::LLVMTargetMachine&>(machine);
    auto* functions = new llvm::MachineModuleInfoWrapperPass(&target);
    llvm::TargetPassConfig* config = target.createPassConfig(chosen_);
    config->setDisableVerify(true);
    passes_.add(config);
    passes_.add(functions);
    bool cannot = config->addISelPasses();
    config->addMachinePasses();
    config->setInitialized();
    cannot = cannot || target.addAsmPrinter(passes_, stream_, nullptr, type,
                                            functions->getMMI().getContext());
    TESSERA_CHECK(!cannot, "LLVM writes no code for {}", target.getTargetTriple().str());
    passes_.add(llvm::createFreeMachineFunctionPass());
  }

  llvm::SmallVector<char, 0> run(llvm::Module& module) {
    passes_.run(module);
    return std::exchange(code_, {});
  }

 private:
  llvm::SmallVector<char, 0> code_;
  llvm::raw_svector_ostream stream_;
  llvm::legacy::PassManager passes_;
  Chosen chosen_{passes_};
};

/// Targets are thread-local and outlive the pipelines that are created for them.
Generator& generator_for(llvm::TargetMachine& target, llvm::CodeGenFileType type) {
  thread_local std::map<std::pair<llvm::TargetMachine*, llvm::CodeGenFileType>,
                        std::unique_ptr<Generator>>
      generators;
  auto& generator = generators[{&target, type}];
  if (!generator) generator = std::make_unique<Generator>(target, type);
  return *generator;
}

}  // namespace

llvm::SmallVector<char, 0> generate(llvm::Module& module, llvm::TargetMachine& target,
                                    llvm::CodeGenFileType type) {
  std::string error;
  PassGate gate;
  llvm::LLVMContext& context = module.getContext();
  llvm::OptPassGate& old_gate = context.getOptPassGate();
  context.setOptPassGate(gate);
  auto handler = context.getDiagnosticHandler();
  context.setDiagnosticHandler(std::make_unique<FirstError>(error));
  auto code = generator_for(target, type).run(module);
  context.setDiagnosticHandler(std::move(handler));
  context.setOptPassGate(old_gate);
  TESSERA_CHECK(error.empty(), "LLVM cannot compile {}: {}", module.getModuleIdentifier(), error);
  return code;
}

}  // namespace tessera::codegen
