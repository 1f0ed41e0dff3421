#pragma once

#include <map>
#include <optional>
#include <utility>

#include "tessera/tile/passes/linear.h"

namespace tessera::tile {

/// Whether the operation is an access to a view: Vload or Vstore.
bool is_access(const Operation& op);

/// Bounds analysis: whether accesses to views are in bounds.
class Bounds {
 public:
  explicit Bounds(const Kernel& kernel);

  const LinearForms& forms() const { return forms_; }
  /// Distance from the end of an access to the end of the view, along an axis.
  std::optional<Linear> gap(const Operation& access, std::size_t axis) const;
  /// Whether the access is known not to start before the view.
  bool begins_inside(const Operation& access, std::size_t axis) const;
  /// Whether a linear form is known to be non-negative.
  bool not_negative(Linear form) const;
  /// Whether a loop's step is known to be positive.
  bool steps_forward(const Operation& loop) const;

 private:
  std::optional<Linear> without(const Linear& form, const Linear::Term& term) const;
  std::optional<Linear> first(const Operation& loop) const;
  std::optional<Linear> last(const Operation& loop) const;
  std::optional<Linear> extent(ValueId view, std::size_t axis) const;

  const Kernel& kernel_;
  LinearForms forms_;
  std::vector<std::optional<OpId>> definitions_;
  std::map<ValueId, const Operation*> loops_;                    // by index variable
  std::map<std::pair<ValueId, std::int64_t>, ValueId> extents_;  // by view and axis
};

}  // namespace tessera::tile
