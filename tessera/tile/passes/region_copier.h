#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Copies operations with their regions for another region of the same kernel, with fresh results:
/// a version of a part of a kernel.
class RegionCopier {
 public:
  /// Called with each copy, whose operands are those of the version, before it is appended; may
  /// change it and emit others in front of it. `original` is the first result of what is copied.
  using Change = std::function<void(RegionCopier& out, ValueId original, Operation& copy)>;

  /// `now` has the values that replace others in the copies.
  RegionCopier(Kernel& kernel, std::map<ValueId, ValueId> now, Change change = {})
      : kernel_(kernel), now_(std::move(now)), change_(std::move(change)) {}

  std::vector<OpId> copy(const std::vector<OpId>& ops);

  /// Value of the copies that replaces a value.
  ValueId of(ValueId old) const;
  const Type& type(ValueId value) const { return kernel_.type(value); }
  /// Appends an operation and its only result: in front of the copy, within a change.
  ValueId emit(Operation op, const Type& type);
  /// Operations that were emitted outside of copies.
  const std::vector<OpId>& emitted() const { return copies_; }

 private:
  ValueId fresh(Value value);

  Kernel& kernel_;
  std::map<ValueId, ValueId> now_;
  Change change_;
  std::vector<OpId> copies_;  // of the region that is being copied, or emitted outside of one
};

}  // namespace tessera::tile
