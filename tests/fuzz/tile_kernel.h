#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/tile/interp.h"

/// Runs of tile kernels that the fuzzers share.
namespace tessera::fuzz {

inline constexpr std::int64_t kMostElements = 256;  // of a tile of a kernel that is run
inline constexpr std::int64_t kExtent = 5;          // where a view leaves it open

/// Runs a kernel on small memory: whatever it does, the answer is a diagnostic or memory.
inline void run_small(const tile::Kernel& kernel) {
  for (const tile::Value& value : kernel.values) {
    if (!value.type.is_view() && value.type.count() > kMostElements) return;
  }
  alignas(8) static std::byte memory[4096] = {};
  std::vector<tile::Argument> arguments;
  for (const tile::ValueId id : kernel.params()) {
    const tile::Type& type = kernel.type(id);
    if (type.is_number()) {
      arguments.push_back(tile::Argument::integer(type.dtype, 1));
    } else if (type.is_pointer()) {
      arguments.push_back(tile::Argument::pointer(type.dtype, memory, sizeof memory));
    } else {
      tile::Extents shape = type.shape, strides = type.strides;
      std::replace(shape.begin(), shape.end(), tile::kDynamic, kExtent);
      std::replace(strides.begin(), strides.end(), tile::kDynamic, std::int64_t{1});
      arguments.push_back(tile::Argument::view(type.dtype, memory, shape, strides));
      if (arguments.back().bytes > static_cast<std::int64_t>(sizeof memory)) return;
    }
  }
  (void)tile::interpret(kernel, arguments, {2, 1, 1}, {.most_steps = 500});
}

}  // namespace tessera::fuzz
