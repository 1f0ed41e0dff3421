#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/gpu/timing.h"

namespace tessera {

/// What the first set of a bench's arguments gives, on this computer: what its last kernel leaves
/// in its last argument.
struct Result {
  DType dtype = DType::F32;
  std::vector<std::byte> bytes = {};
};

/// Overwrites what kernels are to write in the first set, so that results of others are not taken
/// for theirs.
Expected<Done> spoil(const Bench& bench, Sets& sets);
Expected<Result> result_of(const Bench& bench, const Sets& sets);

/// The result of other kernels for the same steps, launched once: as what is timed is compared
/// with.
Expected<Result> reference_of(const runtime::cuda::Device& device, const Bench& bench,
                              const std::vector<const Loaded*>& loaded, Sets& sets);

/// Empty where a result is the expected one, up to the order of sums and fast functions.
std::string difference(const Result& expected, const Result& found);

}  // namespace tessera
