#pragma once

#include <map>

#include "tessera/expr/affine.h"
#include "tessera/tile/passes/ranges.h"

namespace tessera::tile {

/// An integer value as an affine form of other scalar values.
using AffineScalar = Affine<ValueId>;

/// The affine forms of the scalars of one kernel. A sum or product is taken apart only where it
/// does not wrap: of 64 bits, or by its facts.
class AffineScalars {
 public:
  explicit AffineScalars(const Kernel& kernel);

  AffineScalar of(ValueId scalar) const;
  const std::vector<Facts>& facts() const { return facts_; }
  /// The least and the greatest that a form can be, where known.
  Interval bounds(const AffineScalar& form) const;

 private:
  std::optional<AffineScalar> parts(ValueId scalar) const;

  const Kernel& kernel_;
  std::vector<Facts> facts_;
  std::vector<std::optional<OpId>> definitions_;
  mutable std::map<ValueId, AffineScalar> known_;
  mutable int depth_ = 0;  // of reading; long chains are left alone
};

}  // namespace tessera::tile
