#pragma once

#include <string>

namespace llvm {
class Target;
}  // namespace llvm

namespace tessera::codegen {

/// Makes the processors and GPUs that kernels are compiled for known to LLVM, once in a process.
/// LLVM's own list of them is not safe from several threads.
void register_targets();

/// The target of a triple, one of those.
const llvm::Target& target_named(const std::string& triple);

}  // namespace tessera::codegen
