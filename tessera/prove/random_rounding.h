#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/interp/interp.h"

namespace tessera::prove {

/// Outputs of a run in double in which each element of a result that is rounded is rounded up or
/// down at random; what is exact stays as it is. A difference that rounding makes, such as ties of
/// numbers that sigmoid takes for 1, is another one in each such run.
///
/// Nothing for graphs with control flow, or where an operator does not run.
std::optional<std::vector<interp::Value>> run_with_random_rounding(
    const Graph& graph, std::span<const interp::Value> inputs, std::uint64_t seed,
    interp::Options run);

}  // namespace tessera::prove
