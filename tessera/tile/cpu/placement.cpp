#include "tessera/tile/cpu/placement.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "tessera/tile/function.h"

namespace tessera::tile::cpu {
namespace {

bool is_unit_reshape(const Kernel& kernel, const Operation& op) {
  return op.code == Code::Reshape &&
         operand_map(kernel, op, identity_map(kernel.type(op.out[0]).shape.size())).has_value();
}

/// Estimated cost in simple vector operations.
int cost_of(const Operation& op) {
  if (op.code == Code::Gather) return 8;
  if (op.code != Code::Map) return op.code == Code::Load ? 8 : 1;
  if (is_transcendental(op.function)) return 16;
  switch (op.function) {
    case Function::Div:
    case Function::Rem:
    case Function::Sqrt:
    case Function::Rsqrt: return 4;
    default: return 1;
  }
}

/// Recomputation limit: a value of higher cost is computed once and kept if several nests need it.
constexpr int kWorthKeeping = 10;

bool is_zero(const Literal& literal) {
  return literal.number == 0 && literal.integer == 0;
}

class Placer {
 public:
  Placer(const Kernel& kernel, const machine::Machine& machine, const NestOptions& options)
      : kernel_(kernel), options_(options) {
    result_.vector_bytes = machine.vector_bytes;
    result_.widest_panel = 2 * panels_for(DType::F32, 2, machine).columns;
    for (const DType factors : {DType::BF16, DType::I8})
      if (const Panels panels = panels_for(factors, 2, machine);
          panels.dtype == factors && panels.k_group > 1)
        result_.narrow.push_back(panels);
    const std::size_t values = kernel.values.size();
    result_.definition = definitions(kernel);
    result_.kept.assign(values, false);
    result_.reshaped.resize(values);
    position_.resize(kernel.ops.size());
    loops_.resize(kernel.ops.size());
    consumers_.resize(values);
    cost_.assign(values, 0);
  }

  Placement run() {
    std::vector<OpId> loops;
    walk(kernel_.body, loops);
    for (const OpId id : order_) keep_by_structure(id);
    for (const OpId id : order_) add_cost(id);
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) consume(*id);
    // A load that turns out to be kept may be an operand of values decided before; a second
    // iteration is enough, because keeping a value only removes consumers of those before it.
    return std::move(result_);
  }

 private:
  void walk(const Region& region, std::vector<OpId>& loops) {
    for (const OpId id : region.ops) {
      position_[id] = static_cast<int>(order_.size());
      order_.push_back(id);
      loops_[id] = loops;
      const Operation& op = kernel_.ops[id];
      if (writes_memory(op.code)) writes_.push_back(id);
      const bool is_loop = op.code == Code::For || op.code == Code::While;
      const bool is_fold = op.code == Code::Reduce || op.code == Code::Scan;
      if (is_fold) continue;
      if (is_loop) loops.push_back(id);
      for (const Region& inner : op.regions) walk(inner, loops);
      if (is_loop) loops.pop_back();
    }
  }

  bool is_tile(ValueId id) const { return kernel_.type(id).is_tile(); }
  void keep(ValueId id) {
    if (is_tile(id)) result_.kept[id] = true;
  }

  void keep_by_structure(OpId id) {
    const Operation& op = kernel_.ops[id];
    for (const Region& region : op.regions) {
      if (op.code != Code::Reduce && op.code != Code::Scan) {
        for (const ValueId param : region.params) keep(param);
      }
    }
    switch (op.code) {
      case Code::Reshape:
        if (is_tile(op.in[0]) && !is_unit_reshape(kernel_, op) && !feeds_packed_dot(op.out[0])) {
          keep(op.in[0]);
          result_.reshaped[op.out[0]] = op.in[0];
        }
        break;
      case Code::Gather: keep(op.in[0]); break;
      case Code::Dot: keep_factors(op); break;
      case Code::Reduce:
      case Code::Scan:
      case Code::Concat:
      case Code::Atomic:
      case Code::Cas:
      case Code::For:
      case Code::While:
      case Code::If:
        for (const ValueId out : op.out) keep(out);
        break;
      default: break;
    }
  }

  void keep_factors(const Operation& dot) {
    keep(dot.out[0]);
    const TracedSource right = trace_source(kernel_, result_, dot, 1);
    for (const std::size_t factor : {0, 1}) {
      const TracedSource traced = trace_source(kernel_, result_, dot, factor);
      // Groups of k start at the start of the matrix: nothing is clipped before them.
      const bool whole = factor == 0 && right.source.k_group > 1;
      if (!traced.source.vload || whole || !may_read_in_place(traced)) keep(traced.base);
    }
  }

  /// Loads in place are clipped to the bounds of the view, which is correct for a padding of zero.
  /// In debug mode every element is checked.
  bool may_read_in_place(const TracedSource& traced) const {
    return !options_.scalar && is_zero(kernel_.ops[*traced.source.vload].literal);
  }

  bool reads_panels(const Operation& dot) const {
    const TracedSource right = trace_source(kernel_, result_, dot, 1);
    return right.source.panel > 0 && may_read_in_place(right);
  }

  /// Whether only dots read it, as a matrix in panels: all of it or its first columns.
  bool feeds_packed_dot(ValueId value) const {
    bool all = true, any = false;
    for_each_op(kernel_, kernel_.body, [&](OpId id) {
      const Operation& op = kernel_.ops[id];
      for (std::size_t i = 0; i < op.in.size(); ++i) {
        if (op.in[i] != value) continue;
        any = true;
        if (op.code == Code::Slice) {
          all = all && feeds_packed_dot(op.out[0]);
          continue;
        }
        all = all && op.code == Code::Dot && i == 1 && reads_panels(op);
      }
    });
    return any && all;
  }

  void add_cost(OpId id) {
    const Operation& op = kernel_.ops[id];
    if (!is_inline(kernel_, op)) return;
    int cost = cost_of(op);
    for (const ValueId in : op.in) {
      if (is_tile(in) && !result_.kept[in]) cost += cost_[in];
    }
    cost_[op.out[0]] = std::min(cost, 1000);
  }

  void consume(OpId id) {
    const Operation& op = kernel_.ops[id];
    const bool through = is_inline(kernel_, op) && !decide(id);
    for (const ValueId in : op.in) {
      if (!is_tile(in)) continue;
      if (through) {
        consumers_[in].insert(consumers_[op.out[0]].begin(), consumers_[op.out[0]].end());
      } else {
        consumers_[in].insert(id);
      }
    }
  }

  /// Whether the result of an inline operation is kept after all.
  bool decide(OpId id) {
    const Operation& op = kernel_.ops[id];
    const ValueId out = op.out[0];
    if (result_.kept[out]) return true;
    if (result_.reshaped[out]) return true;  // reads its operand's buffer
    const std::set<OpId>& consumers = consumers_[out];
    bool keep_it = false;
    if (cost_[out] > kWorthKeeping) {
      keep_it = (consumers.size() > 1 && !share_a_nest(out, consumers)) ||
                std::any_of(consumers.begin(), consumers.end(),
                            [&](OpId c) { return loops_[c].size() > loops_[id].size(); });
    }
    if (reads_memory(op.code)) {
      keep_it = keep_it || std::any_of(consumers.begin(), consumers.end(),
                                       [&](OpId c) { return is_written_before(id, c); });
    }
    if (keep_it) result_.kept[out] = true;
    return keep_it;
  }

  /// Whether all users of a value are computed in one nest: kept tiles of the same shape, one after
  /// the other, with nothing between that ends a nest.
  bool share_a_nest(ValueId value, const std::set<OpId>& consumers) const {
    int first = static_cast<int>(order_.size()), last = -1;
    for (const OpId id : consumers) {
      const Operation& op = kernel_.ops[id];
      const ValueId tile = op.code == Code::Concat ? op.in[0] : op.out.empty() ? value : op.out[0];
      if (op.code != Code::Concat && !is_inline(kernel_, op)) return false;
      if (kernel_.type(tile).shape != kernel_.type(value).shape) return false;
      first = std::min(first, position_[id]), last = std::max(last, position_[id]);
    }
    return std::all_of(order_.begin() + first, order_.begin() + last, [&](OpId id) {
      const Operation& op = kernel_.ops[id];
      return op.code == Code::Concat || is_inline(kernel_, op);
    });
  }

  bool may_alias(OpId read, OpId write) const {
    if (options_.overlap) return true;
    const auto a = parameter_of(kernel_, result_.definition, kernel_.ops[read].in[0]);
    const auto b = parameter_of(kernel_, result_.definition, kernel_.ops[write].in[0]);
    return !a || !b || *a == *b;
  }

  /// Whether the memory that `read` loads may be overwritten before `consumer` has used it.
  bool is_written_before(OpId read, OpId consumer) const {
    for (const OpId write : writes_) {
      if (!may_alias(read, write)) continue;
      const int at = position_[write];
      if (at > position_[read] && at < position_[consumer]) return true;
      if (write == consumer && !is_same_place(read, write)) return true;
      // In a loop that contains only the consumer, a store of an earlier iteration comes before it.
      for (const OpId loop : loops_[consumer]) {
        const std::vector<OpId>& around = loops_[read];
        if (std::find(around.begin(), around.end(), loop) != around.end()) continue;
        const std::vector<OpId>& of_write = loops_[write];
        if (std::find(of_write.begin(), of_write.end(), loop) != of_write.end()) return true;
      }
    }
    return false;
  }

  /// Whether a store writes exactly the elements that the load read, each from itself.
  bool is_same_place(OpId read, OpId write) const {
    const Operation &load = kernel_.ops[read], &store = kernel_.ops[write];
    if (load.code != Code::Vload || store.code != Code::Vstore) return false;
    if (!std::equal(load.in.begin(), load.in.end(), store.in.begin(), store.in.end() - 1))
      return false;
    const ValueId stored = store.in.back();
    if (kernel_.type(stored).shape != kernel_.type(load.out[0]).shape) return false;
    return reads_only_in_place(stored, identity_map(kernel_.type(stored).shape.size()),
                               load.out[0]);
  }

  bool reads_only_in_place(ValueId value, const IndexMap& map, ValueId loaded) const {
    if (value == loaded) return map == identity_map(map.size());
    if (!is_tile(value) || result_.kept[value] || !result_.definition[value]) return true;
    const Operation& op = kernel_.ops[*result_.definition[value]];
    if (const auto moved = operand_map(kernel_, op, map)) {
      return reads_only_in_place(op.in[0], *moved, loaded);
    }
    return std::all_of(op.in.begin(), op.in.end(),
                       [&](ValueId in) { return reads_only_in_place(in, map, loaded); });
  }

  const Kernel& kernel_;
  const NestOptions& options_;
  Placement result_;
  std::vector<OpId> order_, writes_;
  std::vector<int> position_, cost_;
  std::vector<std::vector<OpId>> loops_;   // around each operation
  std::vector<std::set<OpId>> consumers_;  // by value: the operations that end its inlining
};

bool starts_at_zero(const Kernel& kernel, const Placement& placement, ValueId at) {
  const auto definition = placement.definition[at];
  return definition && kernel.ops[*definition].code == Code::Const &&
         is_zero(kernel.ops[*definition].literal);
}

/// Matrix [k, n] made of panels by `reshape`:
///
///   [panels, k, columns]                    -> [k, panels, columns]
///   [panels, groups, columns, k in a group] -> [groups, k in a group, panels, columns]
///
/// One panel without groups needs no permutation. Where the dot takes all `columns` of it, it is an
/// ordinary matrix of contiguous rows; where it takes the first ones, the rest of the vectors is
/// there to be loaded.
void trace_panels(const Kernel& kernel, const Placement& placement, const Operation& reshape,
                  std::int64_t columns, TracedSource& traced) {
  const auto operand = [&](const Operation& op) -> const Operation* {
    const auto definition = placement.definition[op.in[0]];
    return !definition || placement.kept[op.in[0]] ? nullptr : &kernel.ops[*definition];
  };
  const Operation* permute = operand(reshape);
  const bool moved = permute != nullptr && permute->code == Code::Permute;
  const Operation* load = moved ? operand(*permute) : permute;
  if (load == nullptr || load->code != Code::Vload) return;
  const ValueId loaded = load->out[0];
  const Type& view = kernel.type(load->in[0]);
  const Extents& tile = kernel.type(loaded).shape;
  const Extents& matrix = kernel.type(reshape.out[0]).shape;
  const bool grouped = moved && permute->ints == std::vector<std::int64_t>{1, 3, 0, 2};
  if (moved && !grouped && permute->ints != std::vector<std::int64_t>{1, 0, 2}) return;
  if (!moved && (tile.size() != 3 || tile[0] != 1 || view.dtype != DType::F32 ||
                 columns >= tile[2] || tile[2] > placement.widest_panel))
    return;
  const std::int64_t group = grouped ? tile[3] : 1;
  if (matrix.size() != 2 || matrix[0] != tile[1] * group) return;
  if (grouped) {
    if (std::ranges::none_of(placement.narrow, [&](const Panels& narrow) {
          return narrow.dtype == view.dtype && narrow.k_group == group && narrow.columns == tile[2];
        }))
      return;
  } else {
    if (view.dtype != DType::F32 && view.dtype != DType::F64) return;
    if (tile[2] * byte_width(view.dtype) % placement.vector_bytes != 0) return;
  }
  std::int64_t stride = 1;
  for (std::size_t i = tile.size(); i-- > 1;) {
    const bool whole = i >= 2;
    if (view.strides[i] != stride || (whole && view.shape[i] != tile[i])) return;
    if (whole && !starts_at_zero(kernel, placement, load->in[i + 1])) return;
    stride *= tile[i];
  }
  traced.source.vload = placement.definition[loaded];
  traced.source.panel = tile[2];
  traced.source.k_group = group;
  traced.base = loaded;
}

}  // namespace

bool is_inline(const Kernel& kernel, const Operation& op) {
  switch (op.code) {
    case Code::Const:
    case Code::Iota:
    case Code::Broadcast:
    case Code::Reshape:
    case Code::Permute:
    case Code::Slice:
    case Code::Map:
    case Code::Cast:
    case Code::Bitcast:
    case Code::Gather:
    case Code::Offset:
    case Code::Load:
    case Code::Vload:
    case Code::Hint: return kernel.type(op.out[0]).is_tile();
    default: return false;
  }
}

TracedSource trace_source(const Kernel& kernel, const Placement& placement, const Operation& dot,
                          std::size_t factor) {
  const ValueId operand = dot.in[factor];
  TracedSource traced{.source = {.map = identity_map(2), .value = operand}, .base = operand};
  for (;;) {
    if (placement.kept[traced.base] || placement.reshaped[traced.base]) break;
    const auto definition = placement.definition[traced.base];
    if (!definition) break;
    const Operation& op = kernel.ops[*definition];
    if (op.code == Code::Vload) {
      traced.source.vload = *definition;
      break;
    }
    if (factor == 1 && op.code == Code::Reshape && traced.source.map == identity_map(2)) {
      trace_panels(kernel, placement, op, kernel.type(operand).shape[1], traced);
      if (traced.source.panel > 0) break;
    }
    const auto moved = operand_map(kernel, op, traced.source.map);
    if (!moved || op.code == Code::Broadcast || !kernel.type(op.in[0]).is_tile()) break;
    traced.source.map = *moved;
    traced.base = op.in[0];
  }
  traced.source.value = traced.base;
  return traced;
}

Placement place(const Kernel& kernel, const machine::Machine& machine, const NestOptions& options) {
  return Placer(kernel, machine, options).run();
}

}  // namespace tessera::tile::cpu
