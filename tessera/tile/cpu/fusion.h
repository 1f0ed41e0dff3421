#pragma once

#include <optional>

#include "tessera/tile/cpu/accesses.h"
#include "tessera/tile/cpu/share.h"

namespace tessera::tile::cpu {

/// Legality of loop fusion: whether one more computation may join the nest that is being built.
class Fusion {
 public:
  Fusion(const ScheduledKernel& scheduled, const Placement& placement, const NestOptions& options)
      : scheduled_(scheduled),
        placement_(placement),
        sharing_(scheduled.kernel, placement, options) {}

  /// Whether a root over the iteration space may join the nest. `fold` is the axis that it reduces.
  bool may_join(const Root& root, const Extents& space, std::optional<int> fold,
                const Nest& nest) const;
  /// Whether a scalar is the result of a fold in the nest.
  bool is_pending(ValueId id, const Nest& nest) const;
  static bool has_effects(const Nest& nest);

 private:
  const Kernel& kernel() const { return scheduled_.kernel; }
  bool is_tile(ValueId id) const { return kernel().type(id).is_tile(); }
  /// Whether the operands of a value are available before the nest, or at the same position in it.
  /// `seen` is the visited set: values are shared, and paths to them are many.
  bool joins(ValueId value, const IndexMap& map, const Nest& nest, bool is_written,
             ReadPositions& seen) const;

  const ScheduledKernel& scheduled_;
  const Placement& placement_;
  Sharing sharing_;
};

}  // namespace tessera::tile::cpu
