#pragma once

#include <string>

namespace llvm {
class Target;
}  // namespace llvm

namespace tessera::codegen {

/// Registers the CPU and GPU targets of kernels with LLVM, once per process. LLVM's own registry is
/// not thread-safe.
void register_targets();

/// Registered LLVM target of a triple.
const llvm::Target& target_named(const std::string& triple);

}  // namespace tessera::codegen
