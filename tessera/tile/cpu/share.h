#pragma once

#include <optional>
#include <set>

#include "tessera/tile/cpu/placement.h"
#include "tessera/tile/passes/affine_scalars.h"

namespace tessera::tile::cpu {

/// Legality of fusing stores to views into one nest with other computations, so that common
/// subexpressions (the weights of neighbouring pixels, a sum that is stored and normalized) are
/// computed once.
class Sharing {
 public:
  Sharing(const Kernel& kernel, const Placement& placement, const NestOptions& options)
      : kernel_(kernel),
        placement_(placement),
        shares_(!options.overlap && !options.scalar),
        forms_(kernel) {}

  /// Whether a root may join the roots of a nest as far as memory dependences go: none of them
  /// reads what another stores, stores do not overlap, and all of them end at the same place.
  bool may_join(const Nest& nest, const Root& root) const;

 private:
  bool collect_loads(ValueId value, std::set<ValueId>& seen, std::set<ValueId>& params) const;
  std::optional<std::set<ValueId>> loads_of(const Root& root) const;
  bool is_apart(const Operation& a, const Operation& b) const;
  bool is_clipped_alike(const Operation& a, const Operation& b) const;

  const Kernel& kernel_;
  const Placement& placement_;
  bool shares_;
  AffineScalars forms_;
};

}  // namespace tessera::tile::cpu
