#pragma once

#include <string>
#include <vector>

#include "bench/gpu/benches.h"
#include "bench/gpu/on_gpu.h"

namespace tessera {

/// Sets of arguments that together are larger than the second-level cache, several times.
Expected<std::vector<There>> sets_of(const runtime::cuda::Device& device, const Bench& bench);

/// Each prints a line and returns the same as JSON. Launches are timed in a graph of several, with
/// one set of arguments after the other.
Expected<std::string> time_one(const runtime::cuda::Device& device, const Bench& bench,
                               const Loaded& loaded, const std::vector<There>& sets);
Expected<std::string> time_driver_copy(const runtime::cuda::Device& device);
/// What a launch costs the program that asks for it: the median of many.
Expected<std::string> time_launch(const runtime::cuda::Device& device);

}  // namespace tessera
