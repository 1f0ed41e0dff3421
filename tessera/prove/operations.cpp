#include "tessera/prove/operations.h"

#include <set>

namespace tessera::prove {
namespace {

using algebra::Factor;
using algebra::Sum;
using algebra::Term;
using certify::Kind;
using Operations = std::vector<Dim::Operation>;

void collect(const Dim& dim, Operations& into) {
  for (Dim::Operation& operation : dim.operations()) {
    const auto is_same = [&](const Dim::Operation& o) { return o.whole == operation.whole; };
    if (std::ranges::none_of(into, is_same)) into.push_back(std::move(operation));
  }
}

/// Those that speak of nothing that is bound further inside.
void collect(const Term& term, const std::vector<std::string>& hidden, Operations& into) {
  Operations found;
  for (const Dim& guard : term.guards) collect(guard, found);
  for (const Factor& factor : term.factors) {
    for (const Dim& dim : factor.at) collect(dim, found);
    if (factor.args == nullptr) continue;
    for (const Sum& arg : *factor.args) {
      for (const Term& inner : arg.terms) {
        std::vector<std::string> deeper = hidden;
        deeper.insert(deeper.end(), inner.bound.begin(), inner.bound.end());
        collect(inner, deeper, found);
      }
    }
  }
  for (Dim::Operation& operation : found)
    if (!speaks_of_any(operation.whole, hidden)) into.push_back(std::move(operation));
}

bool is_choice(const Dim::Operation& of) {
  return of.op == Dim::Op::Min || of.op == Dim::Op::Max;
}

/// One part over another, where nothing is left.
std::optional<Dim> exact_quotient(const Dim::Part& part, const Dim::Part& by) {
  const Dim sign = by.coefficient < 0 ? -1 : 1;
  const Dim whole = part.product * Dim(part.coefficient) * sign;
  const Dim divisor = by.product * Dim(by.coefficient) * sign;
  const Dim quotient = floor_div(whole, divisor);
  return quotient * divisor == whole ? std::optional(quotient) : std::nullopt;
}

/// What a/b might be: 0, or what takes multiples of b out of a.
std::vector<Dim> quotients(const Dim::Operation& of) {
  constexpr std::size_t kMost = 8;
  std::vector<Dim> result{0};
  if (of.a.constant() || of.b.constant()) result.push_back(1);
  const auto left = [&](const Dim& quotient) { return (of.a - quotient * of.b).parts().size(); };
  const std::size_t size = left(0);
  std::set<std::string> symbols;
  of.a.collect_symbols(symbols);
  for (const std::string& name : symbols)
    if (const Dim candidate = Dim::symbol(name); left(candidate) < size)
      result.push_back(candidate);
  const std::vector<Dim::Part> divisors = of.b.parts();
  for (const Dim::Part& part : of.a.parts())
    for (const Dim::Part& divisor : divisors)
      if (const auto candidate = exact_quotient(part, divisor);
          candidate && left(*candidate) <= size &&
          std::ranges::find(result, *candidate) == result.end())
        result.push_back(*candidate);
  if (result.size() > kMost) result.resize(kMost);
  return result;
}

/// Puts in the value of an operation, where it is known.
bool settle_operation(const Spot& spot, const Dim::Operation& of) {
  const auto reason_for = [&](const Dim& e) {
    return spot.arithmetic.reason_for(e, {.list = spot.site.premises, .avoiding = &of.whole});
  };
  if (is_choice(of)) {
    for (const Dim& chosen : {of.a, of.b}) {
      const Dim difference = chosen == of.a ? of.b - of.a : of.a - of.b;
      const auto reason = reason_for(of.op == Dim::Op::Min ? difference : -difference);
      if (!reason) continue;
      return spot.take({.kind = Kind::Settle, .dims = {of.whole, chosen}, .reasons = {*reason}});
    }
    return false;
  }
  const auto positive = reason_for(of.b - 1);
  if (!positive) return false;
  for (const Dim& quotient : quotients(of)) {
    const auto low = reason_for(of.a - of.b * quotient);
    if (!low) continue;
    const auto high = reason_for(of.b * quotient + of.b - 1 - of.a);
    if (!high) continue;
    return spot.take(
        {.kind = Kind::Settle, .dims = {of.whole, quotient}, .reasons = {*positive, *low, *high}});
  }
  return false;
}

/// A position as a multiple and a rest: on both sides at once, so only facts may be used.
bool divide_position(const Spot& spot, const Dim::Operation& of) {
  const auto fact = spot.arithmetic.reason_for(of.b - 1, {.list = spot.state.facts()});
  std::set<std::string> symbols;
  of.b.collect_symbols(symbols);
  const bool plain =
      std::ranges::none_of(symbols, [](const auto& name) { return name.starts_with('%'); });
  return fact && plain &&
         spot.apply({.kind = Kind::Divide, .dims = {of.a, of.b}, .reasons = {*fact}});
}

/// Tells the cases of an operation apart, or names its value.
bool remove_operation(const Spot& spot, const Dim::Operation& of) {
  if (is_choice(of)) return spot.take({.kind = Kind::Split, .dims = {of.a - of.b}});
  const std::vector<std::string>& bound = spot.term().bound;
  const Premises premises{.list = spot.site.premises, .avoiding = &of.whole};
  const auto positive = spot.arithmetic.reason_for(of.b - 1, premises);
  if (!positive) return false;
  if (const auto symbol = of.a.as_symbol()) {
    const auto here = std::ranges::find(bound, *symbol);
    if (here != bound.end()) {
      if (spot.take({.kind = Kind::Divide,
                     .item = static_cast<std::size_t>(here - bound.begin()),
                     .dims = {of.b},
                     .reasons = {*positive}}))
        return true;
    } else if (symbol->starts_with("%i") && divide_position(spot, of)) {
      return true;
    }
  }
  const auto natural = spot.arithmetic.reason_for(of.a, premises);
  // A quotient of positions and outer variables stays one: both sides write it alike. A bound
  // variable inside of it hides what it runs over.
  return natural && speaks_of_any(of.whole, bound) &&
         spot.take({.kind = Kind::Quotient, .dims = {of.whole}, .reasons = {*positive, *natural}});
}

}  // namespace

bool simplify_operations(const Spot& spot) {
  Operations found;
  collect(spot.term(), {}, found);
  // Inner ones first: they may be all that keeps an outer one from being settled.
  std::ranges::reverse(found);
  const auto is_done_by = [&](auto step) {
    return std::ranges::any_of(found, [&](const auto& operation) { return step(spot, operation); });
  };
  return is_done_by(settle_operation) || is_done_by(remove_operation);
}

}  // namespace tessera::prove
