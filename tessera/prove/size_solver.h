#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tessera/prove/sizes.h"

namespace tessera::prove {

std::set<std::string> symbols_in(const Dim& dim);

/// In terms of the symbols of graphs: made-up ones replaced, by the whole where all of it is there.
Dim told(const Dim& dim, const std::map<std::string, Multiple>& parts);

/// Relations that grow by equations.
class SizeSolver {
 public:
  /// `symbols` are those of the graph that is added. What is given has to outlive the solver.
  SizeSolver(const SizeRelations& given, const GraphSymbols& symbols)
      : given_(given), relations_(given) {
    relations_.symbols.add(symbols);
  }

  const Sizes& solved() const { return relations_.solved; }
  /// Whether a size turned out to be a number: operators may mean something else then.
  bool found_numbers() { return std::exchange(found_numbers_, false); }

  /// Solves it for a symbol, or leaves it open; a contradiction is a diagnostic.
  Expected<Done> require(const Condition& condition);
  Expected<Done> require_at_least(const Dim& dim, std::int64_t bound);

  /// How many times `divisor` the whole is: a new symbol where that has no form.
  Expected<Dim> part(const Dim& whole, const Dim& divisor);

  /// Asks again for what was left open, as long as more is solved.
  Expected<Done> reopen();

  Expected<SizeRelations> finished();

 private:
  /// A symbol of an equation, and what it is equal to by it.
  struct Solution {
    std::string symbol;
    Dim value;
  };

  Dim resolved(const Dim& dim) const { return tessera::resolved(dim, relations_.solved); }
  std::string made_up(const Dim& of) const;
  /// Without factors that are on both sides and at least 1.
  Condition cancelled(Condition condition) const;
  bool is_positive(const std::string& symbol) const;
  bool at_least(const Dim& dim, std::int64_t bound) const;
  /// Positive, negative, or a multiple of a number plus another that is not.
  bool is_never_zero(const Dim& dim) const;
  /// The solution of `zero` = 0 that says most with least.
  std::optional<Solution> best(const Dim& zero) const;
  /// The same, also by way of an equation that is open: a*x = c and b*x = c have a = b.
  std::optional<Solution> solved(const Dim& zero) const;
  void assign(const Solution& solution);

  const SizeRelations& given_;
  SizeRelations relations_;
  bool found_numbers_ = false;
};

}  // namespace tessera::prove
