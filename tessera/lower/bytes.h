#pragma once

#include <optional>
#include <utility>

#include "tessera/tile/schedule.h"

namespace tessera::lower {

/// Quantized integer operand of a contraction: an 8-bit number plus a zero point. int8 dot
/// instructions multiply the bytes, and zero points are applied to the sum:
///
///   sum(k) (a + s) * (b + t)  =  (sum(k) a * b) + s * (sum(k) b) + t * (sum(k) a) + k * s * t
struct ByteFactor {
  Scalar byte = 0;
  DType dtype = DType::I8;  // or U8
  Scalar shift = 0;         // zero point: invariant in the sum
};

/// Operands of the contraction that a stage's main reduction is: numbers, or 8-bit integers with
/// zero points.
struct Factors {
  Scalar first, second;
  std::optional<std::pair<ByteFactor, ByteFactor>> bytes = {};
};
std::optional<Factors> factors_of(const tile::Stage& stage, const Fold& fold);

}  // namespace tessera::lower
