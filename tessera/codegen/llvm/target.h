#pragma once

#include "tessera/machine/machine.h"

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace tessera::codegen {

/// LLVM target machine for a machine, cached per thread: creating one takes longer than compiling
/// many a kernel.
llvm::TargetMachine& target_of(const machine::Machine& machine);

}  // namespace tessera::codegen
