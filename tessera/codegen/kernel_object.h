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

/// Compilation target of object code: machine, options and aliasing of arguments.
struct ObjectTarget {
  const machine::Machine& machine;
  const Options& options;
  /// Whether arguments may alias.
  bool overlap = false;
};

/// LLVM module of a valid kernel, before optimization.
Expected<std::unique_ptr<llvm::Module>> module_of(const tile::Kernel& kernel,
                                                  const ObjectTarget& target,
                                                  llvm::LLVMContext& context);

/// Cache key of object code: everything that it depends on. Kernels with equal keys have the same
/// object code, whatever their names.
std::string object_key(const tile::Kernel& kernel, const ObjectTarget& target);

/// Object code of one kernel.
struct KernelObject {
  ObjectBytes bytes = {};
  bool from_cache = false;
};

/// Object code of a valid kernel with this key: from the cache if it is there, else compiled and
/// stored.
Expected<KernelObject> object_of(const tile::Kernel& kernel, const ObjectTarget& target,
                                 const std::string& key, const runtime::ObjectCache* cache);

/// Diagnostic for a kernel that needs too much scratch memory.
Diagnostic too_large(const tile::Kernel& kernel, std::int64_t bytes);

}  // namespace tessera::codegen
