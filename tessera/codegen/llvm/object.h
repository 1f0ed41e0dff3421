#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/machine/machine.h"
#include "tessera/support/expected.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace tessera::codegen {

using ObjectBytes = std::vector<std::byte>;

/// Prepares a module for a machine: triple, data layout, and on every function the CPU and exactly
/// the features of the machine.
Expected<Done> set_target(llvm::Module& module, const machine::Machine& machine);

/// Optimizes a module by a short list of passes (the code already uses native vectors) and
/// generates object code, or assembly. Loops keep their addressing: a moving base, or a base and an
/// index; constant offsets are free.
Expected<ObjectBytes> object_of(llvm::Module& module, const machine::Machine& machine);
Expected<std::string> assembly_of(llvm::Module& module, const machine::Machine& machine);

/// Object code loaded into this process, executable for as long as it lives.
class LoadedObject {
 public:
  static Expected<std::shared_ptr<const LoadedObject>> load(std::span<const std::byte> object);
  virtual ~LoadedObject() = default;
  /// Address of a function that the object defines.
  virtual void* address(const std::string& symbol) const = 0;
};

/// Version of the product and of LLVM; with the exact build of the product: part of every cache
/// key.
std::string release_version();
std::string generator_version();

}  // namespace tessera::codegen
