#pragma once

#include <map>

#include "tessera/tile/passes/ranges.h"

namespace tessera::tile {

/// The linear forms of the scalars of one kernel. A sum or product is taken apart only where it
/// does not wrap: of 64 bits, or by its facts.
class LinearForms {
 public:
  explicit LinearForms(const Kernel& kernel);

  Linear of(ValueId scalar) const;
  const std::vector<Facts>& facts() const { return facts_; }
  /// The least and the greatest that a form can be, where known.
  Interval bounds(const Linear& form) const;

 private:
  std::optional<Linear> parts(ValueId scalar) const;

  const Kernel& kernel_;
  std::vector<Facts> facts_;
  std::vector<std::optional<OpId>> definitions_;
  mutable std::map<ValueId, Linear> known_;
  mutable int depth_ = 0;  // of reading; long chains are left alone
};

/// a + factor * b; none where a number leaves 64 bits.
std::optional<Linear> combine(const Linear& a, const Linear& b, std::int64_t factor);
/// The factor of a value in a form.
std::int64_t factor_of(const Linear& form, ValueId value);

}  // namespace tessera::tile
