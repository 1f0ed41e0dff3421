#pragma once

#include <set>
#include <utility>

#include "tessera/tile/cpu/nest.h"
#include "tessera/tile/cpu/placement.h"

namespace tessera::tile::cpu {

/// The map of an operand that is read at other positions than the nest's own.
inline IndexMap anywhere() {
  return {{-1, 0}};
}

/// Values and the positions that they are read at: what a walk over shared expressions has seen.
using ReadPositions = std::set<std::pair<ValueId, IndexMap>>;

/// Which buffers steps and values read and write, by what is scheduled so far.
class Accesses {
 public:
  Accesses(const Scheduled& scheduled, const Placement& placement)
      : scheduled_(scheduled), placement_(placement) {}

  bool writes(const Step& step, int buffer) const;
  bool reads(const Step& step, int buffer) const;
  /// Of a value that is written: it is computed, whether it has a buffer or not.
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
  // `seen` has what a walk came by, without an answer: values are shared, and paths to them many.
  bool root_reads(ValueId value, int buffer, Values& seen) const;
  bool expression_reads(ValueId value, int buffer, Values& seen) const;
  bool reads_at(ValueId value, const IndexMap& map, int buffer, ReadPositions& seen) const;
  bool operands_read_at(const Operation& op, const IndexMap& map, int buffer,
                        ReadPositions& seen) const;

  const Scheduled& scheduled_;
  const Placement& placement_;
};

}  // namespace tessera::tile::cpu
