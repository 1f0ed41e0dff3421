#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <string>

#include "tessera/support/dtype.h"

/// Building blocks of generated code: functions, loops, branches, element types.
namespace tessera::codegen {

/// Internal function of that name; `body` emits it (without a return) unless it exists.
using FunctionBody = llvm::function_ref<void(llvm::IRBuilder<>&, llvm::Function&)>;
llvm::Function* shared_function(llvm::Module& module, const std::string& name,
                                llvm::ArrayRef<llvm::Type*> parameters, FunctionBody body);

/// LLVM type of one element in a register; Bool is i1.
llvm::Type* type_of(DType dtype, llvm::LLVMContext& context);

/// Emits for (i = first; i < last; i += step) body(i). No loop is emitted where constants show that
/// there is at most one iteration.
void emit_for(llvm::IRBuilderBase& ir, llvm::Value* first, llvm::Value* last, std::int64_t step,
              llvm::function_ref<void(llvm::Value*)> body);

/// Loop with carried values; returns the final ones.
using Values = llvm::SmallVector<llvm::Value*, 40>;
enum class TripCount : std::uint8_t { Any, AtLeastOne };  // number of iterations
Values emit_for(llvm::IRBuilderBase& ir, llvm::Value* first, llvm::Value* last, std::int64_t step,
                Values carried, llvm::function_ref<Values(llvm::Value*, const Values&)> body,
                TripCount trip_count = TripCount::Any);

/// Prefetch hint for the cache line of an address.
struct Prefetch {
  int level = 1;  // cache level
  bool writes = false;
};
void emit_prefetch(llvm::IRBuilderBase& ir, llvm::Value* address, const Prefetch& how = {});

/// LLVM intrinsic by name, with the types that it is overloaded by.
llvm::Function* intrinsic_named(llvm::Module& module, const std::string& name,
                                llvm::ArrayRef<llvm::Type*> overloads = {});

void emit_if(llvm::IRBuilderBase& ir, llvm::Value* condition, llvm::function_ref<void()> then);

}  // namespace tessera::codegen
