#include "tessera/prove/size_solver.h"

#include <algorithm>
#include <tuple>

namespace tessera::prove {
namespace {

constexpr const char* kLeast = "%least";  // a symbol for a minimum; no size is called so

/// The quotient, if there is no remainder: divides by the last term of the divisor, again and
/// again.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  constexpr int kMostTerms = 16;
  if (b.is(0)) return std::nullopt;
  if (b.is(1)) return a.is_undefined() ? std::nullopt : std::optional(a);
  const std::vector<Dim::Part> divisor = b.parts();
  const Dim last = divisor.back().product;
  Dim quotient = 0, rest = a;
  for (int round = 0; round < kMostTerms; ++round) {
    if (rest.is(0)) return quotient;
    if (rest.is_undefined()) return std::nullopt;
    const Dim::Part term = rest.parts().back();
    const Dim factor = floor_div(term.product, last);
    if (term.coefficient % divisor.back().coefficient != 0 || factor * last != term.product)
      return std::nullopt;
    const Dim part = factor * (term.coefficient / divisor.back().coefficient);
    quotient = quotient + part;
    rest = rest - part * b;
  }
  return std::nullopt;
}

Diagnostic contradiction(const Condition& condition) {
  return {.id = "sizes-contradict",
          .message = fmt::format("the sizes would have to satisfy {}", to_text(condition))};
}

}  // namespace

std::set<std::string> symbols_in(const Dim& dim) {
  std::set<std::string> symbols;
  dim.collect_symbols(symbols);
  return symbols;
}

Dim told(const Dim& dim, const std::map<std::string, Multiple>& parts) {
  if (const auto operations = dim.operations();
      !operations.empty() && operations[0].whole == dim && operations[0].op == Dim::Op::Mod)
    return mod(told(operations[0].a, parts), told(operations[0].b, parts));
  Dim result = dim;
  for (const std::string& symbol : symbols_in(dim)) {
    const auto part = parts.find(symbol);
    if (part == parts.end()) continue;
    const auto linear = result.linear_in(symbol);
    const auto times = linear ? exact_quotient(linear->factor, part->second.divisor) : std::nullopt;
    result = times ? *times * part->second.whole + linear->rest
                   : resolved(result, {{symbol, part->second.quotient()}});
  }
  return result;
}

Expected<Done> SizeSolver::require(const Condition& condition) {
  const Condition known{condition.kind, resolved(condition.left), resolved(condition.right)};
  if (known.left == known.right) return Done{};
  const bool equation = known.kind == Condition::Kind::Equal;
  const Dim difference = known.right - known.left;
  if (equation) {
    if (const std::optional<Solution> solution = solved(difference)) {
      assign(*solution);
      return Done{};
    }
  } else if (at_least(difference, 0)) {
    return Done{};
  }
  if (equation ? is_never_zero(difference) : at_least(-difference, 1)) return contradiction(known);
  const bool implied = std::ranges::any_of(relations_.open, [&](const Condition& other) {
    const Dim room = difference - (other.right - other.left);
    return !equation && other.kind == known.kind && room.constant().value_or(-1) >= 0;
  });
  const Condition short_of_factors = cancelled(known);
  if (!implied && std::ranges::find(relations_.open, short_of_factors) == relations_.open.end())
    relations_.open.push_back(short_of_factors);
  return Done{};
}

Expected<Dim> SizeSolver::part(const Dim& whole, const Dim& divisor) {
  const Dim numerator = resolved(whole), by = resolved(divisor);
  if (const std::optional<Dim> quotient = exact_quotient(numerator, by)) return *quotient;
  const std::string name = made_up(numerator);
  const Dim quotient = Dim::symbol(name);
  if (const auto solution = best(numerator - by * quotient)) {
    relations_.parts.emplace(
        name, Multiple{told(numerator, relations_.parts), told(by, relations_.parts)});
    assign(*solution);
    return quotient;
  }
  TESSERA_TRY_DONE(require(equal(mod(numerator, by), 0)));
  return floor_div(numerator, by);
}

Expected<Done> SizeSolver::reopen() {
  for (std::size_t before = ~std::size_t{0}; before != relations_.solved.size();) {
    before = relations_.solved.size();
    for (const Condition& condition : std::exchange(relations_.open, {}))
      TESSERA_TRY_DONE(require(condition));
  }
  return Done{};
}

Expected<Done> SizeSolver::require_at_least(const Dim& dim, std::int64_t bound) {
  const Dim size = resolved(dim);
  if (size.as_symbol() || size.least().value_or(bound - 1) >= bound || at_least(size, bound))
    return Done{};
  return require(at_most(bound, size));
}

Expected<SizeRelations> SizeSolver::finished() {
  for (const auto& [name, value] : relations_.solved) TESSERA_TRY_DONE(require_at_least(value, 0));
  // A symbol that was made up and then solved for is mentioned nowhere.
  std::erase_if(relations_.parts, [&](const auto& part) {
    return !given_.parts.contains(part.first) && relations_.solved.erase(part.first) != 0;
  });
  return relations_;
}

std::string SizeSolver::made_up(const Dim& of) const {
  const std::set<std::string> symbols = symbols_in(of);
  std::string name = (symbols.empty() ? std::string("size") : *symbols.rbegin()) + ".part";
  while (relations_.symbols.contains(name) || relations_.parts.contains(name)) name += "_";
  return name;
}

Condition SizeSolver::cancelled(Condition condition) const {
  for (const std::string& symbol : symbols_in(condition.left - condition.right)) {
    if (!is_positive(symbol)) continue;
    const auto left = exact_quotient(condition.left, Dim::symbol(symbol));
    const auto right = exact_quotient(condition.right, Dim::symbol(symbol));
    if (left && right) condition = {condition.kind, *left, *right};
  }
  return condition;
}

bool SizeSolver::is_positive(const std::string& symbol) const {
  return relations_.symbols.axes.contains(symbol) ||
         relations_.symbols.attributes.contains(symbol) || relations_.parts.contains(symbol);
}

bool SizeSolver::at_least(const Dim& dim, std::int64_t bound) const {
  const Dim moved = dim.substituted([&](std::string_view symbol) -> std::optional<Dim> {
    const std::string name(symbol);
    return is_positive(name) ? std::optional<Dim>(Dim::symbol(name) + 1) : std::nullopt;
  });
  if (moved.least().value_or(bound - 1) >= bound) return true;
  // -min(a, b) is at least -a and at least -b.
  for (const Dim::Operation& operation : dim.operations()) {
    if (operation.op != Dim::Op::Min) continue;
    const auto linear = dim.replaced(operation.whole, Dim::symbol(kLeast)).linear_in(kLeast);
    if (!linear || linear->factor.constant().value_or(0) >= 0) continue;
    for (const Dim& most : {operation.a, operation.b})
      if (at_least(linear->factor * most + linear->rest, bound)) return true;
  }
  return false;
}

bool SizeSolver::is_never_zero(const Dim& dim) const {
  if (at_least(dim, 1) || at_least(-dim, 1)) return true;
  const std::set<std::string> symbols = symbols_in(dim);
  if (symbols.size() != 1) return false;
  const auto linear = dim.linear_in(*symbols.begin());
  return linear && linear->factor.constant() && linear->rest.constant() &&
         !exact_quotient(linear->rest, linear->factor);
}

std::optional<SizeSolver::Solution> SizeSolver::best(const Dim& zero) const {
  using Rank = std::tuple<bool, bool, bool, bool, bool>;
  std::optional<std::pair<Rank, Solution>> found;
  for (const std::string& symbol : symbols_in(zero)) {
    if (relations_.symbols.entries.contains(symbol)) continue;
    const auto linear = zero.linear_in(symbol);
    const auto value = linear ? exact_quotient(-linear->rest, linear->factor) : std::nullopt;
    if (!value || (value->is(0) && is_positive(symbol))) continue;
    const bool simple = value->constant() || value->as_symbol();
    const bool attribute = relations_.symbols.attributes.contains(symbol);
    if (attribute && !simple) continue;
    const Rank rank{relations_.parts.contains(symbol), !given_.symbols.contains(symbol),
                    value->least().has_value(), !attribute, simple};
    if (!found || rank >= found->first) found = {rank, {symbol, *value}};
  }
  if (!found) return std::nullopt;
  return found->second;
}

std::optional<SizeSolver::Solution> SizeSolver::solved(const Dim& zero) const {
  if (auto solution = best(zero)) return solution;
  for (const Condition& other : relations_.open) {
    if (other.kind != Condition::Kind::Equal) continue;
    for (const Dim& sign : {Dim(1), Dim(-1)}) {
      const auto solution = best(zero + (other.right - other.left) * sign);
      if (solution && solution->value.as_symbol()) return solution;
    }
  }
  return std::nullopt;
}

void SizeSolver::assign(const Solution& solution) {
  const Sizes only = {{solution.symbol, solution.value}};
  for (auto& [name, value] : relations_.solved) value = tessera::resolved(value, only);
  relations_.solved.insert_or_assign(solution.symbol, solution.value);
  found_numbers_ = found_numbers_ || solution.value.constant();
}

}  // namespace tessera::prove
