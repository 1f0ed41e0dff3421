#pragma once

#include <cstdint>

namespace tessera::bench {

/// What a C programmer writes, compiled with -O3 -ffast-math for this processor.
void plain_softmax(const float* x, float* y, std::int64_t rows, std::int64_t columns);
void plain_layer_norm(const float* x, const float* weight, const float* bias, float* y,
                      std::int64_t rows, std::int64_t columns, float eps);

}  // namespace tessera::bench
