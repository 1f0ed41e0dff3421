#pragma once

#include <cstdint>
#include <memory>

#include "tessera/codegen/llvm/math.h"
#include "tessera/machine/machine.h"
#include "tessera/tile/cpu/nest.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace tessera::codegen {

/// Options of LLVM IR generation.
struct EmitOptions {
  Precision precision = Precision::Exact;
  bool checked = false;
  bool assertions = false;  // of scalars
  bool overlap = false;     // arguments may alias
};

/// Function and metadata that the module of a kernel defines.
///
///   int tessera_kernel(const uint64_t* launch, int64_t first, int64_t last, std::byte* scratch)
///
/// runs the programs [first, last), axis 0 fastest. `launch` holds the grid (3 words), then the
/// words of the arguments; in debug mode then the first and the last address of each argument's
/// memory. The result is 0, or in debug mode 1 + the index of the operation that failed its check.
constexpr const char* kEntrySymbol = "tessera_kernel";
/// Global that holds the bytes of scratch memory per thread.
constexpr const char* kScratchSymbol = "tessera_scratch_bytes";

std::unique_ptr<llvm::Module> emit(const tile::cpu::ScheduledKernel& scheduled,
                                   const machine::Machine& machine, const EmitOptions& options,
                                   llvm::LLVMContext& context);

}  // namespace tessera::codegen
