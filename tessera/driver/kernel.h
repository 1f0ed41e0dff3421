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

/// A kernel from a file of tile text.
Expected<tile::Kernel> read_kernel(const std::filesystem::path& path);

/// `4`, `4,2`, `4,2,8`.
Expected<tile::Grid> parse_grid(std::string_view text);

/// Arguments with memory of their own.
struct KernelData {
  std::vector<std::vector<std::byte>> memory = {};  // by argument; none for numbers
  std::vector<tile::Argument> arguments = {};
};

/// Arguments for every parameter, as texts say: `x=f32[128, 64]` is memory filled by the seed
/// (floats between -2 and 2, integers from 0 to 99), `n=1000` is a number. Behind extents,
/// `by [1, 128]` are the strides of a view, and `below 7` has integers from 0 to 6. Views whose
/// extents are all known need no text.
struct KernelDataOptions {
  std::vector<std::string> arguments = {};
  std::uint64_t seed = 1;
  std::int64_t memory_limit = std::int64_t{4} << 30;
};
Expected<KernelData> make_kernel_data(const tile::Kernel& kernel, const KernelDataOptions& options);
/// The same arguments on a copy of the memory.
KernelData copy_of(const KernelData& data);

/// How machine code compares with the interpreter, argument by argument.
struct KernelComparison {
  struct Row {
    std::string name;
    std::string type;
    std::int64_t different = 0;  // elements beyond the tolerance; of integers, that are not equal
    double worst = 0;            // the largest difference, relative where elements exceed 1
  };
  std::vector<Row> rows = {};
  bool agrees = true;
};
KernelComparison compare(const tile::Kernel& kernel, const KernelData& expected,
                         const KernelData& found, double tolerance);
/// What rounding may do to sums of a few thousand elements of the dtype.
double default_tolerance(const tile::Kernel& kernel);

}  // namespace tessera
