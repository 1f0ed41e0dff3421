#include <cmath>

#include "bench/peers.h"

namespace tessera::bench {

void plain_softmax(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* __restrict from = x + row * columns;
    float* __restrict to = y + row * columns;
    float greatest = from[0];
    for (std::int64_t i = 1; i < columns; ++i) greatest = from[i] > greatest ? from[i] : greatest;
    float sum = 0;
    for (std::int64_t i = 0; i < columns; ++i) {
      to[i] = std::exp(from[i] - greatest);
      sum += to[i];
    }
    const float scale = 1 / sum;
    for (std::int64_t i = 0; i < columns; ++i) to[i] *= scale;
  }
}

void plain_layer_norm(const float* x, const float* weight, const float* bias, float* y,
                      std::int64_t rows, std::int64_t columns, float eps) {
  const auto count = static_cast<float>(columns);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* __restrict from = x + row * columns;
    float* __restrict to = y + row * columns;
    float sum = 0;
    for (std::int64_t i = 0; i < columns; ++i) sum += from[i];
    const float mean = sum / count;
    float squares = 0;
    for (std::int64_t i = 0; i < columns; ++i) squares += (from[i] - mean) * (from[i] - mean);
    const float scale = 1 / std::sqrt(squares / count + eps);
    for (std::int64_t i = 0; i < columns; ++i) {
      to[i] = (from[i] - mean) * scale * weight[i] + bias[i];
    }
  }
}

}  // namespace tessera::bench
