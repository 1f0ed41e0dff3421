#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tessera/tile/passes/bounds.h"
#include "tessera/tile/passes/parts.h"
#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/rewrite.h"
#include "tessera/tile/passes/simplify.h"

namespace tessera::tile {
namespace {

/// Adds a value for every dynamic extent of a parameter that is accessed, so that bounds can refer
/// to it.
Kernel with_extents(const Kernel& kernel) {
  std::set<ValueId> accessed;
  for_each_op(kernel, kernel.body, [&](OpId id) {
    if (is_access(kernel.ops[id])) accessed.insert(kernel.ops[id].in[0]);
  });
  Kernel result = kernel;
  std::vector<OpId> first;
  for (const ValueId id : kernel.params()) {
    const Type& type = kernel.type(id);
    for (int axis = 0; accessed.contains(id) && axis < type.rank(); ++axis) {
      if (type.shape[static_cast<std::size_t>(axis)] != kDynamic) continue;
      result.values.push_back({Type::scalar(DType::I64), {}});
      first.push_back(static_cast<OpId>(result.ops.size()));
      result.ops.push_back({.code = Code::Dim,
                            .in = {id},
                            .out = {static_cast<ValueId>(result.values.size() - 1)},
                            .ints = {axis}});
    }
  }
  result.body.ops.insert(result.body.ops.begin(), first.begin(), first.end());
  return cse(result);
}

using Marks = std::vector<std::int64_t>;

class Splitting {
 public:
  Splitting(const Kernel& kernel, Loops loops) : kernel_(kernel), loops_(loops), bounds_(kernel) {
    for_each_op(kernel, kernel.body, [&](OpId id) {
      const Operation& op = kernel.ops[id];
      if (is_access(op)) marks_[&op] = proven(op);
      if (op.code == Code::For) ends_.insert(op.in[1]);
    });
  }

  void visit(Rewrite& out, const Operation& op) {
    if (is_access(op)) {
      Operation marked = op;
      marked.ints = (whole_rounds_.contains(&op) ? whole_rounds_ : marks_).at(&op);
      if (std::all_of(marked.ints.begin(), marked.ints.end(), [](auto mark) { return mark == 0; }))
        marked.ints.clear();
      return out.copy(marked);
    }
    if (op.code == Code::For && loops_ == Loops::Split) {
      if (const auto limits = this->limits(op); !limits.empty()) return split(out, op, limits);
    }
    out.copy(op);
  }

 private:
  /// Limit of the in-bounds iterations: `room` - factor * index has to be non-negative along an
  /// axis.
  struct Limit {
    const Operation* access;
    std::size_t axis;
    AffineScalar room;
    std::int64_t factor;
  };

  Marks proven(const Operation& op) const {
    const std::size_t rank = kernel_.type(op.in[0]).shape.size();
    Marks marks = op.ints.empty() ? Marks(rank, 0) : op.ints;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      if (marks[axis] != 0) continue;
      const auto gap = bounds_.gap(op, axis);
      if (gap && bounds_.not_negative(*gap) && bounds_.begins_inside(op, axis)) marks[axis] = 1;
    }
    return marks;
  }

  /// Accesses that would be in bounds if the index stopped early enough.
  std::vector<Limit> limits(const Operation& loop) const {
    std::vector<Limit> limits;
    const ValueId index = loop.regions[0].params[0];
    const auto& range = bounds_.forms().facts()[index];
    if (!range.low || *range.low < 0 || !bounds_.steps_forward(loop) || is_rest(loop)) return {};
    std::set<ValueId> inner(loop.regions[0].params.begin(), loop.regions[0].params.end());
    bool nested = false;
    std::vector<const Operation*> accesses;
    for_each_op(kernel_, loop.regions[0], [&](OpId id) {
      const Operation& op = kernel_.ops[id];
      inner.insert(op.out.begin(), op.out.end());
      nested = nested || op.code == Code::For || op.code == Code::While;
      if (is_access(op)) accesses.push_back(&op);
    });
    if (nested) return {};
    for (const Operation* op : accesses) {
      for (std::size_t axis = 0; axis < marks_.at(op).size(); ++axis) {
        if (marks_.at(op)[axis] != 0) continue;
        const auto gap = bounds_.gap(*op, axis);
        if (!gap || gap->factor(index) >= 0 || !bounds_.begins_inside(*op, axis)) continue;
        const std::int64_t factor = -gap->factor(index);
        const auto room = gap->plus(AffineScalar::of(index), factor);
        // `split` adds one iteration.
        if (room && room->plus(AffineScalar::constant(factor)) &&
            std::none_of(room->terms.begin(), room->terms.end(),
                         [&](const AffineScalar::Term& t) { return inner.contains(t.variable); }))
          limits.push_back({op, axis, *room, factor});
      }
    }
    return limits;
  }

  /// Whether a loop is the remainder of a split, here or in the program itself: it starts where
  /// another one ends, or at the minimum of something and its own end.
  bool is_rest(const Operation& loop) const {
    if (ends_.contains(loop.in[0])) return true;
    const auto from = definitions_[loop.in[0]];
    return from && kernel_.ops[*from].code == Code::Map &&
           kernel_.ops[*from].function == Function::Min && kernel_.ops[*from].in[1] == loop.in[1];
  }

  static ValueId emit(Rewrite& out, const AffineScalar& form) {
    ValueId sum = out.index(form.base);
    for (const AffineScalar::Term& term : form.terms) {
      const ValueId wide = out.cast(out.of(term.variable), DType::I64);
      sum = out.map(Function::Add, {sum, out.map(Function::Mul, {wide, out.index(term.factor)})});
    }
    return sum;
  }

  /// Iterations below the limits, then the rest:
  ///   middle = min(to, for each limit: max(room + factor, 0) / factor)
  ///   rest   = min(from + ceil(max(middle - from, 0) / step) * step, to)
  void split(Rewrite& out, const Operation& op, const std::vector<Limit>& limits) {
    const auto map = [&](Function f, ValueId a, ValueId b) { return out.map(f, {a, b}); };
    const ValueId zero = out.index(0), one = out.index(1);
    std::vector<ValueId> in = out.of(op.in);
    const DType dtype = out.type(in[0]).dtype;
    const ValueId from = out.cast(in[0], DType::I64), to = out.cast(in[1], DType::I64),
                  step = out.cast(in[2], DType::I64);
    ValueId middle = to;
    for (auto limit = limits.begin(); limit != limits.end(); ++limit) {
      const bool again = std::any_of(limits.begin(), limit, [&](const Limit& other) {
        return other.room == limit->room && other.factor == limit->factor;
      });
      const auto room = limit->room.plus(AffineScalar::constant(limit->factor));
      if (again) continue;
      const ValueId end =
          map(Function::Div, map(Function::Max, emit(out, *room), zero), out.index(limit->factor));
      middle = map(Function::Min, middle, end);
    }
    const ValueId way = map(Function::Max, map(Function::Sub, middle, from), zero);
    const ValueId rounds =
        map(Function::Div, map(Function::Add, way, map(Function::Sub, step, one)), step);
    const ValueId rest =
        map(Function::Min, map(Function::Add, from, map(Function::Mul, rounds, step)), to);
    const std::vector<bool> all(op.out.size(), true);
    const ValueId end = in[1];
    in[1] = out.cast(middle, dtype);
    whole_rounds_ = marks_;
    for (const Limit& limit : limits) whole_rounds_[limit.access][limit.axis] = 1;
    out.copy(op, in, all);
    whole_rounds_.clear();

    const std::vector<ValueId> carried = out.of(op.out);
    std::copy(carried.begin(), carried.end(), in.begin() + 3);
    in[0] = dtype == DType::I64 ? rest : out.map(Function::Min, {out.cast(rest, dtype), end});
    in[1] = end;
    out.copy(op, in, all);
  }

  const Kernel& kernel_;
  Loops loops_;
  Bounds bounds_;
  std::vector<std::optional<OpId>> definitions_ = definitions(kernel_);
  std::set<ValueId> ends_;                          // of loops
  std::map<const Operation*, Marks> marks_;         // proved in bounds
  std::map<const Operation*, Marks> whole_rounds_;  // proved where a loop stops early
};

}  // namespace

Kernel split(const Kernel& kernel, Loops loops) {
  const Kernel source = with_extents(kernel);
  Splitting splitting(source, loops);
  return simplify(
      Rewrite::run(source, [&](Rewrite& out, const Operation& op) { splitting.visit(out, op); }));
}

}  // namespace tessera::tile
