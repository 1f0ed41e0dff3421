#pragma once

#include <optional>

#include "tessera/runtime/program.h"

namespace tessera::runtime {

/// First index out of range among the elements that a CheckIndices step covers, if there is one.
std::optional<std::int64_t> index_outside(const step::CheckIndices& step, DType dtype,
                                          const std::byte* elements, int threads);

}  // namespace tessera::runtime
