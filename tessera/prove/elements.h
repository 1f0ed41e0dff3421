#pragma once

#include <cstdint>
#include <cstring>

#include "tessera/support/tensor.h"

namespace tessera::prove {

/// Elements of a tensor as numbers; those of f32, the type of most activations, are read without a
/// dispatch on the type for each.
class Elements {
 public:
  explicit Elements(const Tensor& tensor)
      : tensor_(tensor),
        floats_(tensor.dtype == DType::F32 ? tensor.bytes.view().data() : nullptr) {}

  double operator[](std::int64_t position) const {
    if (floats_ == nullptr) return number_at(tensor_, position);
    float number;
    std::memcpy(&number, floats_ + position * static_cast<std::int64_t>(sizeof(float)),
                sizeof(float));
    return number;
  }

 private:
  const Tensor& tensor_;
  const std::byte* floats_;
};

}  // namespace tessera::prove
