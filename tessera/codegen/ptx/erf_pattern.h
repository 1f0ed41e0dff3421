#pragma once

#include <optional>
#include <vector>

#include "tessera/codegen/llvm/math.h"
#include "tessera/tile/kernel.h"

namespace tessera::codegen::ptx {

/// Pattern matcher for GELU in any of its spellings, for fast precision: fused, its operations cost
/// less, but erf is no longer within 2 ulp.
struct ErfPattern {
  const tile::Kernel& kernel;
  const std::vector<std::optional<tile::OpId>>& definitions;
  Precision precision;

  /// A product with a constant: scale · of.
  struct Multiple {
    tile::ValueId of = 0;
    double scale = 1;
  };
  /// Matches 1 + erf(scale · of) in f32.
  std::optional<Multiple> plus_one(const tile::Operation& op) const;
  /// Matches factor · (1 + erf(scale · of)), with a factor that is a positive multiple of the same
  /// value too.
  struct Product {
    tile::ValueId factor = 0;
    Multiple erf;
  };
  std::optional<Product> times_plus_one(const tile::Operation& op) const;

 private:
  const tile::Operation* made_by(tile::ValueId id) const;
  bool is(const tile::Operation* op, tile::Function function) const;
  std::optional<double> constant(tile::ValueId id) const;
  Multiple multiple(tile::ValueId id) const;
};

}  // namespace tessera::codegen::ptx
