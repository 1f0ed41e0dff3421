#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tessera/tile/gpu/planned_kernel.h"

namespace tessera::tile::gpu {

/// Order of accesses to global memory: finds where a barrier is needed between accesses of
/// different threads.
class AccessOrder {
 public:
  /// Effect of an operation on global memory. `is_known`: on a contiguous view of one axis, so that
  /// a thread's elements follow from `at` and the layout.
  struct Access {
    OpId op = 0;
    bool writes = false, is_known = false;
    ValueId view = {};
    std::vector<ValueId> at = {};
    std::optional<Layout> layout = {};
  };
  static Access of(const PlannedKernel& planned, OpId id);

  /// Barrier that an access needs before it: always, or where these pairs of a later and an earlier
  /// access overlap; none where there are no pairs.
  struct Need {
    bool always = false;
    std::vector<std::pair<OpId, OpId>> overlapping = {};
  };
  /// Barrier that an access needs before it; `barriers` have been emitted so far.
  Need before(const Access& access, int barriers);
  /// Adds the access, after that barrier.
  void record(const Access& access, int barriers);
  /// The access is complete; barriers within it have ordered all earlier ones.
  void complete(const Access& access, int barriers);
  /// Start of code with several predecessors, which may have `written`.
  void join(bool written, int barriers);
  void clear() { accesses_.clear(); }

 private:
  std::vector<Access> accesses_;  // since the last barrier
  int ordered_at_ = 0;            // number of barriers when the first of them was made
  bool has_written_ = false;
};

}  // namespace tessera::tile::gpu
