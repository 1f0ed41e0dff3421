#pragma once

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace tessera::codegen {

/// Runs a short list of LLVM passes on a module that already uses native vectors and final loop
/// order.
///
/// Needs:  a valid module, prepared by set_target.
/// Keeps:  the meaning of every function, the order of loops.
/// Leaves: no stack slot that a register can hold, no repeated or dead computation in a function,
///         no invariant computation in a loop.
void optimize(llvm::Module& module, llvm::TargetMachine& target);

}  // namespace tessera::codegen
