#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tessera/expr/algebra_internal.h"
#include "tessera/support/hash.h"
#include "tessera/support/lexer.h"

namespace tessera::algebra {
namespace {

/// Colors (as in color refinement of graphs) of the bound variables in scope; other symbols have
/// the color of their name.
class Colors {
 public:
  /// `name` is that of a symbol of a Dim: names of symbols are interned.
  std::uint64_t of(std::string_view name) const {
    for (auto here = known_.rbegin(); here != known_.rend(); ++here)
      if (here->first == name.data()) return here->second;
    Hasher hasher;
    hasher.add_text(name);
    return hasher.value() | 1;
  }
  std::size_t push(const std::string& name, std::uint64_t color) {
    known_.emplace_back(Dim::symbol(name).as_symbol()->data(), color);
    return known_.size() - 1;
  }
  std::uint64_t& at(std::size_t place) { return known_[place].second; }
  void pop(std::size_t count) { known_.resize(known_.size() - count); }

 private:
  std::vector<std::pair<const char*, std::uint64_t>> known_;
};

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  Hasher hasher;
  hasher.add(a);
  hasher.add(b);
  return hasher.value();
}

std::uint64_t hash_of(const Rational& value) {
  if (value.is(1)) {
    static const std::uint64_t kOne = [] {
      Hasher hasher;
      hasher.add_text("1");
      return hasher.value();
    }();
    return kOne;
  }
  Hasher hasher;
  hasher.add_text(value.to_string());
  return hasher.value();
}

std::uint64_t color(const Sum& sum, Colors& colors);

std::uint64_t color(const Dim& dim, const Colors& colors) {
  return dim.fingerprint([&](std::string_view name) { return colors.of(name); });
}

std::uint64_t color(const Factor& factor, Colors& colors) {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(factor.kind) << 32 |
             static_cast<std::uint64_t>(factor.fn) << 16 | static_cast<std::uint64_t>(factor.to));
  hasher.add(static_cast<std::uint64_t>(factor.component));
  hasher.add_text(factor.name);
  if (!factor.exponent.is(1)) hasher.add(hash_of(factor.exponent));
  for (const Dim& dim : factor.at) hasher.add(color(dim, colors));
  if (factor.args != nullptr)
    for (const Sum& arg : *factor.args) hasher.add(color(arg, colors));
  return hasher.value();
}

/// Order-independent color of all guards and factors of a term.
std::uint64_t items_color(const Term& term, Colors& colors) {
  std::uint64_t sum = 0;
  for (const Dim& guard : term.guards) sum += mixed(color(guard, colors), 1);
  for (const Factor& factor : term.factors) sum += mixed(color(factor, colors), 2);
  return sum;
}

constexpr std::uint64_t kUnknown = 0x5bd1e9955bd1e995ull, kMark = 0x2545f4914f6cdd1dull;

/// Pushes the bound variables of a term, colored by their occurrences in it.
std::size_t refine(const Term& term, Colors& colors) {
  const std::size_t count = term.bound.size();
  if (count == 0) return 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = colors.push(term.bound[i], kUnknown);
    if (i == 0) first = place;
  }
  const std::uint64_t mark = mixed(kMark, first) | 1;  // another one on every level
  std::vector<std::uint64_t> next(count);
  const auto round = [&] {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t old = std::exchange(colors.at(first + i), mark);
      next[i] = mixed(old, items_color(term, colors)) | 1;
      colors.at(first + i) = old;
    }
    for (std::size_t i = 0; i < count; ++i) colors.at(first + i) = next[i];
  };
  if (count == 1) {
    colors.at(first) = mark;
    return count;
  }
  for (std::size_t rounds = 0; rounds < count; ++rounds) {
    round();
    std::vector<std::uint64_t> sorted = next;
    std::ranges::sort(sorted);
    const auto twins = std::ranges::adjacent_find(sorted);
    if (twins == sorted.end()) break;
    if (rounds == 0) continue;
    // Variables of equal color are, as a rule, interchangeable: any order will do.
    const auto one = std::ranges::find(next, *twins);
    colors.at(first + static_cast<std::size_t>(one - next.begin())) = mixed(*twins, 3) | 1;
    next[static_cast<std::size_t>(one - next.begin())] = mixed(*twins, 3) | 1;
  }
  return count;
}

std::uint64_t color(const Sum& sum, Colors& colors) {
  std::uint64_t total = 0;
  for (const Term& term : sum.terms) {
    const std::size_t pushed = refine(term, colors);
    total += mixed(items_color(term, colors), hash_of(term.coefficient));
    colors.pop(pushed);
  }
  return total;
}

int height(const Sum& sum) {
  int most = 0;
  for (const Term& term : sum.terms) {
    int inner = 0;
    for (const Factor& factor : term.factors)
      if (factor.args != nullptr)
        for (const Sum& arg : *factor.args) inner = std::max(inner, height(arg));
    most = std::max(most, inner + (term.bound.empty() ? 0 : 1));
  }
  return most;
}

constexpr int kAside = 1'000'000;

/// Small map from old to new names.
class Renaming {
 public:
  void add(std::string from, std::string to) {
    Dim symbol = Dim::symbol(to);
    entries_.push_back({std::move(from), std::move(to), std::move(symbol)});
  }
  bool changes() const {
    return std::ranges::any_of(entries_, [](const Entry& entry) { return entry.from != entry.to; });
  }
  bool speaks_of(const std::string& name) const {
    return std::ranges::any_of(
        entries_, [&](const Entry& entry) { return entry.from == name || entry.to == name; });
  }
  Dim renamed(const Dim& dim) const {
    if (std::ranges::none_of(entries_, [&](const Entry& e) { return dim.contains(e.from); }))
      return dim;
    return dim.substituted([&](std::string_view name) -> std::optional<Dim> {
      const auto here = std::ranges::find(entries_, name, &Entry::from);
      return here == entries_.end() ? std::nullopt : std::optional(here->symbol);
    });
  }

 private:
  struct Entry {
    std::string from, to;
    Dim symbol;
  };
  std::vector<Entry> entries_;
};

/// Renames recursively and restores the sorted order.
void rename(Term& term, const Renaming& names, bool reorder);

std::vector<std::string> numbered(int level, std::size_t count) {
  std::vector<std::string> names;
  names.reserve(count);
  const std::string prefix = '%' + std::to_string(level) + '_';
  for (std::size_t i = 0; i < count; ++i) names.push_back(prefix + std::to_string(i));
  return names;
}

/// First level from this one on whose names occur in the term neither bound nor free.
int free_level(const Term& term, int level) {
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::find(term.bound, name) != term.bound.end() || contains(term, name);
  };
  while (std::ranges::any_of(numbered(level, term.bound.size()), is_taken)) ++level;
  return level;
}

void rename(Factor& factor, const Renaming& names, bool reorder) {
  for (Dim& dim : factor.at) dim = names.renamed(dim);
  if (factor.args == nullptr) return;
  std::vector<Sum> args = *factor.args;
  for (Sum& arg : args) {
    for (Term& term : arg.terms) {
      if (std::ranges::any_of(term.bound,
                              [&](const std::string& name) { return names.speaks_of(name); })) {
        Renaming away;
        std::vector<std::string> others =
            numbered(free_level(term, kAside + kAside), term.bound.size());
        for (std::size_t i = 0; i < others.size(); ++i) away.add(term.bound[i], others[i]);
        rename(term, away, false);
        term.bound = std::move(others);
      }
      rename(term, names, reorder);
    }
    if (reorder) arg = closed(std::move(arg));
  }
  factor.args = std::make_shared<const std::vector<Sum>>(std::move(args));
}

void rename(Term& term, const Renaming& names, bool reorder) {
  for (Dim& guard : term.guards) guard = names.renamed(guard);
  for (Factor& factor : term.factors) rename(factor, names, reorder);
}

Term closed_term(Term term) {
  if (!term.bound.empty()) {
    Colors colors;
    refine(term, colors);
    std::vector<std::pair<std::uint64_t, std::string>> order;
    for (std::size_t i = 0; i < term.bound.size(); ++i)
      order.emplace_back(colors.at(i), term.bound[i]);
    std::ranges::sort(order);
    int inner = 0;
    for (const Factor& factor : term.factors)
      if (factor.args != nullptr)
        for (const Sum& arg : *factor.args) inner = std::max(inner, height(arg));
    // Inner variables are below the level; names that occur free are avoided.
    int level = inner + 1;
    const auto is_taken = [&](const std::string& name) {
      return std::ranges::find(term.bound, name) == term.bound.end() && contains(term, name);
    };
    std::vector<std::string> own = numbered(level, order.size());
    while (std::ranges::any_of(own, is_taken)) own = numbered(++level, order.size());
    const auto call = [&](const std::vector<std::string>& names) {
      Renaming renaming;
      for (std::size_t i = 0; i < order.size(); ++i)
        renaming.add(std::exchange(order[i].second, names[i]), names[i]);
      if (renaming.changes()) rename(term, renaming, true);
    };
    if (!std::ranges::equal(order, own, {}, &std::pair<std::uint64_t, std::string>::second)) {
      // Renames in two steps by way of names that no inner term has.
      if (inner > 0) call(numbered(free_level(term, kAside), order.size()));
      call(own);
    } else if (inner > 0) {
      rename(term, {}, true);  // puts what is inside in order
    }
    term.bound = std::move(own);
  }
  std::ranges::sort(term.guards);
  term.guards.erase(std::unique(term.guards.begin(), term.guards.end()), term.guards.end());
  const bool ordered = std::ranges::none_of(
      term.factors, [](const Factor& factor) { return factor.kind == Kind::Group; });
  // The groups of a fold are its components: they stay in order.
  if (ordered)
    std::ranges::sort(term.factors,
                      [](const Factor& a, const Factor& b) { return compare(a, b) < 0; });
  return term;
}

std::string to_text(const Factor& factor);

std::string list(const std::vector<Dim>& dims) {
  std::string text;
  for (const Dim& dim : dims) text += (text.empty() ? "" : ", ") + dim.to_string();
  return text;
}

std::string to_text(const Factor& factor) {
  std::string text;
  const auto args = [&] {
    std::string joined;
    if (factor.args != nullptr)
      for (const Sum& arg : *factor.args)
        joined += (joined.empty() ? "" : ", ") + algebra::to_text(arg);
    return joined;
  };
  switch (factor.kind) {
    case Kind::Number: text = list(factor.at); break;
    case Kind::Read: text = fmt::format("{}[{}]", factor.name, list(factor.at)); break;
    case Kind::Apply:
      text = fmt::format("{}({}{})", to_string(factor.fn), args(), factor.truth ? ", 0" : "");
      break;
    case Kind::Cast: text = fmt::format("{}({})", to_string(factor.to), args()); break;
    case Kind::Power: text = fmt::format("({})", args()); break;
    case Kind::Group: text = fmt::format("{{{}}}", args()); break;
    case Kind::Most: text = fmt::format("max({})", args()); break;
    case Kind::Fold: text = fmt::format("fold.{}({})", factor.component, args()); break;
    case Kind::Bottom: text = "-inf"; break;
  }
  return factor.exponent.is(1) ? text : fmt::format("{}^{}", text, factor.exponent.to_string());
}

}  // namespace

namespace {

/// Quotient of two terms: a product without bound variables such that term = quotient * by.
std::optional<Term> quotient_of(const Term& term, const Term& by) {
  if (term.bound.size() != by.bound.size() || term.guards.size() != by.guards.size())
    return std::nullopt;
  Term quotient{.coefficient = term.coefficient / by.coefficient};
  if (!term.bound.empty() || !term.guards.empty()) {
    for (const Factor& f : term.factors)
      if (std::ranges::none_of(term.bound, [&](const std::string& s) { return contains(f, s); }))
        quotient.factors.push_back(f);
    return quotient;
  }
  quotient.factors = term.factors;
  for (Factor f : by.factors) {
    f.exponent = -f.exponent;
    multiply_in(quotient, f);
  }
  return quotient;
}

/// Subtracts quotient * sum from `from`; false if not all of its terms are there.
bool take_multiple(const Term& quotient, const Sum& sum, Sum& from) {
  Sum rest = from;
  for (Term term : sum.terms) {
    term.coefficient *= quotient.coefficient;
    for (const Factor& f : quotient.factors) multiply_in(term, f);
    term = closed_term(std::move(term));
    const auto here =
        std::ranges::find_if(rest.terms, [&](const Term& t) { return compare(t, term) == 0; });
    if (here == rest.terms.end()) return false;
    rest.terms.erase(here);
  }
  from = std::move(rest);
  return true;
}

/// Cancels a subset of the terms over S that together is a multiple of S.
bool cancel_some(Sum& above, const Sum& base, Term& quotient) {
  constexpr std::size_t kMostTerms = 24;
  if (above.terms.size() < base.terms.size() || above.terms.size() > kMostTerms) return false;
  for (const Term& term : above.terms) {
    auto candidate = quotient_of(term, base.terms[0]);
    if (!candidate || !take_multiple(*candidate, base, above)) continue;
    quotient = *std::move(candidate);
    return true;
  }
  return false;
}

/// Names the bound variables of each term, sorts the terms and adds up those that are multiples of
/// one product.
Sum merged(Sum sum) {
  for (Term& term : sum.terms) term = closed_term(std::move(term));
  std::ranges::sort(sum.terms, [](const Term& a, const Term& b) { return compare(a, b) < 0; });
  Sum result;
  for (Term& term : sum.terms) {
    if (!result.terms.empty() && compare_bodies(result.terms.back(), term) == 0) {
      result.terms.back().coefficient += term.coefficient;
      continue;
    }
    if (!result.terms.empty() && result.terms.back().coefficient.is(0)) result.terms.pop_back();
    result.terms.push_back(std::move(term));
  }
  if (!result.terms.empty() && result.terms.back().coefficient.is(0)) result.terms.pop_back();
  return result;
}

/// Cancels quotients in a merged sum: terms over S that together are a multiple of S become the
/// multiple. Terms over S are looked at as they are, once for each S: to cancel other quotients
/// among them first would take time factorial in the number of quotients.
bool cancel_quotients(Sum& sum) {
  std::vector<Factor> tried;
  for (const Term& term : sum.terms) {
    for (const Factor& factor : term.factors) {
      const auto whole = factor.exponent.integer();
      if (factor.kind != Kind::Power || !whole || *whole >= 0) continue;
      const auto is_tried = [&](const Factor& f) { return compare(f, factor) == 0; };
      if (std::ranges::any_of(tried, is_tried)) continue;
      const Factor over = tried.emplace_back(factor);
      const Sum& base = (*over.args)[0];
      Sum above, rest;
      for (const Term& other : sum.terms) {
        Term copy = other;
        const auto here = std::ranges::find_if(
            copy.factors, [&](const Factor& f) { return compare(f, over) == 0; });
        if (here == copy.factors.end()) {
          rest.terms.push_back(std::move(copy));
          continue;
        }
        copy.factors.erase(here);
        above.terms.push_back(std::move(copy));
      }
      if (above.terms.size() < base.terms.size()) continue;
      above = merged(std::move(above));
      Term quotient;
      if (base.terms.empty() || !cancel_some(above, base, quotient)) continue;
      for (Term& left : above.terms) {
        multiply_in(left, over);
        rest.terms.push_back(std::move(left));
      }
      if (*whole < -1) {
        Factor once = over;
        once.exponent += 1;
        multiply_in(quotient, once);
      }
      rest.terms.push_back(std::move(quotient));
      sum = std::move(rest);
      return true;
    }
  }
  return false;
}

}  // namespace

Sum closed(Sum sum) {
  sum = merged(std::move(sum));
  while (cancel_quotients(sum)) sum = merged(std::move(sum));
  return sum;
}

namespace {

bool binds(const Sum& sum, std::vector<std::string>& bound) {
  const auto is_bound = [&](const Dim& dim) {
    std::set<std::string> symbols;
    dim.collect_symbols(symbols);
    return std::ranges::all_of(symbols, [&](const std::string& s) {
      const bool variable = s.size() > 1 && s[0] == '%' && s[1] >= '0' && s[1] <= '9';
      return !variable || std::ranges::find(bound, s) != bound.end();
    });
  };
  return std::ranges::all_of(sum.terms, [&](const Term& term) {
    bound.insert(bound.end(), term.bound.begin(), term.bound.end());
    const bool here =
        std::ranges::all_of(term.guards, is_bound) &&
        std::ranges::all_of(term.factors, [&](const Factor& factor) {
          return std::ranges::all_of(factor.at, is_bound) &&
                 (factor.args == nullptr || std::ranges::all_of(*factor.args, [&](const Sum& arg) {
                    return binds(arg, bound);
                  }));
        });
    bound.resize(bound.size() - term.bound.size());
    return here;
  });
}

}  // namespace

bool binds_its_variables(const Sum& sum) {
  std::vector<std::string> bound;
  return binds(sum, bound);
}

Sum opened(Names& names, Sum sum) {
  for (Term& term : sum.terms) {
    if (term.bound.empty()) continue;
    Renaming renaming;
    for (std::string& name : term.bound) {
      std::string fresh = names.fresh();
      renaming.add(std::exchange(name, fresh), fresh);
    }
    rename(term, renaming, true);
  }
  return sum;
}

std::string to_text(const Sum& sum) {
  if (sum.terms.empty()) return "0";
  std::string text;
  for (const Term& term : sum.terms) {
    if (!text.empty()) text += " + ";
    std::string factors =
        term.coefficient.is(1) && !term.factors.empty() ? "" : term.coefficient.to_string();
    for (const Factor& factor : term.factors)
      factors += (factors.empty() ? "" : "*") + to_text(factor);
    if (!term.bound.empty() || !term.guards.empty()) {
      std::string names;
      for (const std::string& name : term.bound) names += (names.empty() ? "" : " ") + name;
      text += fmt::format("sum({}; {}: {})", names, list(term.guards), factors);
    } else {
      text += factors;
    }
  }
  return text;
}

}  // namespace tessera::algebra
