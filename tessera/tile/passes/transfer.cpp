#include "tessera/tile/passes/transfer.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "tessera/tile/passes/groups.h"

namespace tessera::tile {
namespace {

void set_range(Facts& facts, const Interval& range) {
  facts.low = range.low, facts.high = range.high;
}

std::optional<std::int64_t> constant_of(const Facts& facts) {
  return facts.low && facts.low == facts.high ? facts.low : std::nullopt;
}

Facts constant(const Type& type, std::int64_t integer) {
  // The least number has no absolute value.
  const bool least = integer == std::numeric_limits<std::int64_t>::min();
  return {least ? kLargeDivisor : std::abs(integer), ones(type.shape), type.shape, integer,
          integer};
}

/// Transfer function of one operation.
class Transfer {
 public:
  Transfer(const Kernel& kernel, const std::vector<Facts>& facts, const Operation& op)
      : kernel_(kernel), facts_(facts), op_(op), type_(kernel.type(op.out[0])) {}

  Facts facts() const {
    switch (op_.code) {
      case Code::Pid: return ranged({0, kMostPrograms - 1});
      case Code::Npid: return ranged({1, kMostPrograms});
      case Code::Const:
        if (is_float(type_.dtype) || (type_.dtype == DType::U64 && op_.literal.integer < 0)) {
          Facts all = unknown(type_);
          all.constancy = type_.shape;
          return all;
        }
        return constant(type_, op_.literal.integer);
      case Code::Iota: return {0, type_.shape, {1}, 0, type_.shape[0] - 1};
      case Code::Broadcast:
      case Code::Reshape:
      case Code::Permute:
      case Code::Slice: return moved(op_, in(0), in_type(0), type_);
      case Code::Map: return type_.dtype == DType::Bool || integers() ? map() : uniform();
      case Code::Cast: return cast();
      case Code::Bitcast: return uniform();
      case Code::Reduce: return reduce();
      case Code::Gather: return ranged(range_of(in(0)));
      case Code::Offset: return sum(in(0), unwrapped(in(1), in_type(1).dtype), step_of(type_));
      case Code::Load: return uniform();
      case Code::Dim:
      case Code::Stride: return extent();
      case Code::Hint: return hint();
      default: return unknown(type_);
    }
  }

 private:
  static constexpr std::int64_t kMostPrograms = std::int64_t{1} << 31;

  const Facts& in(std::size_t i) const { return facts_[op_.in[i]]; }
  const Type& in_type(std::size_t i) const { return kernel_.type(op_.in[i]); }
  bool integers() const { return is_integer(type_.dtype); }

  Facts ranged(const Interval& range) const {
    Facts facts = unknown(type_);
    set_range(facts, meet(range_of(facts), range));
    return facts;
  }

  /// Equal operands give equal results; nothing else is known.
  Facts uniform() const {
    Facts facts = unknown(type_);
    facts.constancy = type_.shape;
    for (std::size_t i = 0; i < op_.in.size(); ++i)
      facts.constancy = gcd(facts.constancy, in(i).constancy);
    return facts;
  }

  /// Facts of wrapped arithmetic: where numbers may wrap, only powers of two divide.
  Facts wrapped(Facts facts, const Interval& range) const {
    if (fits(range, type_.dtype)) {
      set_range(facts, range);
      return facts;
    }
    set_range(facts, range_of(type_.dtype));
    facts.divisor =
        std::gcd(facts.divisor, std::int64_t{1} << std::min(62, 8 * byte_width(type_.dtype)));
    return facts;
  }

  /// Facts of a + b except the range; `step` is the scale of b.
  static Facts sum(const Facts& a, const Facts& b, std::int64_t step) {
    Facts facts{.contiguity = {}, .constancy = gcd(a.constancy, b.constancy)};
    for (std::size_t i = 0; i < a.contiguity.size(); ++i)
      facts.contiguity.push_back(std::max(std::gcd(a.contiguity[i], b.constancy[i]),
                                          std::gcd(a.constancy[i], b.contiguity[i])));
    facts.divisor = std::gcd(divisor_at(a, facts.contiguity, step),
                             product(step, divisor_at(b, facts.contiguity)));
    return facts;
  }

  Facts map() const {
    const Facts &a = in(0), &b = in(op_.in.size() > 1 ? 1 : 0);
    const auto by = constant_of(b);
    switch (op_.function) {
      case Function::Add: return wrapped(sum(a, b, 1), add(range_of(a), range_of(b)));
      case Function::Neg: return wrapped(without_contiguity(a), negate(range_of(a)));
      case Function::Sub: {
        const Interval range = add(range_of(a), negate(range_of(b)));
        return wrapped(sum(a, without_contiguity(b), 1), range);
      }
      case Function::Mul: {
        Facts facts = without_contiguity(a);
        facts.constancy = gcd(a.constancy, b.constancy);
        facts.divisor = product(facts.divisor, divisor_of_all(b));
        return wrapped(facts, multiply(range_of(a), range_of(b)));
      }
      case Function::Shl:
        if (by && *by >= 0 && *by < std::min(62, 8 * byte_width(type_.dtype) - 1)) {
          Facts facts = without_contiguity(a);
          const std::int64_t factor = std::int64_t{1} << *by;
          facts.divisor = product(facts.divisor, factor);
          return wrapped(facts, multiply(range_of(a), {factor, factor}));
        }
        return uniform();
      case Function::Shr:
        if (by && *by >= 0 && *by < 62 && a.low && *a.low >= 0)
          return divided(a, std::int64_t{1} << *by);
        return uniform();
      case Function::Div: return by && *by > 0 ? divided(a, *by) : lessened(a, b);
      case Function::Rem: return by && *by > 0 ? remainder(a, *by) : lessened(a, b);
      case Function::And:
        if (integers() && by && *by >= 0) {
          if (std::has_single_bit(static_cast<std::uint64_t>(*by) + 1) && a.low && *a.low >= 0 &&
              *by < std::numeric_limits<std::int64_t>::max())
            return remainder(a, *by + 1);
          Facts facts = uniform();
          set_range(facts, {0, *by});
          return facts;
        }
        return logic();
      case Function::Or: return logic();
      case Function::Min:
      case Function::Minimum: return least(a, b);
      case Function::Max:
      case Function::Maximum: return most(a, b);
      case Function::Select: {
        Facts facts = join(in(1), in(2), type_);
        facts.contiguity = gcd(facts.contiguity, in(0).constancy);
        facts.constancy = gcd(facts.constancy, in(0).constancy);
        facts.divisor =
            std::gcd(divisor_at(in(1), facts.contiguity), divisor_at(in(2), facts.contiguity));
        return facts;
      }
      default:
        return is_compare(op_.function) && !is_float(in_type(0).dtype) ? compare(a, b) : uniform();
    }
  }

  Facts least(const Facts& a, const Facts& b) const {
    Facts facts = without_contiguity(join(a, b, type_));
    // A minimum is at most each of its operands, and at least one of them.
    set_range(facts, {facts.low, meet({{}, a.high}, {{}, b.high}).high});
    return facts;
  }
  Facts most(const Facts& a, const Facts& b) const {
    Facts facts = without_contiguity(join(a, b, type_));
    set_range(facts, {meet({a.low, {}}, {b.low, {}}).low, facts.high});
    return facts;
  }

  /// Groups in which a growing, non-negative number stays within one multiple of `by`.
  static Counts aligned(const Facts& a, std::int64_t by) {
    Counts groups;
    for (const std::int64_t own : a.contiguity)
      groups.push_back(std::gcd(std::gcd(own, by), a.divisor));
    // With several growing axes, an element off the first of one of them is not aligned.
    const auto growing = std::count_if(a.contiguity.begin(), a.contiguity.end(),
                                       [](std::int64_t own) { return own > 1; });
    return growing > 1 ? Counts(groups.size(), 1) : groups;
  }

  Facts divided(const Facts& a, std::int64_t by) const {
    Facts facts = uniform();
    const std::int64_t all = divisor_of_all(a);
    if (all % by == 0) facts.divisor = all / by;
    if (a.low && *a.low >= 0) {
      const Counts groups = aligned(a, by);
      for (std::size_t i = 0; i < groups.size(); ++i)
        facts.constancy[i] = std::max(facts.constancy[i], groups[i]);
    }
    set_range(facts, divide(range_of(a), by));
    return facts;
  }

  /// A quotient by a positive number, and any remainder, lies between 0 and the dividend.
  Facts lessened(const Facts& a, const Facts& b) const {
    Facts facts = uniform();
    const bool toward_zero = op_.function == Function::Rem || (b.low && *b.low >= 1);
    if (toward_zero && a.low && *a.low >= 0) set_range(facts, {0, a.high});
    return facts;
  }

  Facts remainder(const Facts& a, std::int64_t by) const {
    const bool positive = a.low && *a.low >= 0;
    if (positive && a.high && *a.high < by) return a;
    Facts facts = uniform();
    if (positive) facts.contiguity = aligned(a, by);
    facts.divisor = std::gcd(divisor_at(a, facts.contiguity), by);
    set_range(facts, {positive ? 0 : 1 - by, by - 1});
    return facts;
  }

  /// And and Or of bools, one of which may be known.
  Facts logic() const {
    Facts facts = uniform();
    if (type_.dtype != DType::Bool) return facts;
    set_range(facts, op_.function == Function::And
                         ? Interval{*in(0).low & *in(1).low, *in(0).high & *in(1).high}
                         : Interval{*in(0).low | *in(1).low, *in(0).high | *in(1).high});
    return facts;
  }

  Facts compare(const Facts& a, const Facts& b) const {
    Facts facts = uniform();
    const bool below = op_.function == Function::Less || op_.function == Function::LessEqual;
    const bool above = op_.function == Function::Greater || op_.function == Function::GreaterEqual;
    if (below || above) {
      const Facts &small = below ? a : b, &large = below ? b : a;
      const bool strict = op_.function == Function::Less || op_.function == Function::Greater;
      // small - large, against 0
      const Interval gap = add(range_of(small), negate(range_of(large)));
      const std::int64_t edge = strict ? -1 : 0;
      if (gap.high && *gap.high <= edge) facts.low = 1;
      if (gap.low && *gap.low > edge) facts.high = 0;
    }
    // i < n changes only at n: not inside of a group that n does not cut.
    if (op_.function == Function::Less || op_.function == Function::GreaterEqual) {
      const std::int64_t cut = divisor_of_all(b);
      for (std::size_t i = 0; i < facts.constancy.size(); ++i) {
        const bool alone = std::count_if(a.contiguity.begin(), a.contiguity.end(),
                                         [](std::int64_t own) { return own > 1; }) <= 1;
        if (!alone || b.contiguity[i] != 1) continue;
        const std::int64_t groups =
            std::gcd(std::gcd(a.contiguity[i], a.divisor), std::gcd(cut, b.constancy[i]));
        facts.constancy[i] = std::max(facts.constancy[i], groups);
      }
    }
    return facts;
  }

  /// Facts of casts to wider integers, without wrapping. Where a sum may have wrapped, contiguity
  /// holds only in groups of a power of two that start at its multiples.
  static Facts unwrapped(const Facts& x, DType dtype) {
    const Interval all = range_of(dtype);
    if (byte_width(dtype) == 8 || (x.low > all.low && x.high < all.high)) return x;
    Facts facts = x;
    facts.contiguity = aligned(x, std::int64_t{1} << (8 * byte_width(dtype) - 1));
    facts.divisor = divisor_at(x, facts.contiguity);
    return facts;
  }

  Facts cast() const {
    if (!integers() || !is_integer(in_type(0).dtype)) return uniform();
    const Facts facts = unwrapped(in(0), in_type(0).dtype);
    return wrapped(facts, range_of(facts));
  }

  Facts reduce() const {
    const Function f = op_.function;
    const bool among = f == Function::Min || f == Function::Max || f == Function::Minimum ||
                       f == Function::Maximum;
    return among ? ranged(range_of(in(0))) : unknown(type_);
  }

  Facts extent() const {
    const auto axis = static_cast<std::size_t>(op_.ints[0]);
    const Type& view = in_type(0);
    const std::int64_t known = (op_.code == Code::Dim ? view.shape : view.strides)[axis];
    if (known != kDynamic) return constant(type_, known);
    return op_.code == Code::Dim ? ranged({0, {}}) : unknown(type_);
  }

  Facts hint() const {
    Facts facts = in(0);
    if (op_.text == "multiple_of") {
      std::int64_t every = 0;
      for (const std::int64_t divisor : op_.ints) every = std::gcd(every, divisor);
      if (facts.divisor != 0 && every <= kLargeDivisor / facts.divisor)
        facts.divisor = std::lcm(facts.divisor, every);
      return facts;
    }
    Counts& list = op_.text == "max_contiguous" ? facts.contiguity : facts.constancy;
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = std::max(list[i], op_.ints[i]);
    return facts;
  }

  const Kernel& kernel_;
  const std::vector<Facts>& facts_;
  const Operation& op_;
  const Type& type_;
};

}  // namespace

Facts unknown(const Type& type) {
  if (type.is_view()) return {};
  Facts facts{.contiguity = ones(type.shape), .constancy = ones(type.shape)};
  if (type.is_pointer())
    facts.divisor = byte_width(type.dtype);  // memory is aligned to its elements
  else
    set_range(facts, range_of(type.dtype));
  return facts;
}

Facts join(const Facts& a, const Facts& b, const Type& type) {
  Facts facts{.contiguity = gcd(a.contiguity, b.contiguity),
              .constancy = gcd(a.constancy, b.constancy)};
  facts.divisor = std::gcd(divisor_at(a, facts.contiguity, step_of(type)),
                           divisor_at(b, facts.contiguity, step_of(type)));
  set_range(facts, join(range_of(a), range_of(b)));
  return facts;
}

Facts transfer(const Kernel& kernel, const std::vector<Facts>& facts, const Operation& op) {
  return Transfer(kernel, facts, op).facts();
}

}  // namespace tessera::tile
