#pragma once

#include <cstdint>

namespace tessera::program {

/// Memory of the inputs and outputs of a graph.
enum class Boundary : std::uint8_t {
  Caller,  // the caller's, row-major: other layouts need copies
  Inside,  // that of a larger graph, in any layout: no copies
};

}  // namespace tessera::program
