#pragma once

#include <optional>

#include "tessera/lower/contraction.h"

namespace tessera::lower {

/// Rounding of the operands of a contraction on a GPU.
Rounding rounding_of(const GroupOptions& options);

/// Contraction of a group as thread blocks compute it, with the options for it.
class BlockForm {
 public:
  BlockForm(const Group& group, const GroupOptions& options);
  BlockForm(const BlockForm&) = delete;  // the contraction refers to the stages
  BlockForm& operator=(const BlockForm&) = delete;

  const Group& group() const { return whole_; }
  const GroupOptions& options() const { return options_; }
  /// Null where the group is none; a sum of nothing is no product.
  const Contraction* contraction() const;

 private:
  Group whole_;
  GroupOptions options_;
  std::optional<Contraction> contraction_;
};

}  // namespace tessera::lower
