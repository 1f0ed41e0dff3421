#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <string>

#include "tessera/support/dtype.h"

/// What code of any kind is put together from: functions, loops, branches, the types of elements.
namespace tessera::codegen {

/// The internal function of that name, made by `body` (which returns nothing) unless it is there.
using FunctionBody = llvm::function_ref<void(llvm::IRBuilder<>&, llvm::Function&)>;
llvm::Function* shared_function(llvm::Module& module, const std::string& name,
                                llvm::ArrayRef<llvm::Type*> parameters, FunctionBody body);

/// The type of one element in a register; of a Bool one bit.
llvm::Type* type_of(DType dtype, llvm::LLVMContext& context);

/// for (i = first; i < last; i += step) body(i). No loop where constants tell the number of turns
/// to be 0 or 1.
void emit_for(llvm::IRBuilderBase& ir, llvm::Value* first, llvm::Value* last, std::int64_t step,
              llvm::function_ref<void(llvm::Value*)> body);

/// The same with values that each turn hands to the next; returns the last.
using Values = llvm::SmallVector<llvm::Value*, 40>;
enum class Turns : std::uint8_t { Any, Some };  // Some: at least one
Values emit_for(llvm::IRBuilderBase& ir, llvm::Value* first, llvm::Value* last, std::int64_t step,
                Values carried, llvm::function_ref<Values(llvm::Value*, const Values&)> body,
                Turns turns = Turns::Any);

/// Asks for the line of the cache that an address is in.
struct Prefetch {
  int level = 1;  // of the cache it is brought into
  bool writes = false;
};
void emit_prefetch(llvm::IRBuilderBase& ir, llvm::Value* address, const Prefetch& how = {});

/// The intrinsic of LLVM that is called so, for some types where it is overloaded by them.
llvm::Function* intrinsic_named(llvm::Module& module, const std::string& name,
                                llvm::ArrayRef<llvm::Type*> overloads = {});

void emit_if(llvm::IRBuilderBase& ir, llvm::Value* condition, llvm::function_ref<void()> then);

}  // namespace tessera::codegen
