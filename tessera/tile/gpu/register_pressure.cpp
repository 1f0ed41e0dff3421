#include "tessera/tile/gpu/register_pressure.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/tile/gpu/loop_pipeline.h"

namespace tessera::tile::gpu {
namespace {

constexpr int kRegisterBytes = 4;

/// Live ranges of the tiles of a kernel. Positions count operations in program order; a loop has
/// one where it begins and one where it ends.
class LiveRanges {
 public:
  LiveRanges(const PlannedKernel& planned, int stages, const std::set<OpId>& staged)
      : planned_(planned) {
    const Kernel& kernel = planned.kernel;
    for (const OpId load : staged) in_buffers_.insert(kernel.ops[load].out[0]);
    for_each_op(kernel, kernel.body, [&](OpId id) {
      const Operation& op = kernel.ops[id];
      if (op.code != Code::For) return;
      const auto pipeline = pipeline_of(planned, op, stages);
      if (!pipeline) return;
      for (const StagedOperand& staged : pipeline->operands)
        in_buffers_.insert(kernel.ops[staged.load].out[0]);
    });
    walk(kernel.body);
  }

  int most() const {
    std::map<int, int> changes;  // of the number of live registers, by position
    for (const auto& [id, range] : ranges_) {
      if (range.last <= range.first) continue;
      changes[range.first] += registers_of(id);
      changes[range.last] -= registers_of(id);
    }
    int live = 0, most = 0;
    for (const auto& [position, change] : changes) most = std::max(most, live += change);
    return most;
  }

 private:
  struct Range {
    int first = 0, last = 0;
  };
  struct Loop {
    int first = 0;
    std::set<ValueId> used = {};  // values that its iterations read
  };

  void define(const std::vector<ValueId>& ids) {
    for (const ValueId id : ids)
      if (planned_.type(id).is_tile()) ranges_[id] = {position_, position_};
  }
  // The live range of an operand ends where those of the results begin: they reuse its registers.
  void use(ValueId id) {
    const auto range = ranges_.find(id);
    if (range == ranges_.end()) return;
    range->second.last = std::max(range->second.last, position_);
    for (Loop& loop : loops_) loop.used.insert(id);
  }

  void walk(const Region& region) {
    for (const OpId id : region.ops) {
      const Operation& op = planned_.kernel.ops[id];
      ++position_;
      for (std::size_t i = 0; i < op.in.size(); ++i) {
        // A warpgroup's first operand that is the same in all iterations is in shared memory.
        const bool is_held = i == 0 && op.code == Code::Dot && planned_.plan.uses_wgmma(op) &&
                             planned_.plan.fragments(op) && !loops_.empty() &&
                             ranges_.contains(op.in[0]) &&
                             ranges_.at(op.in[0]).first < loops_.back().first;
        if (is_held)
          ranges_.at(op.in[i]).last = std::max(ranges_.at(op.in[i]).last, loops_.back().first);
        else
          use(op.in[i]);
      }
      const bool repeats = op.code == Code::For || op.code == Code::While;
      if (repeats) loops_.push_back({.first = position_});
      for (const Region& inner : op.regions) {
        define(inner.params);
        walk(inner);
      }
      if (repeats) end_loop();
      const bool renames = op.code == Code::Permute || op.code == Code::Reshape;
      if (renames && in_buffers_.contains(op.in[0])) in_buffers_.insert(op.out[0]);
      define(op.out);
    }
  }
  // The next iteration reads what was defined before the loop.
  void end_loop() {
    ++position_;
    for (const ValueId id : loops_.back().used)
      if (ranges_.at(id).first < loops_.back().first) ranges_.at(id).last = position_;
    loops_.pop_back();
  }

  int registers_of(ValueId id) const {
    if (in_buffers_.contains(id) || !planned_.plan.home(id)) return 0;
    const DType dtype = planned_.type(id).dtype;
    if (dtype == DType::Bool) return 0;  // predicates, or recomputed
    return planned_.home(id).registers() * byte_width(dtype) / kRegisterBytes;
  }

  const PlannedKernel& planned_;
  std::set<ValueId> in_buffers_;
  std::map<ValueId, Range> ranges_;
  std::vector<Loop> loops_;
  int position_ = 0;
};

/// Whether the vectors of a load are aligned wherever their rows begin, if the view is.
bool is_aligned(const PlannedKernel& planned, const Operation& load) {
  const Type& view = planned.type(load.in[0]);
  const int run = run_of(view, planned.plan.access(load), planned.type(load.out[0]).shape),
            contiguous = contiguous_axis(view);
  bool aligned = run > 1;
  for (int axis = 0; axis < view.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    aligned = aligned && (axis == contiguous || view.shape[at] == 1 || view.strides[at] % run == 0);
  }
  return aligned;
}

bool is_long(Function function) {
  switch (function) {
    case Function::Log:
    case Function::Log2:
    case Function::Sin:
    case Function::Cos:
    case Function::Tanh:
    case Function::Erf:
    case Function::Sigmoid:
    case Function::Pow: return true;
    default: return false;
  }
}

}  // namespace

int register_pressure(const PlannedKernel& planned, int stages, const std::set<OpId>& staged) {
  return LiveRanges(planned, stages, staged).most();
}

int more_registers(const PlannedKernel& planned, const std::set<OpId>& staged) {
  constexpr int kOnTheWay = 24;
  int addresses = 0, on_the_way = 0;
  const Kernel& kernel = planned.kernel;
  for_each_op(kernel, kernel.body, [&](OpId id) {
    const Operation& op = kernel.ops[id];
    if (op.code == Code::Vload && !staged.contains(id) && !is_aligned(planned, op))
      addresses = std::max(addresses, planned.plan.access(op).registers());
    if (op.code == Code::Map && planned.type(op.out[0]).shape.size() > 1 && is_long(op.function))
      on_the_way = kOnTheWay;
  });
  return addresses + on_the_way;
}

}  // namespace tessera::tile::gpu
