#pragma once

#include <set>
#include <utility>

#include "tessera/tile/cpu/nest.h"
#include "tessera/tile/cpu/placement.h"

namespace tessera::tile::cpu {

/// Index map of an operand that may be read at any position, not only the nest's own.
inline IndexMap anywhere() {
  return {{-1, 0}};
}

/// Values and the positions that they are read at: the visited set of a walk over shared
/// expressions.
using ReadPositions = std::set<std::pair<ValueId, IndexMap>>;

/// Buffer accesses of steps and values, for dependence tests while nests are scheduled.
class Accesses {
 public:
  Accesses(const ScheduledKernel& scheduled, const Placement& placement)
      : scheduled_(scheduled), placement_(placement) {}

  bool writes(const Step& step, int buffer) const;
  bool reads(const Step& step, int buffer) const;
  /// Whether a write root reads the buffer: one to the value's own buffer computes the value, one
  /// to another buffer copies it from its own.
  bool write_reads(const Root& root, int buffer) const;
  /// Whether computing a stored value reads the buffer, whether or not the value has a buffer of
  /// its own.
  bool root_reads(ValueId value, int buffer) const;
  bool expression_reads(ValueId value, int buffer) const;
  /// Whether the step reads buffer `to` only where it then writes the same position of `from`.
  bool reads_in_place(const Step& step, int to, int from) const;
  /// Whether the value's expression reads the buffer at the nest's own position alone.
  bool reads_at(ValueId value, const IndexMap& map, int buffer) const;

 private:
  using Values = std::set<ValueId>;
  const Kernel& kernel() const { return scheduled_.kernel; }
  bool is_tile(ValueId id) const { return kernel().type(id).is_tile(); }
  bool nest_reads(const Nest& nest, int buffer) const;
  bool dot_reads(const DotSource& source, int buffer) const;
  // `seen` is the visited set: values are shared, and paths to them are many.
  bool root_reads(ValueId value, int buffer, Values& seen) const;
  bool expression_reads(ValueId value, int buffer, Values& seen) const;
  bool reads_at(ValueId value, const IndexMap& map, int buffer, ReadPositions& seen) const;
  bool operands_read_at(const Operation& op, const IndexMap& map, int buffer,
                        ReadPositions& seen) const;

  const ScheduledKernel& scheduled_;
  const Placement& placement_;
};

}  // namespace tessera::tile::cpu
