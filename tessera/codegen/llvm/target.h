#pragma once

#include "tessera/machine/machine.h"

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace tessera::codegen {

/// LLVM's view of a machine. The calling thread keeps it for its next kernels: making one takes
/// longer than compiling many a kernel.
llvm::TargetMachine& target_of(const machine::Machine& machine);

}  // namespace tessera::codegen
