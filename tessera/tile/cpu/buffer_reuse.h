#pragma once

#include <vector>

#include "tessera/tile/cpu/accesses.h"

namespace tessera::tile::cpu {

/// Buffer reuse: lets a value take the buffer of another that is dead, by the lifetimes of values
/// in the region that computes them.
class BufferReuse {
 public:
  BufferReuse(ScheduledKernel& scheduled, const Placement& placement)
      : scheduled_(scheduled), placement_(placement), accesses_(scheduled, placement) {}

  const Accesses& accesses() const { return accesses_; }

  /// Region whose operations compute the value; null for parameters and values that are not
  /// scheduled yet.
  const Region* region_of(ValueId id) const { return region_of_[id]; }
  void set_region(ValueId id, const Region& region) { region_of_[id] = &region; }
  /// One entry for each value of the kernel.
  void add_values(std::size_t count) { region_of_.resize(region_of_.size() + count); }

  /// Reuses the buffer of a dead operand of the step for a value that is computed from it, position
  /// by position, so that it stays in L1.
  void reuse_operands(const Region& region, std::vector<Step>& steps, std::size_t at);
  /// Whether a step is the last reader of a buffer that is local to this region.
  bool is_done_with(const Region& region, const std::vector<Step>& steps, std::size_t at,
                    int buffer) const;
  /// Whether elements can be written to the buffer one by one without changing later reads.
  bool copies_in_place(ValueId value, int buffer) const;
  /// Lets the step that computes `next` write directly to the buffer of the loop parameter `param`,
  /// if nothing reads the old content afterwards.
  bool update_in_place(ValueId param, ValueId next, const std::vector<ValueId>& yields,
                       std::vector<Step>& body);

 private:
  const Kernel& kernel() const { return scheduled_.kernel; }
  bool is_tile(ValueId id) const { return kernel().type(id).is_tile(); }
  /// Whether roots of the nest that are computed after this one access the buffer.
  bool is_used_after(const Nest& nest, const Root& root, int buffer) const;
  void replace_buffer(Step& step, int from, int to);

  ScheduledKernel& scheduled_;
  const Placement& placement_;
  Accesses accesses_;
  std::vector<const Region*> region_of_;  // by value
};

}  // namespace tessera::tile::cpu
