#pragma once

#include <optional>
#include <utility>

#include "tessera/tile/schedule.h"

namespace tessera::lower {

/// A factor of integers as a number of 8 bits and what is added to it. Products of bytes have
/// instructions of their own, and what is added comes into their sum once:
///
///   sum(k) (a + s) * (b + t)  =  (sum(k) a * b) + s * (sum(k) b) + t * (sum(k) a) + k * s * t
struct ByteFactor {
  Scalar byte = 0;
  DType dtype = DType::I8;  // or U8
  Scalar shift = 0;         // the same for all terms of the sum
};

/// The factors of the products that a stage's main fold sums up: numbers, or integers that are
/// bytes and shifts.
struct Factors {
  Scalar first, second;
  std::optional<std::pair<ByteFactor, ByteFactor>> bytes = {};
};
std::optional<Factors> factors_of(const tile::Stage& stage, const Fold& fold);

}  // namespace tessera::lower
