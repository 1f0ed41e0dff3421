#include "tessera/codegen/llvm/target.h"

#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetMachine.h>

#include <map>
#include <tuple>

#include "tessera/codegen/llvm/object.h"
#include "tessera/codegen/llvm/targets.h"

namespace tessera::codegen {
namespace {

// Baseline CPU of an architecture. The features of a machine come on top; its name is used for
// tuning only, so that a name enables nothing that a virtual machine hides.
struct BaseTarget {
  const char* triple;
  const char* cpu;
};

BaseTarget base_of(machine::Architecture architecture) {
  switch (architecture) {
    case machine::Architecture::AArch64: return {"aarch64-unknown-linux-gnu", "generic"};
    case machine::Architecture::X86_64: return {"x86_64-unknown-linux-gnu", "x86-64"};
  }
  return {};
}

std::unique_ptr<llvm::TargetMachine> make_target(const BaseTarget& base,
                                                 const std::string& features) {
  llvm::TargetOptions options;
  options.NoTrappingFPMath = true;
  return std::unique_ptr<llvm::TargetMachine>(
      target_named(base.triple)
          .createTargetMachine(base.triple, base.cpu, features, options, llvm::Reloc::PIC_,
                               llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

}  // namespace

llvm::TargetMachine& target_of(const machine::Machine& machine) {
  // A TargetMachine is not thread-safe.
  thread_local std::map<std::pair<machine::Architecture, std::string>,
                        std::unique_ptr<llvm::TargetMachine>>
      targets;
  const std::string features = machine::llvm_features(machine);
  auto& target = targets[{machine.architecture, features}];
  if (!target) target = make_target(base_of(machine.architecture), features);
  return *target;
}

Expected<Done> set_target(llvm::Module& module, const machine::Machine& machine) {
  const llvm::TargetMachine& target = target_of(machine);
  module.setTargetTriple(target.getTargetTriple().str());
  module.setDataLayout(target.createDataLayout());
  for (llvm::Function& function : module) {
    if (function.isIntrinsic()) continue;
    function.addFnAttr("target-cpu", target.getTargetCPU());
    function.addFnAttr("target-features", target.getTargetFeatureString());
    function.addFnAttr("tune-cpu", machine.cpu);
    // Otherwise LLVM halves the vectors on the first CPUs with AVX-512.
    if (machine.architecture == machine::Architecture::X86_64)
      function.addFnAttr("prefer-vector-width", std::to_string(machine.vector_bytes * 8));
  }
  return Done{};
}

}  // namespace tessera::codegen
