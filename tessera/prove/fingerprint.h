#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/support/tensor.h"

namespace tessera::prove {

/// What a tensor looks like in a run, so that values of two graphs that may be equal are found.
/// Numbers are sums over the elements, divided by the tensor's norm.
struct Fingerprint {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape = {};
  double norm = 0, sum = 0;
  double in_order = 0;               // weighted by the place in memory: the same after a reshape
  std::vector<double> by_axis = {};  // weighted by the index along an axis: moves with the axis

  /// All elements are finite, and not all zero.
  bool telling = false;
};

Fingerprint fingerprint(const Tensor& tensor);

/// Whether the tensors may be equal, as they are or one after a reshape.
bool may_equal(const Fingerprint& a, const Fingerprint& b);
bool may_reshape(const Fingerprint& a, const Fingerprint& b);
/// The order of a's axes in which it may be equal to b; nothing where there is none.
std::optional<std::vector<std::int64_t>> may_transpose(const Fingerprint& a, const Fingerprint& b);

}  // namespace tessera::prove
