#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/gpu/benches.h"
#include "bench/gpu/on_gpu.h"
#include "examples/matmul.h"

namespace tessera {

/// Memory for a bench, several times: together larger than the second-level cache.
struct Sets {
  std::vector<runtime::cuda::Memory> memory;
  std::vector<std::vector<runtime::cuda::Address>> addresses;  // of each set: of each room
};
/// The arguments of a kernel in the memory of a set.
std::vector<std::uint64_t> words_in(const Step& step,
                                    const std::vector<runtime::cuda::Address>& addresses);
Expected<Sets> sets_of(const runtime::cuda::Device& device, const std::vector<Room>& rooms);

/// Each prints a line and returns the same as JSON. Launches are timed in a graph of several, with
/// one set of arguments after the other; `loaded` are the kernels of the bench's steps.
Expected<std::string> time_one(const runtime::cuda::Device& device, const Bench& bench,
                               const std::vector<const Loaded*>& loaded, const Sets& sets);
Expected<std::string> time_driver_copy(const runtime::cuda::Device& device);
/// How long products of matrices take to compile, of a median: alone, each of them new to the
/// driver.
using Matmul = std::function<Expected<tile::Kernel>(const tile::examples::MatmulTiles&)>;
Expected<std::string> time_compile(const runtime::cuda::Device& device, const std::string& name,
                                   const Matmul& matmul);
/// What a launch costs the program that asks for it: the median of many. With `maps`: of a product,
/// for which two tensor maps are made.
struct LaunchOf {
  bool maps = false;
};
Expected<std::string> time_launch(const runtime::cuda::Device& device, const LaunchOf& of);

}  // namespace tessera
