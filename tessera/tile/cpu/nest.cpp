#include "tessera/tile/cpu/nest.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "tessera/tile/cpu/accesses.h"
#include "tessera/tile/cpu/epilogue.h"
#include "tessera/tile/cpu/placement.h"
#include "tessera/tile/cpu/share.h"
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

class Scheduler {
 public:
  Scheduler(const Kernel& kernel, const machine::Machine& machine, const NestOptions& options)
      : machine_(machine),
        options_(options),
        placement_(place(kernel, machine, options)),
        sharing_(kernel, placement_, options),
        accesses_(result_, placement_) {
    result_.kernel = kernel;
    result_.buffer_of.assign(kernel.values.size(), -1);
    uses_ = uses(kernel);
    made_in_.assign(kernel.values.size(), nullptr);
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
  /// The nest that is under construction, at the end of a list of steps.
  struct Group {
    Nest nest = {};
  };

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
    Group group;
    open_regions_.push_back(&region);
    place_concats(region);
    for (const OpId id : region.ops) {
      const Operation& op = kernel().ops[id];
      if (op.code == Code::Yield) break;
      add_operation(id, steps, group);
      for (const ValueId out : op.out) made_in_[out] = &region;
    }
    flush(steps, group);
    open_regions_.pop_back();
    for (std::size_t i = 0; i < steps.size(); ++i) reuse_buffers(region, steps, i);
    if (!options_.overlap && !options_.scalar)
      fuse_epilogues(steps, result_, placement_, machine_, [&](std::size_t at, int buffer) {
        return !is_done_with(region, steps, at, buffer);
      });
    return steps;
  }

  /// Reuses the buffer of a dead operand for a value that is computed from it, position by
  /// position, so that it stays in L1.
  void reuse_buffers(const Region& region, std::vector<Step>& steps, std::size_t at) {
    for (const Root& root : steps[at].nest.roots) {
      if (root.kind != Root::Kind::Write || !root.at.empty()) continue;
      const int own = root.buffer;
      if (result_.buffer_of[root.value] != own || made_in_[root.value] != &region) continue;
      for (ValueId other = 0; other < made_in_.size(); ++other) {
        const int old = result_.buffer_of[other];
        if (old < 0 || old == own || made_in_[other] != &region || placement_.reshaped[other])
          continue;
        if (kernel().type(other) != kernel().type(root.value)) continue;
        if (!is_done_with(region, steps, at, old) ||
            !accesses_.reads_in_place(steps[at], old, own) ||
            is_used_after(steps[at].nest, root, old))
          continue;
        for (int& buffer : result_.buffer_of) {
          if (buffer == own) buffer = old;
        }
        for (Step& step : steps) replace_buffer(step, own, old);
        break;
      }
    }
  }

  /// Whether roots of the nest that are computed after this one access the buffer.
  bool is_used_after(const Nest& nest, const Root& root, int buffer) const {
    const Root* const end = nest.roots.data() + nest.roots.size();
    return std::any_of(&root + 1, end, [&](const Root& later) {
      if (later.kind == Root::Kind::Write)
        return later.buffer == buffer || accesses_.root_reads(later.value, buffer);
      const Operation& op = kernel().ops[later.op];
      return std::ranges::any_of(op.out,
                                 [&](ValueId id) { return result_.buffer_of[id] == buffer; }) ||
             std::ranges::any_of(
                 op.in, [&](ValueId id) { return accesses_.expression_reads(id, buffer); });
    });
  }

  /// Whether a step is the last reader of a buffer that is local to this region.
  bool is_done_with(const Region& region, const std::vector<Step>& steps, std::size_t at,
                    int buffer) const {
    if (!accesses_.reads(steps[at], buffer)) return false;
    for (ValueId id = 0; id < made_in_.size(); ++id) {
      if (result_.buffer_of[id] == buffer && made_in_[id] != &region) return false;
    }
    for (std::size_t i = at + 1; i < steps.size(); ++i) {
      if (accesses_.reads(steps[i], buffer) || accesses_.writes(steps[i], buffer)) return false;
    }
    const Operation* last = region.ops.empty() ? nullptr : &kernel().ops[region.ops.back()];
    if (last == nullptr || last->code != Code::Yield) return true;
    return std::none_of(last->in.begin(), last->in.end(),
                        [&](ValueId id) { return accesses_.expression_reads(id, buffer); });
  }

  void flush(std::vector<Step>& steps, Group& group) {
    if (!group.nest.roots.empty()) {
      choose_vectors(group.nest, result_, placement_, machine_, options_);
      steps.push_back({.kind = Step::Kind::Nest, .nest = std::move(group.nest)});
    }
    group = {};
  }

  void add_operation(OpId id, std::vector<Step>& steps, Group& group) {
    const Operation& op = kernel().ops[id];
    switch (op.code) {
      case Code::Dot: flush(steps, group); return add_dot(id, steps);
      case Code::For:
      case Code::While: flush(steps, group); return add_loop(id, steps);
      case Code::If: flush(steps, group); return add_if(id, steps);
      case Code::Concat: return add_concat(id, steps, group);
      case Code::Reduce:
      case Code::Scan: return add_fold(id, steps, group);
      case Code::Store:
      case Code::Vstore:
      case Code::Atomic:
      case Code::Cas:
        if (!is_tile(op.code == Code::Vstore ? op.in.back() : op.in[1])) break;
        for (const ValueId out : op.out) buffer_of(out);
        return add_root({.kind = Root::Kind::Effect, .op = id},
                        kernel().type(op.code == Code::Vstore ? op.in.back() : op.in[1]).shape, {},
                        steps, group);
      case Code::Assert:
        if (!is_tile(op.in[0])) break;
        return add_root({.kind = Root::Kind::Check, .op = id}, kernel().type(op.in[0]).shape, {},
                        steps, group);
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
        add_write(out, buffer_of(out), {}, steps, group);
      }
      return;
    }
    // All other operations compute scalars.
    const bool waits = std::any_of(op.in.begin(), op.in.end(), [&](ValueId in) {
      return is_tile(in) || is_pending(in, group);
    });
    if (waits || has_effect(op.code) || (reads_memory(op.code) && has_effects(group))) {
      flush(steps, group);
    }
    steps.push_back({.kind = Step::Kind::Scalar, .op = id});
  }

  static bool has_effects(const Group& group) {
    return std::any_of(group.nest.roots.begin(), group.nest.roots.end(),
                       [](const Root& root) { return root.kind == Root::Kind::Effect; });
  }

  /// Whether a scalar is the result of a fold in the open group.
  bool is_pending(ValueId id, const Group& group) const {
    return std::any_of(group.nest.roots.begin(), group.nest.roots.end(), [&](const Root& root) {
      if (root.kind != Root::Kind::Reduce) return false;
      const std::vector<ValueId>& out = kernel().ops[root.op].out;
      return std::find(out.begin(), out.end(), id) != out.end();
    });
  }

  void add_write(ValueId value, int buffer, Extents at, std::vector<Step>& steps, Group& group) {
    add_root({.kind = Root::Kind::Write, .value = value, .buffer = buffer, .at = std::move(at)},
             kernel().type(value).shape, {}, steps, group);
  }

  void add_fold(OpId id, std::vector<Step>& steps, Group& group) {
    const Operation& op = kernel().ops[id];
    for (const ValueId out : op.out) {
      if (is_tile(out)) buffer_of(out);
    }
    const auto kind = op.code == Code::Reduce ? Root::Kind::Reduce : Root::Kind::Scan;
    add_root({.kind = kind, .op = id}, kernel().type(op.in[0]).shape, static_cast<int>(op.ints[0]),
             steps, group);
    // Scan results are read only when the scan is complete.
    if (op.code == Code::Scan) flush(steps, group);
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

  void add_concat(OpId id, std::vector<Step>& steps, Group& group) {
    each_part(kernel().ops[id], [&](ValueId part, const Parts& parts) {
      if (!inner_concats_.contains(part)) add_write(part, parts.buffer, parts.at, steps, group);
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

  /// Adds a root to the open group if that is legal, or else starts a new group.
  void add_root(Root root, const Extents& space, std::optional<int> fold, std::vector<Step>& steps,
                Group& group) {
    if (!may_join(root, space, fold, group)) flush(steps, group);
    if (group.nest.roots.empty()) group.nest.space = space;
    if (fold) group.nest.fold = fold;
    group.nest.roots.push_back(std::move(root));
  }

  bool may_join(const Root& root, const Extents& space, std::optional<int> fold,
                const Group& group) const {
    if (group.nest.roots.empty() || group.nest.space != space) return false;
    if (fold && group.nest.fold && *fold != *group.nest.fold) return false;
    if (fold && kernel().ops[root.op].code == Code::Scan) return false;
    if (!sharing_.may_join(group.nest, root)) return false;
    std::vector<ValueId> read;
    if (root.kind == Root::Kind::Write) {
      read = {root.value};
    } else {
      read = kernel().ops[root.op].in;
    }
    ReadPositions seen;
    return std::all_of(read.begin(), read.end(), [&](ValueId value) {
      return joins(value, identity_map(space.size()), group, root.kind == Root::Kind::Write, seen);
    });
  }

  /// Whether the operands of a value are available before the group, or at the same position in it.
  /// `seen` is the visited set: values are shared, and paths to them are many.
  bool joins(ValueId value, const IndexMap& map, const Group& group, bool is_written,
             ReadPositions& seen) const {
    if (!is_written && !seen.emplace(value, map).second) return true;
    for (const Root& root : group.nest.roots) {
      if (root.kind == Root::Kind::Write) {
        if (root.value == value) return map == identity_map(map.size());
        if (result_.buffer_of[value] == root.buffer && !is_written) return false;
      } else {
        const std::vector<ValueId>& out = kernel().ops[root.op].out;
        if (std::find(out.begin(), out.end(), value) != out.end()) return false;
      }
    }
    if (!placement_.definition[value]) return true;
    const bool ends = placement_.kept[value] && !is_written;
    const Operation& op = kernel().ops[*placement_.definition[value]];
    if (ends || !is_tile(value) || !is_inline(kernel(), op)) {
      return !is_pending(value, group);
    }
    if (const auto moved = operand_map(kernel(), op, map))
      return joins(op.in[0], *moved, group, false, seen);
    // A gather reads its operand at any position.
    if (op.code == Code::Gather && !joins(op.in[0], anywhere(), group, false, seen)) return false;
    return std::all_of(op.in.begin(), op.in.end(), [&](ValueId in) {
      return is_tile(in) ? joins(in, map, group, false, seen) : !is_pending(in, group);
    });
  }

  void add_dot(OpId id, std::vector<Step>& steps) {
    const Operation& op = kernel().ops[id];
    const ValueId c = op.in[2];
    DotStep dot{.op = id};
    dot.a = trace_source(kernel(), placement_, op.in[0]).source;
    dot.b = trace_source(kernel(), placement_, op.in[1]).source;
    const bool in_place = may_overwrite(c) && is_own(c);
    if (in_place) result_.buffer_of[op.out[0]] = result_.buffer_of[c];
    dot.out = buffer_of(op.out[0]);
    dot.accumulate = in_place || !is_zero_tile(kernel(), placement_, c);
    if (dot.accumulate && !in_place) {
      Group group;
      add_write(c, dot.out, {}, steps, group);
      flush(steps, group);
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
    return made_in_[c] == open_regions_.back() ||
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
      Group group;
      add_write(value, buffer, {}, steps, group);
      flush(steps, group);
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
      const bool is_taken_over = may_overwrite(start) && made_in_[start] == open_regions_.back();
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
      if (!is_condition) end_round(op, region, index, body);
      step.bodies.push_back(std::move(body));
    }
    steps.push_back(std::move(step));
  }

  void end_round(const Operation& op, const Region& region, std::size_t index,
                 std::vector<Step>& body) {
    const std::vector<ValueId>& yields = kernel().ops[region.ops.back()].in;
    std::vector<std::pair<ValueId, int>> staged;
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      if (!is_tile(op.out[i])) continue;
      const ValueId param = region.params[i + index], next = yields[i];
      if (next == param || result_.buffer_of[next] == result_.buffer_of[param]) continue;
      if (update_in_place(param, next, yields, body)) continue;
      staged.emplace_back(next, result_.buffer_of[param]);
    }
    // Parallel copy: a copy is made when no other reads what it overwrites; a cycle is broken by a
    // temporary buffer.
    std::set<ValueId> temporaries;
    const auto is_free = [&](const std::pair<ValueId, int>& copy) {
      return copies_in_place(copy.first, copy.second) &&
             std::ranges::none_of(staged, [&](const auto& other) {
               return other.second != copy.second &&
                      accesses_.expression_reads(other.first, copy.second);
             });
    };
    while (!staged.empty()) {
      if (const auto free = std::ranges::find_if(staged, is_free); free != staged.end()) {
        add_copies({*free}, body);
        staged.erase(free);
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

  /// Whether elements can be written to the buffer one by one without changing later reads.
  bool copies_in_place(ValueId value, int buffer) const {
    return !accesses_.root_reads(value, buffer) ||
           accesses_.reads_at(value, identity_map(kernel().type(value).shape.size()), buffer);
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
    made_in_.push_back(nullptr);
    return id;
  }

  /// Lets the step that computes `next` write directly to the buffer of `param`, if nothing reads
  /// the old content afterwards.
  bool update_in_place(ValueId param, ValueId next, const std::vector<ValueId>& yields,
                       std::vector<Step>& body) {
    const int from = result_.buffer_of[next], to = result_.buffer_of[param];
    if (from < 0 || placement_.reshaped[next] || !placement_.kept[next]) return false;
    if (std::count(yields.begin(), yields.end(), next) != 1) return false;
    if (std::find(yields.begin(), yields.end(), param) != yields.end()) return false;
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (accesses_.writes(body[i], from)) {
        if (body[i].kind != Step::Kind::Nest && body[i].kind != Step::Kind::Dot) return false;
        if (!first) first = i;
      }
    }
    if (!first) return false;
    for (std::size_t i = *first; i < body.size(); ++i) {
      if (!accesses_.reads(body[i], to)) continue;
      if (i > *first || !accesses_.reads_in_place(body[i], to, from)) return false;
    }
    // Yields of other values are evaluated after all steps.
    for (const ValueId other : yields) {
      if (other != next && is_tile(other) && !placement_.kept[other] &&
          accesses_.expression_reads(other, to)) {
        return false;
      }
    }
    for (int& buffer : result_.buffer_of) {
      if (buffer == from) buffer = to;
    }
    for (Step& step : body) replace_buffer(step, from, to);
    return true;
  }

  void replace_buffer(Step& step, int from, int to) {
    for (Root& root : step.nest.roots) {
      if (root.buffer == from) root.buffer = to;
    }
    if (step.kind == Step::Kind::Dot && step.dot.out == from) step.dot.out = to;
    for (std::vector<Step>& body : step.bodies) {
      for (Step& inner : body) replace_buffer(inner, from, to);
    }
  }

  const machine::Machine& machine_;
  const NestOptions& options_;
  Placement placement_;
  Sharing sharing_;
  ScheduledKernel result_;
  Accesses accesses_;
  std::vector<int> uses_;
  std::vector<const Region*> made_in_;       // by value, for values of operations
  std::vector<const Region*> open_regions_;  // innermost last
  std::map<ValueId, Parts> inner_concats_;   // concats that are parts of others
};

}  // namespace

ScheduledKernel schedule(const Kernel& kernel, const machine::Machine& machine,
                         const NestOptions& options) {
  return Scheduler(kernel, machine, options).run();
}

}  // namespace tessera::tile::cpu
