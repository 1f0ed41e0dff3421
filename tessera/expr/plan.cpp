#include "tessera/expr/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "tessera/expr/number.h"
#include "tessera/support/check.h"

namespace tessera {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

/// Slots of the bound axes, and indices as affine forms of positions along them.
class Slots {
 public:
  explicit Slots(const Sizes& sizes) : sizes_(sizes) {}

  int bind(const std::string& axis, std::int64_t extent) {
    const int slot = count();
    extents_.push_back(extent);
    const bool fresh = slots_.emplace(axis, slot).second;
    TESSERA_CHECK(fresh, "axis {} is bound twice", axis);
    return slot;
  }
  void unbind(const std::string& axis) { slots_.erase(axis); }
  int of(const std::string& axis) const {
    const auto it = slots_.find(axis);
    TESSERA_CHECK(it != slots_.end(), "axis {} is not bound", axis);
    return it->second;
  }
  /// Number of axes that ever were bound.
  int count() const { return static_cast<int>(extents_.size()); }

  /// Affine form of an index; none if it is not affine. Numbers are kept small, so that positions
  /// computed from them never overflow.
  std::optional<AffinePosition> affine(const Scalar& scalar) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    const auto small = [](std::int64_t value) { return value >= -kMost && value <= kMost; };
    const auto bounded = [&](std::optional<AffinePosition> form) -> std::optional<AffinePosition> {
      if (!form || !small(form->base)) return std::nullopt;
      for (const auto& [slot, factor] : form->terms)
        if (!small(factor)) return std::nullopt;
      return form;
    };
    if (const auto* n = std::get_if<node::Constant>(&scalar.node())) {
      if (n->sort != Sort::Integer) return std::nullopt;
      return bounded(AffinePosition::constant(n->integer));
    }
    if (const auto* n = std::get_if<node::Size>(&scalar.node())) {
      const auto value = resolved(n->dim, sizes_).constant();
      return value ? bounded(AffinePosition::constant(*value)) : std::nullopt;
    }
    if (const auto* n = std::get_if<node::Index>(&scalar.node())) {
      return AffinePosition::of(of(n->axis));
    }
    const auto* n = std::get_if<node::Apply>(&scalar.node());
    if (n == nullptr) return std::nullopt;
    const bool is_arithmetic =
        n->fn == Fn::Neg || n->fn == Fn::Add || n->fn == Fn::Sub || n->fn == Fn::Mul;
    if (!is_arithmetic) return std::nullopt;
    const auto a = affine(n->args[0]);
    if (!a) return std::nullopt;
    if (n->fn == Fn::Neg) return a->times(-1);
    const auto b = affine(n->args[1]);
    if (!b) return std::nullopt;
    if (n->fn != Fn::Mul) return bounded(a->plus(*b, n->fn == Fn::Add ? 1 : -1));
    if (a->is_constant()) return bounded(b->times(a->base));
    return b->is_constant() ? bounded(a->times(b->base)) : std::nullopt;
  }

  bool stays_within(const AffinePosition& at, std::int64_t size) const {
    __extension__ using Wide = __int128;
    Wide low = at.base, high = at.base;
    for (const auto& [slot, factor] : at.terms) {
      const std::int64_t extent = extents_[static_cast<std::size_t>(slot)];
      if (extent == kUnbounded) return false;
      const Wide reach = static_cast<Wide>(factor) * std::max<std::int64_t>(extent - 1, 0);
      (reach < 0 ? low : high) += reach;
    }
    return low >= 0 && high < size;
  }

 private:
  const Sizes& sizes_;
  std::map<std::string, int, std::less<>> slots_;
  std::vector<std::int64_t> extents_;  // by slot
};

/// Compiler from expressions to plans. A scope is a level of the loop nest: the outermost axes, or
/// one fold. An expression is placed into the outermost scope that has all it depends on
/// (loop-invariant code motion).
class Planner {
 public:
  Planner(const std::vector<Operand>& operands, const Sizes& sizes, Plan& plan)
      : operands_(operands), sizes_(sizes), plan_(plan), slots_(sizes) {}

  Expected<Done> run(const std::vector<Axis>& over, const std::vector<Scalar>& results) {
    scopes_.emplace_back();
    for (const Axis& axis : over) {
      TESSERA_TRY(const std::int64_t extent, number(axis.size()));
      plan_.axes.push_back(extent);
      bind(axis.name, extent);
    }
    for (const Scalar& result : results) plan_.results.push_back(emit(result).reg);
    plan_.code = std::move(scopes_[0].code);
    plan_.slots = slots_.count();
    if (error_) return *error_;
    return Done{};
  }

 private:
  struct Place {
    int reg = -1;
    int scope = 0;  // the depth at which it is computed
  };
  struct Scope {
    Code code;
    std::unordered_map<const void*, Place> made;
    std::unordered_map<const Fold*, int> folds;  // those that run here
  };

  Expected<std::int64_t> number(const Dim& dim) const {
    const auto value = resolved(dim, sizes_).constant();
    if (!value || *value < 0)
      return Diagnostic{.id = "eval-unbound-size",
                        .message = fmt::format("size {} is not bound to a number",
                                               resolved(dim, sizes_).to_string())};
    return *value;
  }

  int bind(const std::string& axis, std::int64_t extent) {
    slot_scope_.push_back(static_cast<int>(scopes_.size()) - 1);
    return slots_.bind(axis, extent);
  }

  int new_register(Sort sort) {
    plan_.registers.push_back(sort);
    return static_cast<int>(plan_.registers.size()) - 1;
  }

  Sort sort_of_register(int reg) const { return plan_.registers[static_cast<std::size_t>(reg)]; }

  Place add(Instruction instruction, Sort sort, int scope) {
    instruction.out = new_register(sort);
    const Place place{instruction.out, scope};
    scopes_[static_cast<std::size_t>(scope)].code.push_back(std::move(instruction));
    return place;
  }

  /// Converts a value to another sort.
  Place converted(const Place& place, Sort sort) {
    const Sort from = sort_of_register(place.reg);
    const bool both_integral = from != Sort::Value && sort != Sort::Value;
    if (from == sort || both_integral) return place;
    return add({.kind = Instruction::Kind::Convert, .args = {place.reg}}, sort, place.scope);
  }

  Place emit(const Scalar& scalar) {
    for (std::size_t depth = scopes_.size(); depth-- > 0;) {
      const auto it = scopes_[depth].made.find(scalar.id());
      if (it != scopes_[depth].made.end()) return it->second;
    }
    keep_.push_back(scalar);  // its id must stay its own while the memo lives
    const Place place = std::visit([&](const auto& node) { return (*this)(node); }, scalar.node());
    scopes_[static_cast<std::size_t>(place.scope)].made.emplace(scalar.id(), place);
    return place;
  }

 public:  // one overload per kind of node
  Place operator()(const node::Constant& n) {
    return add({.kind = Instruction::Kind::Constant, .number = n.number, .integer = n.integer},
               n.sort, 0);
  }

  Place operator()(const node::Index& n) {
    const int slot = slots_.of(n.axis);
    return add({.kind = Instruction::Kind::Index, .which = slot}, Sort::Integer,
               slot_scope_[static_cast<std::size_t>(slot)]);
  }

  Place operator()(const node::Size& n) {
    const auto value = number(n.dim);
    if (!value) fail(value.error());
    return add({.kind = Instruction::Kind::Constant, .integer = value ? *value : 0}, Sort::Integer,
               0);
  }

  Place operator()(const node::Read& n) {
    const auto operand = std::ranges::find(operands_, n.operand, &Operand::name);
    TESSERA_CHECK(operand != operands_.end(), "operand {} is not there", n.operand);
    Access access;
    access.operand = static_cast<int>(operand - operands_.begin());
    int scope = 0;
    std::int64_t stride = 1;
    for (std::size_t axis = n.at.size(); axis-- > 0;) {
      const auto size = number(operand->shape[axis]);
      if (!size) fail(size.error());
      const std::int64_t extent = size ? *size : 0;
      const auto at = slots_.affine(n.at[axis]);
      if (const auto offset = at ? access.offset.plus(*at, stride) : std::nullopt) {
        access.offset = *offset;
        for (const auto& [slot, factor] : at->terms)
          scope = std::max(scope, slot_scope_[static_cast<std::size_t>(slot)]);
        if (!slots_.stays_within(*at, extent))
          access.checked.push_back({*at, extent, static_cast<int>(axis)});
      } else {
        const Place computed = emit(n.at[axis]);
        scope = std::max(scope, computed.scope);
        access.computed.push_back({computed.reg, stride, extent, static_cast<int>(axis)});
      }
      stride = integer::mul(stride, std::max<std::int64_t>(extent, 1));
    }
    if (n.otherwise != nullptr) {
      const Place otherwise = converted(emit(*n.otherwise), n.sort);
      access.otherwise = otherwise.reg;
      scope = std::max(scope, otherwise.scope);
    }
    plan_.accesses.push_back(std::move(access));
    return add(
        {.kind = Instruction::Kind::Read, .which = static_cast<int>(plan_.accesses.size()) - 1},
        n.sort, scope);
  }

  Place operator()(const node::Apply& n) {
    // The sort in which the arguments meet: that of the result, but for
    // comparisons and conditions.
    const Scalar probe(Node{n});
    Sort meet = probe.sort();
    const bool compares = n.fn == Fn::Equal || n.fn == Fn::Less || n.fn == Fn::LessEqual;
    if (compares) meet = apply(Fn::Add, n.args).sort();
    Instruction instruction{.kind = Instruction::Kind::Apply, .fn = n.fn};
    int scope = 0;
    for (std::size_t i = 0; i < n.args.size(); ++i) {
      Place arg = emit(n.args[i]);
      const bool condition = n.fn == Fn::Select && i == 0;
      const bool amount = (n.fn == Fn::ShiftLeft || n.fn == Fn::ShiftRight) && i == 1;
      if (!condition && !amount) arg = converted(arg, meet);
      instruction.args.push_back(arg.reg);
      scope = std::max(scope, arg.scope);
    }
    // The evaluator tells signed from unsigned comparisons by this.
    instruction.integer = meet == Sort::Unsigned ? 1 : 0;
    return add(std::move(instruction), probe.sort(), scope);
  }

  Place operator()(const node::Cast& n) {
    const Place arg = emit(*n.arg);
    return add({.kind = Instruction::Kind::Cast, .to = n.to, .args = {arg.reg}}, sort_of(n.to),
               arg.scope);
  }

  Place operator()(const node::Partial& n) {
    TESSERA_CHECK(!partials_.empty(), "left and right exist in the combine of a fold only");
    const auto& [left, right] = partials_.back();
    const auto& side = n.side == node::Partial::Side::Left ? left : right;
    return {side[static_cast<std::size_t>(n.component)], static_cast<int>(scopes_.size()) - 1};
  }

  Place operator()(const node::Component& n) {
    const auto [number, scope] = fold_place(n.fold);
    const FoldPlan& plan = plan_.folds[static_cast<std::size_t>(number)];
    return {plan.results[static_cast<std::size_t>(n.index)], scope};
  }

 private:
  /// The number of a fold and the scope that it runs in; components of one fold
  /// share it.
  std::pair<int, int> fold_place(const std::shared_ptr<const Fold>& fold) {
    for (std::size_t depth = scopes_.size(); depth-- > 0;) {
      const auto it = scopes_[depth].folds.find(fold.get());
      if (it != scopes_[depth].folds.end()) return {it->second, static_cast<int>(depth)};
    }
    const std::pair<int, int> place = emit_fold(*fold);
    scopes_[static_cast<std::size_t>(place.second)].folds.emplace(fold.get(), place.first);
    return place;
  }

  /// Emits a fold; returns its number and the scope that it runs in.
  std::pair<int, int> emit_fold(const Fold& fold) {
    FoldPlan made;
    made.simple = fold.simple();
    int scope = 0;
    for (const Scalar& init : fold.init) {
      const Place place = emit(init);
      made.init.push_back(place.reg);
      scope = std::max(scope, place.scope);
    }
    for (const Bound& bound : fold.bounds) {
      FoldPlan::Loop loop{.slot = -1};
      const auto known = constant(bound.extent);
      if (known) {
        loop.extent = std::max<std::int64_t>(*known, 0);
      } else {
        const Place extent = emit(bound.extent);
        loop.extent_reg = extent.reg;
        scope = std::max(scope, extent.scope);
      }
      made.loops.push_back(loop);
    }

    scopes_.emplace_back();
    const int depth = static_cast<int>(scopes_.size()) - 1;
    for (std::size_t i = 0; i < fold.bounds.size(); ++i) {
      FoldPlan::Loop& loop = made.loops[i];
      loop.slot = bind(fold.bounds[i].axis, loop.extent_reg < 0 ? loop.extent : kUnbounded);
    }
    for (std::size_t i = 0; i < fold.lift.size(); ++i) {
      const Place lifted = converted(emit(fold.lift[i]), fold.init[i].sort());
      made.lift.push_back(lifted.reg);
    }
    // What the lift depends on outside of this fold keeps the fold from going
    // further out.
    scope = std::max(scope, outer_dependence(scopes_.back().code, depth));
    for (const int reg : made.lift) scope = std::max(scope, place_of(reg, depth));
    made.body = std::move(scopes_.back().code);
    for (const Bound& bound : fold.bounds) slots_.unbind(bound.axis);
    find_product(made);
    scopes_.pop_back();

    scopes_.emplace_back();
    for (const Scalar& init : fold.init) {
      made.left.push_back(new_register(init.sort()));
      made.right.push_back(new_register(init.sort()));
      made.results.push_back(new_register(init.sort()));
    }
    partials_.emplace_back(made.left, made.right);
    for (std::size_t i = 0; i < fold.combine.size(); ++i)
      made.combined.push_back(converted(emit(fold.combine[i]), fold.init[i].sort()).reg);
    partials_.pop_back();
    made.combine = std::move(scopes_.back().code);
    scopes_.pop_back();

    const int number = static_cast<int>(plan_.folds.size());
    plan_.folds.push_back(std::move(made));
    scopes_[static_cast<std::size_t>(scope)].code.push_back(
        {.kind = Instruction::Kind::Fold, .which = number});
    return {number, scope};
  }

  /// The deepest scope outside of `depth` that the code in it reads from.
  int outer_dependence(const Code& code, int depth) const {
    int scope = 0;
    const auto see = [&](int reg) { scope = std::max(scope, place_of(reg, depth)); };
    for (const Instruction& instruction : code) {
      for (const int reg : instruction.args) see(reg);
      if (instruction.kind == Instruction::Kind::Index)
        scope =
            std::max(scope, below(slot_scope_[static_cast<std::size_t>(instruction.which)], depth));
      if (instruction.kind == Instruction::Kind::Read) {
        const Access& access = plan_.accesses[static_cast<std::size_t>(instruction.which)];
        for (const auto& [slot, factor] : access.offset.terms)
          scope = std::max(scope, below(slot_scope_[static_cast<std::size_t>(slot)], depth));
        for (const Access::Checked& checked : access.checked)
          for (const auto& [slot, factor] : checked.at.terms)
            scope = std::max(scope, below(slot_scope_[static_cast<std::size_t>(slot)], depth));
        for (const Access::Computed& computed : access.computed) see(computed.reg);
        if (access.otherwise >= 0) see(access.otherwise);
      }
      if (instruction.kind == Instruction::Kind::Fold) {
        const FoldPlan& inner = plan_.folds[static_cast<std::size_t>(instruction.which)];
        for (const int reg : inner.init) see(reg);
        for (const FoldPlan::Loop& loop : inner.loops)
          if (loop.extent_reg >= 0) see(loop.extent_reg);
        scope = std::max(scope, outer_dependence(inner.body, depth));
        scope = std::max(scope, outer_dependence(inner.combine, depth));
        for (const int reg : inner.lift) see(reg);
      }
    }
    return scope;
  }

  static int below(int scope, int depth) { return scope < depth ? scope : 0; }

  /// The scope in which a register is computed, if it lies outside of `depth`;
  /// else 0.
  int place_of(int reg, int depth) const {
    for (int scope = depth - 1; scope > 0; --scope)
      for (const Instruction& instruction : scopes_[static_cast<std::size_t>(scope)].code) {
        if (instruction.out == reg) return scope;
        if (instruction.kind == Instruction::Kind::Fold &&
            std::ranges::count(plan_.folds[static_cast<std::size_t>(instruction.which)].results,
                               reg) > 0)
          return scope;
      }
    return 0;
  }

  /// Recognizes a sum of products: sum of read * read, or of one read, perhaps
  /// under a condition.
  void find_product(FoldPlan& fold) const {
    if (fold.simple != Fn::Add || fold.lift.size() != 1) return;
    if (sort_of_register(fold.init[0]) != Sort::Value) return;
    for (const FoldPlan::Loop& loop : fold.loops)
      if (loop.extent_reg >= 0) return;
    const auto made_by = [&](int reg) -> const Instruction* {
      const auto it = std::ranges::find(fold.body, reg, &Instruction::out);
      return it == fold.body.end() ? nullptr : &*it;
    };
    const auto is = [](const Instruction* instruction, Fn fn) {
      return instruction != nullptr && instruction->kind == Instruction::Kind::Apply &&
             instruction->fn == fn;
    };
    std::vector<const Instruction*> taken;  // what the product itself stands for
    const Instruction* term = made_by(fold.lift[0]);
    int when = -1;
    if (is(term, Fn::Select) && is_zero(term->args[2])) {
      taken.push_back(term);
      when = term->args[0];
      term = made_by(term->args[1]);
    }
    std::vector<const Instruction*> reads = {term};
    if (is(term, Fn::Mul)) {
      taken.push_back(term);
      reads = {made_by(term->args[0]), made_by(term->args[1])};
    }
    std::vector<int> accesses;
    for (const Instruction* read : reads) {
      if (read == nullptr || read->kind != Instruction::Kind::Read) return;
      if (sort_of_register(read->out) != Sort::Value) return;
      const int otherwise = plan_.accesses[static_cast<std::size_t>(read->which)].otherwise;
      if (otherwise >= 0 && !is_zero(otherwise)) return;
      taken.push_back(read);
      accesses.push_back(read->which);
    }
    Code code;
    for (const Instruction& instruction : fold.body) {
      if (std::ranges::find(taken, &instruction) != taken.end()) continue;
      if (instruction.kind == Instruction::Kind::Fold) return;
      for (const Instruction* other : taken)
        if (std::ranges::find(instruction.args, other->out) != instruction.args.end()) return;
      code.push_back(instruction);
    }
    fold.product = std::move(accesses);
    fold.product_code = std::move(code);
    fold.product_when = when;
  }

  bool is_zero(int reg) const {
    for (const Instruction& instruction : scopes_[0].code)
      if (instruction.out == reg)
        return instruction.kind == Instruction::Kind::Constant && instruction.number == 0;
    return false;
  }

  std::optional<std::int64_t> constant(const Scalar& scalar) {
    const std::optional<AffinePosition> at = slots_.affine(scalar);
    return at && at->is_constant() ? std::optional(at->base) : std::nullopt;
  }

  void fail(const Diagnostic& diagnostic) {
    if (!error_) error_ = diagnostic;
  }

  const std::vector<Operand>& operands_;
  const Sizes& sizes_;
  Plan& plan_;
  std::vector<Scope> scopes_;
  Slots slots_;
  std::vector<int> slot_scope_;  // by slot
  std::vector<std::pair<std::vector<int>, std::vector<int>>> partials_;
  std::vector<Scalar> keep_;
  std::optional<Diagnostic> error_;
};

}  // namespace

Expected<Plan> make_plan(const std::vector<Operand>& operands, const std::vector<Axis>& over,
                         const std::vector<Scalar>& results, const Sizes& sizes) {
  Plan plan;
  Planner planner(operands, sizes, plan);
  TESSERA_TRY_DONE(planner.run(over, results));
  return plan;
}

}  // namespace tessera
