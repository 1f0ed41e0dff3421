#pragma once

#include <string>
#include <vector>

#include "tessera/driver/kernel.h"
#include "tessera/machine/machine.h"
#include "tessera/tune/task.h"

namespace tessera {

/// Kernel in the text form of tile IR with a launch, as `tessera kernel bench` has them.
struct KernelText {
  std::string text = {}, file = {};
  std::vector<std::string> arguments = {};  // `x=f32[128, 64]`, `n=1000`, `BLOCK=512`
  std::string grid = {};                    // see parse_grid; empty: one program
};

/// Variant of a kernel: its text with values of its constants, and the grid that follows.
struct KernelVariant {
  std::vector<tile::Constant> constants = {};
  tile::Kernel kernel = {};
  tile::Grid grid = {1, 1, 1};
};

/// Variant with these values of constants, for a launch with this data.
Expected<KernelVariant> kernel_variant(const KernelText& source, const KernelData& data,
                                       const std::vector<tile::Constant>& values);

/// Tuning task of a kernel: the values of its constants.
struct KernelTask : tune::Task {
  std::vector<KernelVariant> variants = {};  // of the space
};

/// Infers the space of a kernel's constants, such as tile sizes: powers of two around the defaults,
/// in all combinations for which the kernel is well formed, has the same parameters, and no tile
/// exceeds the L2 cache, on a GPU the registers of a multiprocessor. Constants that are given as
/// arguments keep their value.
Expected<KernelTask> kernel_task(const KernelText& source, const KernelData& data,
                                 const machine::Machine& machine);

/// Text form of the values of constants in the store: `constants BM=64 BN=32`.
std::string constants_text(const std::vector<tile::Constant>& constants);
Expected<std::vector<tile::Constant>> parse_constants(std::string_view text);

/// Key of a kernel and its launch in the store.
std::string kernel_key(const KernelText& source);

}  // namespace tessera
