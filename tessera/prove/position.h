#pragma once

#include <cstdint>
#include <vector>

namespace tessera::prove {

/// Indices of an element of a row-major tensor.
inline std::vector<std::int64_t> position_of(std::int64_t element,
                                             const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> position(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
    position[axis] = element % shape[axis];
  return position;
}

}  // namespace tessera::prove
