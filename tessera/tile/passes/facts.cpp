#include "tessera/tile/passes/facts.h"

#include <numeric>
#include <utility>

#include "tessera/tile/passes/ranges.h"
#include "tessera/tile/passes/rewrite.h"
#include "tessera/tile/passes/transfer.h"

namespace tessera::tile {
namespace {

class Analysis {
 public:
  Analysis(const Kernel& kernel, std::int64_t alignment)
      : kernel_(kernel),
        alignment_(alignment),
        definitions_(definitions(kernel)),
        assumed_(kernel.values.size()),
        homes_(kernel.values.size(), nullptr) {
    for (const Value& value : kernel.values) facts_.push_back(unknown(value.type));
    collect(kernel.body);
  }

  std::vector<Facts> run(const std::vector<std::int64_t>& divisors) && {
    const std::vector<ValueId>& params = kernel_.params();
    for (std::size_t i = 0; i < params.size(); ++i) {
      Facts facts = facts_[params[i]];
      if (i < divisors.size()) facts.divisor = divisors[i];
      set(params[i], std::move(facts));
    }
    walk(kernel_.body);
    for (Facts& facts : facts_) {
      if (facts.divisor == 0) facts.divisor = std::int64_t{1} << 62;
    }
    return std::move(facts_);
  }

 private:
  /// What an assumption says of a value.
  struct Assumed {
    Interval range = {};
    std::int64_t divisor = 1;
  };

  static constexpr int kMostDepth = 8;    // of assumptions that are conjunctions
  static constexpr int kMostNesting = 4;  // of loops whose rounds are followed

  std::optional<std::int64_t> integer(ValueId id) const {
    if (!definitions_[id] || kernel_.ops[*definitions_[id]].code != Code::Const) return {};
    return kernel_.ops[*definitions_[id]].literal.integer;
  }

  /// An assumption holds of a value in general if the two stand in the same region: wherever the
  /// value is, the assumption is made.
  void collect(const Region& region) {
    for (const ValueId id : region.params) homes_[id] = &region;
    for (const OpId id : region.ops) {
      const Operation& op = kernel_.ops[id];
      for (const ValueId out : op.out) homes_[out] = &region;
      if (op.code == Code::Assume) assume(op.in[0], region, kMostDepth);
      for (const Region& inner : op.regions) collect(inner);
    }
  }

  void assume(ValueId condition, const Region& region, int depth) {
    if (depth == 0 || !definitions_[condition]) return;
    const Operation& op = kernel_.ops[*definitions_[condition]];
    if (op.code != Code::Map || op.in.size() != 2) return;
    if (op.function == Function::And) {
      for (const ValueId part : op.in) assume(part, region, depth - 1);
      return;
    }
    const auto left = integer(op.in[0]), right = integer(op.in[1]);
    if (left.has_value() == right.has_value() || !is_integer(kernel_.type(op.in[0]).dtype)) return;
    const ValueId x = op.in[right ? 0 : 1];
    const std::int64_t bound = right ? *right : *left;
    // x < bound, whichever side x is on
    const auto below = [&](std::int64_t by) { return add({{}, bound}, {{}, by}); };
    const auto above = [&](std::int64_t by) { return add({bound, {}}, {by, {}}); };
    switch (op.function) {
      case Function::Less: return note(x, {right ? below(-1) : above(1)}, region);
      case Function::LessEqual: return note(x, {right ? below(0) : above(0)}, region);
      case Function::Greater: return note(x, {right ? above(1) : below(-1)}, region);
      case Function::GreaterEqual: return note(x, {right ? above(0) : below(0)}, region);
      case Function::Equal: break;
      default: return;
    }
    note(x, {{bound, bound}}, region);
    if (bound != 0 || !definitions_[x]) return;
    const Operation& rem = kernel_.ops[*definitions_[x]];
    if (rem.code != Code::Map || rem.function != Function::Rem) return;
    if (const auto by = integer(rem.in[1]); by && *by > 0)
      note(rem.in[0], {.divisor = *by}, region);
  }

  void note(ValueId x, const Assumed& assumed, const Region& region) {
    if (homes_[x] == &region) assumed_[x].push_back(assumed);
  }

  void set(ValueId id, Facts facts) {
    for (const Assumed& assumed : assumed_[id]) {
      const Interval range = meet(range_of(facts), assumed.range);
      facts.low = range.low, facts.high = range.high;
      if (facts.divisor <= (std::int64_t{1} << 62) / assumed.divisor)
        facts.divisor = std::lcm(facts.divisor, assumed.divisor);
    }
    facts_[id] = std::move(facts);
  }

  void walk(const Region& region) {
    for (const OpId id : region.ops) {
      const Operation& op = kernel_.ops[id];
      switch (op.code) {
        case Code::For:
          set(op.regions[0].params[0], index(op));
          loop(op, 3, 1);
          break;
        case Code::While: loop(op, 0, 0); break;
        case Code::If:
          for (const Region& inner : op.regions) walk(inner);
          for (std::size_t i = 0; i < op.out.size(); ++i)
            set(op.out[i],
                join(facts_[yields(kernel_, op.regions[0])[i]],
                     facts_[yields(kernel_, op.regions[1])[i]], kernel_.type(op.out[i])));
          break;
        default:
          for (const Region& inner : op.regions) walk(inner);
          if (op.out.size() == 1 && op.regions.empty()) {
            Facts facts = transfer(kernel_, facts_, op);
            if (op.code == Code::Base) facts.divisor = std::lcm(facts.divisor, alignment_);
            set(op.out[0], std::move(facts));
          }
      }
    }
  }

  Facts index(const Operation& op) const {
    const Facts &from = facts_[op.in[0]], &to = facts_[op.in[1]], &step = facts_[op.in[2]];
    Facts facts = unknown(kernel_.type(op.in[0]));
    facts.divisor = std::gcd(from.divisor, step.divisor);
    if (!step.low || *step.low < 1) return facts;
    if (from.low) facts.low = from.low;
    if (to.high) facts.high = add({{}, to.high}, {{}, -1}).high;
    // Where all is known, the last round is.
    const bool known = from.low && from.low == from.high && facts.high && to.low == to.high &&
                       step.low == step.high && *from.low <= *facts.high;
    if (known)
      facts.high =
          *facts.high - static_cast<std::int64_t>((Wide{*facts.high} - *from.low) % *step.low);
    return facts;
  }

  /// What is carried holds in every round what holds of its start and of what is yielded. A bound
  /// that moves is given up, so that it ends soon; of what deeply nested loops carry nothing is
  /// said, because each of them is followed again in every round of those around it.
  void loop(const Operation& op, std::size_t first_in, std::size_t first_param) {
    const std::size_t carried = op.out.size();
    std::vector<Facts> entry;
    for (std::size_t i = 0; i < carried; ++i)
      entry.push_back(nesting_ < kMostNesting ? facts_[op.in[first_in + i]]
                                              : unknown(kernel_.type(op.out[i])));
    ++nesting_;
    for (bool changed = true; changed;) {
      for (const Region& region : op.regions) {
        for (std::size_t i = 0; i < carried; ++i) set(region.params[first_param + i], entry[i]);
      }
      for (const Region& region : op.regions) walk(region);
      changed = false;
      for (std::size_t i = 0; i < carried; ++i) {
        const Type& type = kernel_.type(op.out[i]);
        Facts next = join(entry[i], facts_[yields(kernel_, op.regions.back())[i]], type);
        if (next == entry[i]) continue;
        const Interval widest = type.is_number() ? range_of(type.dtype) : Interval{};
        if (next.low != entry[i].low) next.low = widest.low;
        if (next.high != entry[i].high) next.high = widest.high;
        changed = true;
        entry[i] = std::move(next);
      }
    }
    --nesting_;
    for (std::size_t i = 0; i < carried; ++i) set(op.out[i], entry[i]);
  }

  const Kernel& kernel_;
  std::int64_t alignment_;
  std::vector<std::optional<OpId>> definitions_;
  std::vector<Facts> facts_;
  std::vector<std::vector<Assumed>> assumed_;  // by value
  std::vector<const Region*> homes_;           // where each value is defined
  int nesting_ = 0;
};

}  // namespace

std::vector<Facts> facts_of(const Kernel& kernel, std::int64_t alignment,
                            const std::vector<std::int64_t>& divisors) {
  return Analysis(kernel, alignment).run(divisors);
}

}  // namespace tessera::tile
