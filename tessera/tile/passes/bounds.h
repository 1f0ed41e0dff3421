#pragma once

#include <map>
#include <optional>
#include <utility>

#include "tessera/tile/passes/affine_scalars.h"

namespace tessera::tile {

/// Whether the operation is an access to a view: Vload or Vstore.
bool is_access(const Operation& op);

/// Bounds analysis: whether accesses to views are in bounds.
class Bounds {
 public:
  explicit Bounds(const Kernel& kernel);

  const AffineScalars& forms() const { return forms_; }
  /// Distance from the end of an access to the end of the view, along an axis.
  std::optional<AffineScalar> gap(const Operation& access, std::size_t axis) const;
  /// Whether the access is known not to start before the view.
  bool begins_inside(const Operation& access, std::size_t axis) const;
  /// Whether an affine form is known to be non-negative.
  bool not_negative(AffineScalar form) const;
  /// Whether a loop's step is known to be positive.
  bool steps_forward(const Operation& loop) const;

 private:
  std::optional<AffineScalar> without(const AffineScalar& form,
                                      const AffineScalar::Term& term) const;
  std::optional<AffineScalar> first(const Operation& loop) const;
  std::optional<AffineScalar> last(const Operation& loop) const;
  std::optional<AffineScalar> extent(ValueId view, std::size_t axis) const;

  const Kernel& kernel_;
  AffineScalars forms_;
  std::vector<std::optional<OpId>> definitions_;
  std::map<ValueId, const Operation*> loops_;                    // by index variable
  std::map<std::pair<ValueId, std::int64_t>, ValueId> extents_;  // by view and axis
};

}  // namespace tessera::tile
