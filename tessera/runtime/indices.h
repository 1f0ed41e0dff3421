#pragma once

#include <optional>

#include "tessera/runtime/program.h"

namespace tessera::runtime {

/// The first index that a step looks at and that is out of range, in these elements.
std::optional<std::int64_t> index_outside(const step::CheckIndices& step, DType dtype,
                                          const std::byte* elements, int threads);

}  // namespace tessera::runtime
