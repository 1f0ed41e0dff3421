#include "tessera/codegen/llvm/optimize.h"

#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

namespace tessera::codegen {

void optimize(llvm::Module& module, llvm::TargetMachine& target) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&target);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  llvm::AlwaysInlinerPass().run(module, modules);
  // Shared functions (micro-kernels, packers) are emitted in their final form: instruction
  // combining takes long and finds nothing.
  llvm::FunctionPassManager kernel, shared;
  for (auto* passes : {&kernel, &shared}) {
    passes->addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes->addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/false));
    if (passes == &kernel) passes->addPass(llvm::InstCombinePass());
    passes->addPass(llvm::SimplifyCFGPass());
    passes->addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                          /*UseMemorySSA=*/true));
  }
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    const auto kept = (function.hasLocalLinkage() ? shared : kernel).run(function, functions);
    functions.invalidate(function, kept);
  }
}

}  // namespace tessera::codegen
