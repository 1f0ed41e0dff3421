#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/Support/CodeGen.h>

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace tessera::codegen {

/// Marker in function names that disables instruction scheduling: instructions keep the emitted
/// order.
inline constexpr const char* kInOrder = "in_order.";

/// Machine code of a module, as an object file or as assembly, by LLVM's code generator without the
/// passes that cost more compile time than they gain.
///
/// Needs:  a valid module, prepared by set_target.
llvm::SmallVector<char, 0> generate(llvm::Module& module, llvm::TargetMachine& target,
                                    llvm::CodeGenFileType type);

}  // namespace tessera::codegen
