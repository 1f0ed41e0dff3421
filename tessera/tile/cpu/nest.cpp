#include "tessera/tile/cpu/nest.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "tessera/tile/cpu/buffer_reuse.h"
#include "tessera/tile/cpu/epilogue.h"
#include "tessera/tile/cpu/fusion.h"
#include "tessera/tile/cpu/placement.h"
#include "tessera/tile/cpu/vectors.h"

namespace tessera::tile::cpu {
namespace {

/// Padding between buffers: whole pages apart they would conflict in the same sets of L1.
constexpr std::int64_t kAlignment = 128, kPage = 4096;

/// Whether a value is a constant of zeros, so that a dot need not read an addend.
bool is_zero_tile(const Kernel& kernel, const Placement& placement, ValueId id) {
  while (placement.definition[id]) {
    const Operation& op = kernel.ops[*placement.definition[id]];
    if (op.code == Code::Const) return op.literal.number == 0 && op.literal.integer == 0;
    if (op.code != Code::Broadcast && op.code != Code::Reshape && op.code != Code::Hint)
      return false;
    id = op.in[0];
  }
  return false;
}

/// Schedules the operations of a kernel, region by region, as steps: fused loop nests, dots, loops
/// and scalar operations, with a buffer for every tile that is stored.
class Scheduler {
 public:
  Scheduler(const Kernel& kernel, const machine::Machine& machine, const NestOptions& options)
      : machine_(machine),
        options_(options),
        placement_(place(kernel, machine, options)),
        result_{.kernel = kernel},
        fusion_(result_, placement_, options),
        reuse_(result_, placement_) {
    result_.buffer_of.assign(kernel.values.size(), -1);
    uses_ = uses(kernel);
    reuse_.add_values(kernel.values.size());
  }

  ScheduledKernel run() {
    result_.steps = region_steps(kernel().body);
    for (std::size_t i = 0; i < result_.buffers.size(); ++i) {
      Buffer& buffer = result_.buffers[i];
      const std::vector<int>& used = result_.buffer_of;
      if (std::find(used.begin(), used.end(), static_cast<int>(i)) == used.end()) continue;
      buffer.offset = result_.buffer_bytes;
      const std::int64_t bytes =
          Type::tile(buffer.dtype, buffer.shape).count() * byte_width(buffer.dtype);
      result_.buffer_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
      if (bytes % kPage == 0) result_.buffer_bytes += kAlignment;
    }
    return std::move(result_);
  }

 private:
  const Kernel& kernel() const { return result_.kernel; }
  bool is_tile(ValueId id) const { return kernel().type(id).is_tile(); }

  int new_buffer(const Type& type) {
    result_.buffers.push_back({type.is_pointer() ? DType::I64 : type.dtype, type.shape, 0});
    return static_cast<int>(result_.buffers.size() - 1);
  }
  int buffer_of(ValueId id) {
    int& buffer = result_.buffer_of[id];
    if (buffer < 0) buffer = new_buffer(kernel().type(id));
    return buffer;
  }

  std::vector<Step> region_steps(const Region& region) {
    std::vector<Step> steps;
    Nest nest;
    open_regions_.push_back(&region);
    place_concats(region);
    for (const OpId id : region.ops) {
      const Operation& op = kernel().ops[id];
      if (op.code == Code::Yield) break;
      add_operation(id, steps, nest);
      for (const ValueId out : op.out) reuse_.set_region(out, region);
    }
    flush(steps, nest);
    open_regions_.pop_back();
    for (std::size_t i = 0; i < steps.size(); ++i) reuse_.reuse_operands(region, steps, i);
    if (!options_.overlap && !options_.scalar)
      fuse_epilogues(steps, result_, placement_, machine_, [&](std::size_t at, int buffer) {
        return !reuse_.is_done_with(region, steps, at, buffer);
      });
    return steps;
  }

  void flush(std::vector<Step>& steps, Nest& nest) {
    if (!nest.roots.empty()) {
      choose_vectors(nest, result_, placement_, machine_, options_);
      steps.push_back({.kind = Step::Kind::Nest, .nest = std::move(nest)});
    }
    nest = {};
  }

  void add_operation(OpId id, std::vector<Step>& steps, Nest& nest) {
    const Operation& op = kernel().ops[id];
    switch (op.code) {
      case Code::Dot: flush(steps, nest); return add_dot(id, steps);
      case Code::For:
      case Code::While: flush(steps, nest); return add_loop(id, steps);
      case Code::If: flush(steps, nest); return add_if(id, steps);
      case Code::Concat: return add_concat(id, steps, nest);
      case Code::Reduce:
      case Code::Scan: return add_fold(id, steps, nest);
      case Code::Store:
      case Code::Vstore:
      case Code::Atomic:
      case Code::Cas:
        if (!is_tile(op.code == Code::Vstore ? op.in.back() : op.in[1])) break;
        for (const ValueId out : op.out) buffer_of(out);
        return add_root({.kind = Root::Kind::Effect, .op = id},
                        kernel().type(op.code == Code::Vstore ? op.in.back() : op.in[1]).shape, {},
                        steps, nest);
      case Code::Assert:
        if (!is_tile(op.in[0])) break;
        return add_root({.kind = Root::Kind::Check, .op = id}, kernel().type(op.in[0]).shape, {},
                        steps, nest);
      case Code::Print:
      case Code::Barrier:
      case Code::Assume: return;
      default: break;
    }
    if (is_inline(kernel(), op)) {
      const ValueId out = op.out[0];
      if (placement_.reshaped[out]) {
        result_.buffer_of[out] = buffer_of(*placement_.reshaped[out]);
      } else if (placement_.kept[out]) {
        add_write(out, buffer_of(out), {}, steps, nest);
      }
      return;
    }
    // All other operations compute scalars.
    const bool waits = std::any_of(op.in.begin(), op.in.end(), [&](ValueId in) {
      return is_tile(in) || fusion_.is_pending(in, nest);
    });
    if (waits || has_effect(op.code) || (reads_memory(op.code) && fusion_.has_effects(nest))) {
      flush(steps, nest);
    }
    steps.push_back({.kind = Step::Kind::Scalar, .op = id});
  }

  void add_write(ValueId value, int buffer, Extents at, std::vector<Step>& steps, Nest& nest) {
    add_root({.kind = Root::Kind::Write, .value = value, .buffer = buffer, .at = std::move(at)},
             kernel().type(value).shape, {}, steps, nest);
  }

  void add_fold(OpId id, std::vector<Step>& steps, Nest& nest) {
    const Operation& op = kernel().ops[id];
    for (const ValueId out : op.out) {
      if (is_tile(out)) buffer_of(out);
    }
    const auto kind = op.code == Code::Reduce ? Root::Kind::Reduce : Root::Kind::Scan;
    add_root({.kind = kind, .op = id}, kernel().type(op.in[0]).shape, static_cast<int>(op.ints[0]),
             steps, nest);
    // Scan results are read only when the scan is complete.
    if (op.code == Code::Scan) flush(steps, nest);
  }

  /// Destination of the parts of a concat: side by side in its buffer, or in that of an enclosing
  /// concat.
  struct Parts {
    int buffer = -1;
    Extents at = {};
  };
  Parts parts_of(ValueId concat) {
    if (const auto outer = inner_concats_.find(concat); outer != inner_concats_.end())
      return outer->second;
    return {buffer_of(concat), Extents(kernel().type(concat).shape.size(), 0)};
  }
  template <class Visit>
  void each_part(const Operation& op, const Visit& visit) {
    Parts parts = parts_of(op.out[0]);
    const auto axis = static_cast<std::size_t>(op.ints[0]);
    for (const ValueId part : op.in) {
      visit(part, parts);
      parts.at[axis] += kernel().type(part).shape[axis];
    }
  }

  void add_concat(OpId id, std::vector<Step>& steps, Nest& nest) {
    each_part(kernel().ops[id], [&](ValueId part, const Parts& parts) {
      if (!inner_concats_.contains(part)) add_write(part, parts.buffer, parts.at, steps, nest);
    });
  }

  void place_concats(const Region& region) {
    const auto is_inner = [&](ValueId part) {
      const auto definition = placement_.definition[part];
      return definition && kernel().ops[*definition].code == Code::Concat && uses_[part] == 1 &&
             std::find(region.ops.begin(), region.ops.end(), *definition) != region.ops.end();
    };
    for (auto id = region.ops.rbegin(); id != region.ops.rend(); ++id) {
      if (kernel().ops[*id].code != Code::Concat) continue;
      each_part(kernel().ops[*id], [&](ValueId part, const Parts& parts) {
        if (is_inner(part)) inner_concats_[part] = parts;
      });
    }
  }

  /// Adds a root to the open nest if that is legal, or else starts a new nest.
  void add_root(Root root, const Extents& space, std::optional<int> fold, std::vector<Step>& steps,
                Nest& nest) {
    if (!fusion_.may_join(root, space, fold, nest)) flush(steps, nest);
    if (nest.roots.empty()) nest.space = space;
    if (fold) nest.fold = fold;
    nest.roots.push_back(std::move(root));
  }

  void add_dot(OpId id, std::vector<Step>& steps) {
    const Operation& op = kernel().ops[id];
    const ValueId c = op.in[2];
    DotStep dot{.op = id};
    dot.a = trace_source(kernel(), placement_, op, 0).source;
    dot.b = trace_source(kernel(), placement_, op, 1).source;
    const bool in_place = may_overwrite(c) && is_own(c);
    if (in_place) result_.buffer_of[op.out[0]] = result_.buffer_of[c];
    dot.out = buffer_of(op.out[0]);
    dot.accumulate = in_place || !is_zero_tile(kernel(), placement_, c);
    if (dot.accumulate && !in_place) {
      Nest nest;
      add_write(c, dot.out, {}, steps, nest);
      flush(steps, nest);
    }
    steps.push_back({.kind = Step::Kind::Dot, .op = id, .dot = std::move(dot)});
  }

  /// Whether a kept value has one use only.
  bool may_overwrite(ValueId id) const {
    return placement_.kept[id] && uses_[id] == 1 && result_.buffer_of[id] >= 0 &&
           !placement_.reshaped[id];
  }

  /// Whether a kept value is local to the region that is being scheduled: an outer region may need
  /// it in another iteration, so it must not be overwritten.
  bool is_own(ValueId c) const {
    const std::vector<ValueId>& params = open_regions_.back()->params;
    return reuse_.region_of(c) == open_regions_.back() ||
           std::find(params.begin(), params.end(), c) != params.end();
  }

  void add_if(OpId id, std::vector<Step>& steps) {
    const Operation& op = kernel().ops[id];
    Step step{.kind = Step::Kind::If, .op = id};
    for (const Region& region : op.regions) {
      std::vector<Step> body = region_steps(region);
      const std::vector<ValueId>& yields = kernel().ops[region.ops.back()].in;
      std::vector<std::pair<ValueId, int>> copies;
      for (std::size_t i = 0; i < op.out.size(); ++i) {
        if (is_tile(op.out[i])) copies.emplace_back(yields[i], buffer_of(op.out[i]));
      }
      add_copies(copies, body);
      step.bodies.push_back(std::move(body));
    }
    steps.push_back(std::move(step));
  }

  void add_copies(const std::vector<std::pair<ValueId, int>>& copies, std::vector<Step>& steps) {
    for (const auto& [value, buffer] : copies) {
      if (result_.buffer_of[value] == buffer) continue;
      Nest nest;
      add_write(value, buffer, {}, steps, nest);
      flush(steps, nest);
    }
  }

  /// Each loop-carried tile has one buffer, which its start is written to before the loop, unless
  /// it is that of the start itself, and the yielded value at the end of an iteration.
  void add_loop(OpId id, std::vector<Step>& steps) {
    const Operation& op = kernel().ops[id];
    const std::size_t fixed = op.code == Code::For ? 3 : 0;  // operands that are not carried
    const std::size_t index = op.code == Code::For ? 1 : 0;  // parameters that are not
    std::vector<std::pair<ValueId, int>> starts;
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      if (!is_tile(op.out[i])) continue;
      const ValueId start = op.in[i + fixed];
      const bool is_taken_over =
          may_overwrite(start) && reuse_.region_of(start) == open_regions_.back();
      const int buffer =
          is_taken_over ? result_.buffer_of[start] : new_buffer(kernel().type(op.out[i]));
      result_.buffer_of[op.out[i]] = buffer;
      for (const Region& region : op.regions) result_.buffer_of[region.params[i + index]] = buffer;
      starts.emplace_back(start, buffer);
    }
    add_copies(starts, steps);
    Step step{.kind = Step::Kind::For, .op = id};
    if (op.code == Code::While) step.kind = Step::Kind::While;
    for (const Region& region : op.regions) {
      std::vector<Step> body = region_steps(region);
      const bool is_condition = op.code == Code::While && &region == &op.regions.front();
      if (!is_condition) end_iteration(op, region, index, body);
      step.bodies.push_back(std::move(body));
    }
    steps.push_back(std::move(step));
  }

  void end_iteration(const Operation& op, const Region& region, std::size_t index,
                     std::vector<Step>& body) {
    const std::vector<ValueId>& yields = kernel().ops[region.ops.back()].in;
    std::vector<std::pair<ValueId, int>> staged;
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      if (!is_tile(op.out[i])) continue;
      const ValueId param = region.params[i + index], next = yields[i];
      if (next == param || result_.buffer_of[next] == result_.buffer_of[param]) continue;
      if (reuse_.update_in_place(param, next, yields, body)) continue;
      staged.emplace_back(next, result_.buffer_of[param]);
    }
    // Parallel copy: a copy is made when no other reads what it overwrites; a cycle is broken by a
    // temporary buffer.
    std::set<ValueId> temporaries;
    const auto is_free = [&](const std::pair<ValueId, int>& copy) {
      return reuse_.copies_in_place(copy.first, copy.second) &&
             std::ranges::none_of(staged, [&](const auto& other) {
               return other.second != copy.second &&
                      reuse_.accesses().expression_reads(other.first, copy.second);
             });
    };
    while (!staged.empty()) {
      // Copies that are free at a time do not read what others of them overwrite: one nest.
      std::vector<std::pair<ValueId, int>> free;
      std::ranges::copy_if(staged, std::back_inserter(free), is_free);
      if (!free.empty()) {
        Nest nest;
        for (const auto& [value, buffer] : free)
          if (result_.buffer_of[value] != buffer) add_write(value, buffer, {}, body, nest);
        flush(body, nest);
        std::erase_if(
            staged, [&](const auto& copy) { return std::ranges::find(free, copy) != free.end(); });
        continue;
      }
      const auto next = std::ranges::find_if(
          staged, [&](const auto& copy) { return !temporaries.contains(copy.first); });
      const int temporary = new_buffer(kernel().type(next->first));
      add_copies({{next->first, temporary}}, body);
      next->first = staging_value(next->first, temporary);
      temporaries.insert(next->first);
    }
  }

  /// A fresh value of the same type for the buffer, which no operation defines.
  ValueId staging_value(ValueId like, int buffer) {
    result_.kernel.values.push_back(result_.kernel.values[like]);
    const auto id = static_cast<ValueId>(result_.kernel.values.size() - 1);
    result_.buffer_of.push_back(buffer);
    placement_.definition.emplace_back();
    placement_.kept.push_back(true);
    placement_.reshaped.emplace_back();
    uses_.push_back(1);
    reuse_.add_values(1);
    return id;
  }

  const machine::Machine& machine_;
  const NestOptions& options_;
  Placement placement_;
  ScheduledKernel result_;
  Fusion fusion_;
  BufferReuse reuse_;
  std::vector<int> uses_;
  std::vector<const Region*> open_regions_;  // innermost last
  std::map<ValueId, Parts> inner_concats_;   // concats that are parts of others
};

}  // namespace

ScheduledKernel schedule(const Kernel& kernel, const machine::Machine& machine,
                         const NestOptions& options) {
  return Scheduler(kernel, machine, options).run();
}

}  // namespace tessera::tile::cpu
