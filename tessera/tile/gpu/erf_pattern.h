#pragma once

#include <optional>
#include <vector>

#include "tessera/tile/kernel.h"

namespace tessera::tile::gpu {

/// Pattern matcher for GELU in any of its spellings, for fast precision: fused, its operations cost
/// less, but erf is no longer within 2 ulp.
struct ErfPattern {
  const Kernel& kernel;
  const std::vector<std::optional<OpId>>& definitions;
  bool is_fast = false;  // fast precision

  /// A product with a constant: scale · of.
  struct Multiple {
    ValueId of = 0;
    double scale = 1;
  };
  /// Matches 1 + erf(scale · of) in f32.
  std::optional<Multiple> plus_one(const Operation& op) const;
  /// Matches factor · (1 + erf(scale · of)), with a factor that is a positive multiple of the same
  /// value too.
  struct Product {
    ValueId factor = 0;
    Multiple erf;
  };
  std::optional<Product> times_plus_one(const Operation& op) const;

 private:
  const Operation* made_by(ValueId id) const;
  bool is(const Operation* op, Function function) const;
  std::optional<double> constant(ValueId id) const;
  Multiple multiple(ValueId id) const;
};

}  // namespace tessera::tile::gpu
