#pragma once

#include <optional>
#include <set>

#include "tessera/tile/cpu/placement.h"
#include "tessera/tile/passes/linear.h"

namespace tessera::tile::cpu {

/// Which stores into views may be done in one nest with what is computed beside them, so that what
/// they have in common (the weights of neighbouring pixels, a sum that is stored and normalized) is
/// computed once.
class Sharing {
 public:
  Sharing(const Kernel& kernel, const Placement& placement, const NestOptions& options)
      : kernel_(kernel),
        placement_(placement),
        shares_(!options.overlap && !options.scalar),
        forms_(kernel) {}

  /// Whether a root may join those of a nest as far as memory goes: none of them reads what another
  /// stores, stores do not meet, and all of them end at the same place.
  bool may_join(const Nest& nest, const Root& root) const;

 private:
  bool collect_loads(ValueId value, std::set<ValueId>& seen, std::set<ValueId>& params) const;
  std::optional<std::set<ValueId>> loads_of(const Root& root) const;
  bool is_apart(const Operation& a, const Operation& b) const;
  bool is_clipped_alike(const Operation& a, const Operation& b) const;

  const Kernel& kernel_;
  const Placement& placement_;
  bool shares_;
  LinearForms forms_;
};

}  // namespace tessera::tile::cpu
