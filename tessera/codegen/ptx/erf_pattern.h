#pragma once

#include <optional>
#include <vector>

#include "tessera/codegen/llvm/math.h"
#include "tessera/tile/kernel.h"

namespace tessera::codegen::ptx {

/// Finds what GELU is made of, however it is spelled, where functions may be fast: together its
/// operations cost less, but erf is no longer within 2 ulp.
struct ErfPattern {
  const tile::Kernel& kernel;
  const std::vector<std::optional<tile::OpId>>& definitions;
  Precision precision;

  /// scale · of.
  struct Multiple {
    tile::ValueId of = 0;
    double scale = 1;
  };
  /// Of an operation that is 1 + erf(scale · of), of f32.
  std::optional<Multiple> plus_one(const tile::Operation& op) const;
  /// Of one that is factor · (1 + erf(scale · of)), with a factor that is a positive multiple too.
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
