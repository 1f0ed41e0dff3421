#pragma once

#include <memory>
#include <string>

#include "tessera/codegen/compile.h"
#include "tessera/codegen/llvm/object.h"
#include "tessera/runtime/object_cache.h"

namespace llvm {
class LLVMContext;
}  // namespace llvm

namespace tessera::codegen {

/// What object code is made for.
struct ObjectFor {
  const machine::Machine& machine;
  const Options& options;
  /// Arguments may share memory.
  bool overlap = false;
};

/// The way of a kernel, which is valid, to a module that is not optimized yet.
Expected<std::unique_ptr<llvm::Module>> module_of(const tile::Kernel& kernel, const ObjectFor& what,
                                                  llvm::LLVMContext& context);

/// Everything that the object code of a kernel depends on: kernels with equal keys have the same,
/// whatever they are called.
std::string object_key(const tile::Kernel& kernel, const ObjectFor& what);

struct KernelObject {
  ObjectBytes bytes = {};
  bool from_cache = false;
};

/// The object code of a valid kernel with this key, from the cache if there is one that has it.
Expected<KernelObject> object_of(const tile::Kernel& kernel, const ObjectFor& what,
                                 const std::string& key, const runtime::ObjectCache* cache);

/// That a kernel needs so much scratch memory.
Diagnostic too_large(const tile::Kernel& kernel, std::int64_t bytes);

}  // namespace tessera::codegen
