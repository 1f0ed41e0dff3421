#pragma once

#include <cstdint>

namespace tessera::program {

/// Where the inputs and outputs of a graph are.
enum class Boundary : std::uint8_t {
  Caller,  // row by row in the caller's memory: other orders of axes are copies
  Inside,  // in the midst of a larger graph, in whatever order the kernels like: no copies
};

}  // namespace tessera::program
