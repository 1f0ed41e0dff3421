#include "tessera/codegen/llvm/generate.h"

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

/// Keeps the first error that LLVM reports; without it LLVM ends the process.
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

/// Passes that have no number below, or are left out for some functions.
class PassGate : public llvm::OptPassGate {
 public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef function) override {
    // Prefetches are where a schedule asks for them.
    if (pass == "Loop Data Prefetch") return false;
    return pass != "Machine Instruction Scheduler" || !function.contains(kInOrder);
  }
};

/// Passes for garbage collectors, debuggers, profilers and exceptions, which kernels know nothing
/// of, and for jumps and stack slots, of which they have few.
const char* const kLeftOut[] = {
    &llvm::GCLoweringID,
    &llvm::ShadowStackGCLoweringID,
    &llvm::GCMachineCodeAnalysisID,
    &llvm::FixupStatepointCallerSavedID,
    &llvm::StackMapLivenessID,
    &llvm::LiveDebugValuesID,
    &llvm::RemoveRedundantDebugValuesID,
    &llvm::StackFrameLayoutAnalysisPassID,
    &llvm::XRayInstrumentationID,
    &llvm::FEntryInserterID,
    &llvm::PatchableFunctionID,
    &llvm::MachineSanitizerBinaryMetadataID,
    &llvm::FuncletLayoutID,
    &llvm::EarlyTailDuplicateID,
    &llvm::TailDuplicateID,
    &llvm::EarlyIfConverterID,
    &llvm::ShrinkWrapID,
    &llvm::StackColoringID,
    &llvm::MachineLateInstrsCleanupID,
    &llvm::PostRAMachineSinkingID,
};

/// The passes for one target, which serve any number of modules: putting them together takes longer
/// than running them on a short kernel.
class Generator {
 public:
  Generator(llvm::TargetMachine& machine, llvm::CodeGenFileType type) : stream_(code_) {
    auto& target = static_cast<llvm::LLVMTargetMachine&>(machine);
    auto* functions = new llvm::MachineModuleInfoWrapperPass(&target);
    llvm::TargetPassConfig* config = target.createPassConfig(passes_);
    config->setDisableVerify(true);
    for (const char* pass : kLeftOut) config->disablePass(pass);
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
};

/// Targets belong to the calling thread and outlive what is made for them later.
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
