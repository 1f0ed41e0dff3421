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

namespace tessera::codegen {

/// The generations that code is written for: all from Ampere on, and Hopper with what it alone has.
enum class PtxTarget : std::uint8_t { Sm80, Sm90a };

struct PtxOptions {
  PtxTarget target = PtxTarget::Sm90a;
  Precision precision = Precision::Exact;
  /// Whether factors of f32 may be rounded to tf32, for tensor cores.
  bool tf32 = false;
  /// Copies of a loop's operands that are in flight at once; fewer where shared memory is short.
  int stages = 4;
  /// Up to so many where two blocks still find room in a multiprocessor.
  int more_stages = 0;
  /// Whether blocks may go on with further programs (PtxKernel::loops), which who launches must
  /// know.
  bool loops = false;
  /// Whether some threads may copy for the others, where blocks go on (docs/gpu.md, Roles).
  bool roles = true;
  /// Whether who launches can describe views to the GPU (PtxKernel::maps): threads that copy then
  /// have the GPU copy boxes.
  bool maps = false;
  /// Of the largest tile that memory has, without products; 0: as rows_of says.
  int bytes_per_thread = 0;
  /// How many rows are read ahead by blocks that go on; 0: blocks do not; -1: as rows_of says.
  int rows_ahead = -1;
  /// Programs of the grid that are run as one, without products; 0: as rows_of says.
  int together = 0;
  /// That a thread may have, without products; 0: as rows_of says.
  int registers = 0;
  /// Whether rows of 16-bit numbers wait for a reduction as they lie in memory; -1: as rows_of
  /// says.
  int packed = -1;
  /// Elements of a row that are read at once, where it has more; 0: as rows_of says.
  std::int64_t part = 0;
  /// Of such a row, bytes that stay in shared memory; -1: as rows_of says.
  std::int64_t keep_bytes = -1;
};

/// Equal for equal options alone: for caches.
std::string key_of(const PtxOptions& options);

/// A kernel for NVIDIA GPUs. Each program is a block of `threads` threads, or small ones share it;
/// its parameters are the words of the arguments (tile::words_of), 64 bits each.
struct PtxKernel {
  std::string text;
  std::string entry;
  int threads = 0;
  int words = 0;
  int shared_bytes = 0;  // to be asked for at launch
  /// Programs of the grid in a block, along axis 0.
  int programs = 1;
  /// Whether a block goes on with further programs, so that as many blocks as run at once are
  /// enough. Where it does, and where a block has several programs, a last word is how many there
  /// are along axis 0.
  bool loops = false;
  /// Then a further word is 1 if all of these could be made, and the maps are the last parameters.
  std::vector<runtime::cuda::TensorMap> maps = {};
};

/// Compiles a kernel. A tile that does not fit and an operation that this backend does not know are
/// diagnostics: `ptx-tile-too-large`, `ptx-shared-memory`, `ptx-unsupported`.
Expected<PtxKernel> ptx_of(const tile::Kernel& kernel, const PtxOptions& options = {});

/// The same before LLVM's NVPTX backend sees it: what each thread does, with NVVM's intrinsics.
struct PtxModule {
  std::unique_ptr<llvm::Module> module;
  PtxKernel kernel;  // without text
};
Expected<PtxModule> ptx_module_of(const tile::Kernel& kernel, llvm::LLVMContext& context,
                                  const PtxOptions& options = {});

}  // namespace tessera::codegen
