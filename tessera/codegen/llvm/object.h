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
/// the features that the machine has.
Expected<Done> set_target(llvm::Module& module, const machine::Machine& machine);

/// Optimizes a module by a short list of passes (the code is written in native vectors already) and
/// makes object code, or assembly. Addresses in loops stay as they are written: a base that moves,
/// or a base and an index; constant offsets are free.
Expected<ObjectBytes> object_of(llvm::Module& module, const machine::Machine& machine);
Expected<std::string> assembly_of(llvm::Module& module, const machine::Machine& machine);

/// Object code in memory, ready to run for as long as it lives.
class LoadedObject {
 public:
  static Expected<std::shared_ptr<const LoadedObject>> load(std::span<const std::byte> object);
  virtual ~LoadedObject() = default;
  /// The address of a function of the object, which is there.
  virtual void* address(const std::string& symbol) const = 0;
};

/// The product's version and LLVM's; with the very build of the product: part of every cache key.
std::string release_version();
std::string generator_version();

}  // namespace tessera::codegen
