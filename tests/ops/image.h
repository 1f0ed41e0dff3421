#pragma once

#include "tests/support/evaluate.h"

namespace tessera::testing {

/// 1 … 16.
inline Tensor image_4x4() {
  return f32({1, 1, 4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
}

}  // namespace tessera::testing
