#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/Support/CodeGen.h>

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace tessera::codegen {

/// Functions with this in their names keep the order in which their instructions were written.
inline constexpr const char* kInOrder = "in_order.";

/// Machine code of a module, as an object file or as assembly, by LLVM's code generator without
/// those of its passes that cost more than they give.
///
/// Needs:  a valid module, prepared by set_target.
llvm::SmallVector<char, 0> generate(llvm::Module& module, llvm::TargetMachine& target,
                                    llvm::CodeGenFileType type);

}  // namespace tessera::codegen
