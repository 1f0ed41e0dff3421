#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/codegen/llvm/math.h"
#include "tessera/runtime/cuda/tensor_map.h"
#include "tessera/support/expected.h"
#include "tessera/tile/kernel.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm
namespace tessera::tile::gpu {
struct ScheduledKernel;
}  // namespace tessera::tile::gpu

namespace tessera::codegen {

/// GPU architectures that PTX is generated for: Ampere and later, and Hopper with its specific
/// instructions.
enum class PtxTarget : std::uint8_t { Sm80, Sm90a };

/// Target features, launcher capabilities and overrides of scheduling choices.
struct PtxOptions {
  PtxTarget target = PtxTarget::Sm90a;
  Precision precision = Precision::Exact;
  /// Whether f32 matmuls may round their factors to tf32, for tensor cores.
  bool tf32 = false;
  /// Bytes, a power of two, of which the launcher passes multiples as addresses of views.
  std::int64_t alignment = 1;
  /// Parameters as Triton's launcher passes them, in place of 64-bit words: each in its own width,
  /// then two pointers to scratch memory; one block for each program, not persistent, without
  /// tensor maps.
  bool triton_abi = false;
  /// With `triton_abi`: a power of two for each parameter, of which the launcher passes multiples
  /// (bytes, of a pointer).
  std::vector<std::int64_t> divisors = {};
  /// Number of threads of a program that has no schedule of its own for rows: at least, where it
  /// multiplies matrices; 0: as few as do.
  int threads = 0;
  /// Number of pipeline stages of a loop's operands; fewer where shared memory is short.
  int stages = 4;
  /// Maximum number of pipeline stages where two blocks still fit on an SM; 0: `stages`.
  int more_stages = 0;
  /// Whether blocks may be persistent (PtxKernel::persistent), which the launcher must support.
  bool persistent = false;
  /// Whether persistent blocks may be warp-specialized (docs/gpu.md).
  bool warp_specialization = true;
  /// Whether the launcher can encode TMA tensor maps (PtxKernel::maps), so that producer warps copy
  /// by TMA.
  bool maps = false;
  /// Whether the launcher makes launches programmatic dependents of the one before
  /// (griddepcontrol): blocks await earlier grids themselves. Needs sm_90.
  bool programmatic_launch = false;
  /// Whether each parameter is a view of memory that no kernel writes, such as weights: read before
  /// earlier grids are awaited. Missing ones are not.
  std::vector<bool> constants = {};
  /// Bytes of the largest tile per thread, in kernels without matmuls; 0: as row_schedule says.
  int bytes_per_thread = 0;
  /// Number of rows prefetched by persistent blocks; 0: blocks are not persistent; -1: as
  /// row_schedule says.
  int prefetched_rows = -1;
  /// Number of programs merged into one (coarsening), in kernels without matmuls; 0: as
  /// row_schedule says.
  int coarsening = 0;
  /// Maximum number of registers per thread, in kernels without matmuls; 0: as row_schedule says.
  int registers = 0;
  /// Whether 16-bit elements of rows stay packed in registers until a reduction; -1: as
  /// row_schedule says.
  int packed = -1;
  /// Elements of a row per pass, where it has more; 0: as row_schedule says.
  std::int64_t part = 0;
  /// Bytes of such a row cached in shared memory between passes; -1: as row_schedule says.
  std::int64_t cached_bytes = -1;
};

/// Cache key of the options: equal for equal options only.
std::string key_of(const PtxOptions& options);

/// A kernel as PTX. A program runs on a block of `threads` threads, or small programs share one;
/// the parameters are the words of the arguments (tile::words_of), 64 bits each.
struct PtxKernel {
  std::string text;
  std::string entry;
  int threads = 0;
  int words = 0;
  int shared_bytes = 0;  // dynamic shared memory
  /// Programs of the grid per block, along axis 0.
  int programs = 1;
  /// Whether blocks are persistent: each runs several programs in turn, so that one wave of blocks
  /// suffices. Then, and where a block has several programs, an additional word is the number of
  /// programs along axis 0.
  bool persistent = false;
  /// TMA tensor maps, the last parameters; a word before them is 1 if all of them could be encoded.
  std::vector<runtime::cuda::TensorMap> maps = {};
  /// Whether threads need more registers than all of a block have at first (setmaxnreg): such code
  /// is assembled as a whole program.
  bool is_whole = false;
};

/// GPU schedule of a kernel, down to the program of its blocks (form S), without any code: whether
/// it can be compiled, and what for. The diagnostics are those of ptx_of.
Expected<std::unique_ptr<tile::gpu::ScheduledKernel>> schedule_for_ptx(
    const tile::Kernel& kernel, const PtxOptions& options = {});

/// Compiles a kernel to PTX. A tile that does not fit and an unsupported operation are diagnostics:
/// `ptx-tile-too-large`, `ptx-shared-memory`, `ptx-unsupported`.
Expected<PtxKernel> ptx_of(const tile::Kernel& kernel, const PtxOptions& options = {});

/// LLVM module of a kernel before the NVPTX back end: the code of each thread, with NVVM
/// intrinsics.
struct PtxModule {
  std::unique_ptr<llvm::Module> module;
  PtxKernel kernel;      // without text
  int side_by_side = 1;  // programs of a block, each of which is run by a warp
};
Expected<PtxModule> ptx_module_of(const tile::Kernel& kernel, llvm::LLVMContext& context,
                                  const PtxOptions& options = {});

}  // namespace tessera::codegen
