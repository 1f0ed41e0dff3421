#include "tessera/tile/passes/fold.h"

#include <array>
#include <utility>

#include "tessera/tile/passes/parts.h"

namespace tessera::tile {
namespace {

bool is_const(const Rewrite& out, ValueId now, std::int64_t integer) {
  const auto literal = out.literal(now);
  return literal && literal->integer == integer;
}

/// Trip count of a loop, if it is known to be 0 or 1.
std::optional<int> few_rounds(const Rewrite& out, const Operation& loop) {
  std::array<std::int64_t, 3> bounds{};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto literal = out.literal(out.of(loop.in[i]));
    if (!literal) return {};
    bounds[i] = literal->integer;
  }
  const auto [from, to, step] = bounds;
  if (step <= 0 || from >= to) return 0;
  // Difference of two ordered numbers, which fits into the unsigned range.
  const auto distance = static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
  if (static_cast<std::uint64_t>(step) >= distance) return 1;
  return {};
}

class Folding {
 public:
  explicit Folding(const Kernel& kernel) : kernel_(kernel), definitions_(definitions(kernel)) {}

  void visit(Rewrite& out, const Operation& op) const {
    switch (op.code) {
      case Code::If: return branch(out, op);
      case Code::For: return for_loop(out, op);
      case Code::While: return while_loop(out, op);
      case Code::Store:
      case Code::Atomic: return masked(out, op);
      case Code::Assume:
      case Code::Assert:
        if (!is_const(out, out.of(op.in[0]), 1)) out.copy(op);
        return;
      default: break;
    }
    if (op.out.size() != 1 || !op.regions.empty() || has_effect(op.code)) return out.copy(op);
    Operation now = op;
    now.in = out.of(op.in);
    const ValueId old = op.out[0];
    const Type& type = kernel_.type(old);
    for (const auto rule : {fold_shape, fold_number, fold_memory}) {
      if (const auto value = rule(out, now, type)) return out.set(old, *value);
    }
    out.copy(op);
  }

 private:
  static void set(Rewrite& out, const std::vector<ValueId>& old, const std::vector<ValueId>& now) {
    for (std::size_t i = 0; i < old.size(); ++i) out.set(old[i], now[i]);
  }

  static void branch(Rewrite& out, const Operation& op) {
    if (const auto condition = out.literal(out.of(op.in[0]))) {
      const Region& taken = op.regions[condition->integer != 0 ? 0 : 1];
      return set(out, op.out, out.inline_region(taken, {}));
    }
    out.copy(op);
    if (op.out.empty()) return;
    // Values that both branches yield are defined before them.
    const Operation& now = *out.definition(out.of(op.out[0]));
    const auto &yes = yields(out.result(), now.regions[0]),
               &no = yields(out.result(), now.regions[1]);
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      if (yes[i] == no[i]) out.set(op.out[i], yes[i]);
    }
  }

  /// Loop-carried values that change. The others are replaced by their start.
  std::vector<bool> changing(Rewrite& out, const Operation& op, std::size_t first_in,
                             std::size_t first_param) const {
    const std::vector<ValueId>& next = yields(kernel_, op.regions.back());
    std::vector<bool> keep;
    for (std::size_t i = 0; i < next.size(); ++i) {
      const ValueId start = op.in[first_in + i];
      const bool same = next[i] == op.regions.back().params[first_param + i] || next[i] == start;
      keep.push_back(!same);
      if (!same) continue;
      out.set(op.out[i], out.of(start));
      for (const Region& region : op.regions)
        out.set(region.params[first_param + i], out.of(start));
    }
    return keep;
  }

  void for_loop(Rewrite& out, const Operation& op) const {
    const auto rounds = few_rounds(out, op);
    if (!rounds) return out.copy(op, changing(out, op, 3, 1));
    std::vector<ValueId> carried = out.of({op.in.begin() + 3, op.in.end()});
    if (*rounds == 1) {
      carried.insert(carried.begin(), out.of(op.in[0]));
      carried = out.inline_region(op.regions[0], carried);
    }
    set(out, op.out, carried);
  }

  void while_loop(Rewrite& out, const Operation& op) const {
    const auto test = definitions_[yields(kernel_, op.regions[0])[0]];
    if (test && kernel_.ops[*test].code == Code::Const && kernel_.ops[*test].literal.integer == 0)
      return set(out, op.out, out.of(op.in));
    out.copy(op, changing(out, op, 0, 0));
  }

  /// Effects with a constant mask.
  static void masked(Rewrite& out, const Operation& op) {
    constexpr std::size_t kMask = 2;
    if (op.in.size() <= kMask) return out.copy(op);
    const auto mask = out.literal(out.of(op.in[kMask]));
    if (mask && mask->integer != 0) {
      Operation all = op;
      all.in.resize(kMask);
      return out.copy(all);
    }
    if (mask && op.code == Code::Store) return;
    out.copy(op);
  }

  const Kernel& kernel_;
  std::vector<std::optional<OpId>> definitions_;
};

}  // namespace

ValueId make(Rewrite& out, Operation op, Type type) {
  for (const auto rule : {fold_shape, fold_number, fold_memory}) {
    if (const auto value = rule(out, op, type)) return *value;
  }
  return out.emit(std::move(op), std::move(type));
}

Kernel fold(const Kernel& kernel) {
  const Folding folding(kernel);
  return Rewrite::run(kernel, [&](Rewrite& out, const Operation& op) { folding.visit(out, op); });
}

}  // namespace tessera::tile
