#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/support/tensor.h"

namespace tessera::prove {

/// Signature of a tensor in one run, by which values of two graphs are paired that may be equal.
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
/// Whether a tensor of i8 may have the elements of one of u8, less 128: how tools turn the signed
/// quantization of a tensor into the unsigned one.
bool may_be_signed(const Fingerprint& i8, const Fingerprint& u8);
/// The order of a's axes in which it may be equal to b; nothing where there is none.
std::optional<std::vector<std::int64_t>> may_transpose(const Fingerprint& a, const Fingerprint& b);

}  // namespace tessera::prove
