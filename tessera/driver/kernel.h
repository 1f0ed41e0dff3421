#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/codegen/compile.h"
#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera {

/// Reads a kernel from a file of tile text, or of Triton's IR if its name ends in .ttir.
Expected<tile::Kernel> read_kernel(const std::filesystem::path& path,
                                   const std::vector<tile::Constant>& constants = {});

/// Integers among descriptions of arguments, which may be values of constants: `BLOCK=512`.
Expected<std::vector<tile::Constant>> constants_of(const std::vector<std::string>& arguments);

/// Kernel arguments that own their memory.
struct KernelData {
  std::vector<std::vector<std::byte>> memory = {};  // by argument; empty for numbers
  std::vector<tile::Argument> arguments = {};
};

/// Descriptions of kernel arguments: `x=f32[128, 64]` is memory with seeded random content (floats
/// between -2 and 2, integers from 0 to 99), `n=1000` is a number. After the extents, `by [1, 128]`
/// gives the strides of a view, and `below 7` limits integers to 0 to 6. Views with static extents
/// and constants of the kernel need no description.
struct KernelDataOptions {
  std::vector<std::string> arguments = {};
  std::uint64_t seed = 1;
  std::int64_t memory_limit = std::int64_t{4} << 30;
};
Expected<KernelData> make_kernel_data(const tile::Kernel& kernel, const KernelDataOptions& options);
/// Deep copy of the arguments and their memory.
KernelData copy_of(const KernelData& data);

/// Parses a launch grid of one to three axes: `4`, `4,2`, `ceil_div(out.0, BLOCK), heads`. Names
/// are integer arguments, extents of memory arguments, and constants of the kernel.
Expected<tile::Grid> parse_grid(std::string_view text, const tile::Kernel& kernel,
                                const KernelData& data);

/// Comparison of machine code with the interpreter, per argument.
struct KernelComparison {
  struct Row {
    std::string name;
    std::string type;
    std::int64_t different = 0;  // floats beyond the tolerance, or integers that differ
    double worst = 0;            // largest difference, relative where elements exceed 1
  };
  std::vector<Row> rows = {};
  bool agrees = true;
};
KernelComparison compare(const tile::Kernel& kernel, const KernelData& expected,
                         const KernelData& found, double tolerance);
/// Tolerance for the rounding of sums of a few thousand elements of the kernel's dtypes.
double default_tolerance(const tile::Kernel& kernel);

}  // namespace tessera
