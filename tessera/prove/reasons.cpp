#include "tessera/prove/reasons.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "tessera/support/hash.h"
#include "tessera/support/rng.h"

namespace tessera::prove {

namespace {

constexpr std::size_t kPoints = Arithmetic::kPoints;
using Values = Arithmetic::Values;

constexpr double kExact = 0x1p53;  // integers below are exact in double

/// Range of numbers that a symbol is drawn from.
struct Range {
  std::uint64_t least, most;
};
/// Kinds of points. Premises such as `i < n` hold where indices are small and sizes are not; those
/// of windows, such as `r <= i + k`, where indices are about as large as sizes. At each point one
/// symbol is an outlier, so that a bound may be violated that no other premise implies.
struct PointKind {
  Range sizes, indices, outlying_sizes, outlying_indices;
  bool is_mixed = false;  // some sizes are much larger than others, as images than windows
};
constexpr std::array<PointKind, 16> kPointKinds = {{
    {{5, 5}, {0, 2}, {1, 2}, {5, 12}},
    {{3, 9}, {0, 2}, {0, 2}, {3, 20}},
    {{4, 4}, {2, 3}, {0, 3}, {4, 12}},
    {{8, 40}, {0, 7}, {1, 7}, {8, 100}},
    {{1, 2}, {0, 0}, {0, 0}, {1, 3}},
    {{3, 3}, {1, 2}, {0, 1}, {0, 6}},
    {{6, 6}, {3, 6}, {0, 2}, {6, 12}},
    {{1, 1}, {0, 0}, {2, 5}, {1, 2}},
    {{1, 2}, {0, 0}, {0, 0}, {1, 9}, true},
    {{1, 2}, {0, 1}, {0, 9}, {1, 40}, true},
    {{1, 3}, {0, 1}, {0, 9}, {2, 9}, true},
    {{2, 3}, {0, 1}, {0, 1}, {2, 40}, true},
    {{2, 2}, {0, 1}, {0, 1}, {2, 40}, true},
    {{1, 3}, {0, 0}, {0, 1}, {1, 20}, true},
    {{2, 4}, {0, 2}, {0, 1}, {2, 40}, true},
    {{1, 9}, {0, 2}, {0, 1}, {1, 40}},
}};
constexpr std::size_t kOutliers = 32;  // symbols that take turns

/// Values of a symbol at the points, by its number and whether it is an index.
Values drawn_values(std::size_t number, bool is_index) {
  Values values;
  Rng rng(2 * number + (is_index ? 1 : 0));
  for (std::size_t point = 0; point < kPoints; ++point) {
    const PointKind& kind = kPointKinds[point / kOutliers % kPointKinds.size()];
    const bool is_outlier = point % kOutliers == number % kOutliers;
    const Range& range = is_outlier ? (is_index ? kind.outlying_indices : kind.outlying_sizes)
                                    : (is_index ? kind.indices : kind.sizes);
    std::uint64_t value = range.least + rng.below(range.most - range.least + 1);
    if (kind.is_mixed && !is_index && !is_outlier && rng.below(3) == 0) value *= 8;
    values[point] = static_cast<double>(value);
  }
  return values;
}

}  // namespace

std::uint32_t Arithmetic::atom_of(const Dim& atom) {
  if (const auto here = atoms_.find(atom); here != atoms_.end()) return here->second;
  const bool natural = atom.least().value_or(-1) >= 0;
  Atom made{.dim = atom, .natural = natural};
  if (const auto name = atom.as_symbol()) {
    values_.push_back(drawn_values(by_number_.size(), name->starts_with('%')));
  } else {
    values_.push_back(operation_values(atom));
    if (natural)
      for (double& value : values_.back()) value = std::max(value, 0.0);
  }
  made.values = &values_.back();
  // The operands of an operation have numbers by now.
  const auto number = static_cast<std::uint32_t>(by_number_.size());
  by_number_.push_back(std::move(made));
  atoms_.emplace(atom, number);
  return number;
}

Arithmetic::Values Arithmetic::operation_values(const Dim& atom) {
  Values values = {};
  const std::vector<Dim::Operation> operations = atom.operations();
  if (operations.empty()) return values;  // an undefined size
  const auto& [op, whole, left, right] = operations.front();
  const Values a = evaluated(linear(left)).value, b = evaluated(linear(right)).value;
  for (std::size_t point = 0; point < kPoints; ++point) {
    const double quotient = b[point] == 0 ? 0 : std::floor(a[point] / b[point]);
    switch (op) {
      // Premises relate quotients by numbers to what is divided. Others may have any value; a
      // window fits more often than not.
      case Dim::Op::FloorDiv:
        values[point] = right.constant() ? quotient : std::max(quotient, 0.0);
        break;
      case Dim::Op::Mod: values[point] = a[point] - quotient * b[point]; break;
      case Dim::Op::Min: values[point] = std::min(a[point], b[point]); break;
      case Dim::Op::Max: values[point] = std::max(a[point], b[point]); break;
    }
  }
  return values;
}

Arithmetic::Evaluation Arithmetic::evaluated(const Linear& linear) const {
  Evaluation result{};
  for (const auto& [product, coefficient] : linear) {
    Values term;
    term.fill(static_cast<double>(coefficient));
    for (const std::uint32_t atom : infos_[product].atoms) {
      const Values& values = *by_number_[atom].values;
      for (std::size_t point = 0; point < kPoints; ++point) term[point] *= values[point];
    }
    for (std::size_t point = 0; point < kPoints; ++point) {
      result.value[point] += term[point];
      result.magnitude[point] += std::fabs(term[point]);
    }
  }
  return result;
}

Arithmetic::Signs Arithmetic::signs_of(const Linear& linear) const {
  const Evaluation at = evaluated(linear);
  Signs signs;
  for (std::size_t word = 0; word < PointSet::kWords; ++word) {
    std::uint64_t negative = 0, exact = 0;
    for (std::size_t bit = 0; bit < 64; ++bit) {
      const std::size_t point = 64 * word + bit;
      negative |= std::uint64_t{at.value[point] < 0} << bit;
      exact |= std::uint64_t{at.magnitude[point] < kExact} << bit;
    }
    signs.negative.words[word] = negative & exact;
    signs.natural.words[word] = ~negative & exact;
  }
  return signs;
}

Arithmetic::Product Arithmetic::product_of(std::vector<std::uint32_t> atoms) {
  if (atoms.empty()) return 0;
  const auto [here, fresh] =
      products_.try_emplace(std::move(atoms), static_cast<Product>(infos_.size()));
  if (!fresh) return here->second;
  Info info{.atoms = here->first, .dim = 1, .natural = true};
  for (const std::uint32_t number : here->first) {
    const Atom& atom = by_number_[number];
    info.mask |= std::uint64_t{1} << (number % 64);
    info.dim = info.dim * atom.dim;
    info.natural = info.natural && atom.natural;
  }
  infos_.push_back(std::move(info));
  return here->second;
}

const Arithmetic::Polynomial& Arithmetic::polynomial(const Dim& dim) {
  Recent& recent = recent_[dim.hash() % recent_.size()];
  if (recent.polynomial == nullptr || recent.dim != dim) recent = {dim, &converted(dim)};
  return *recent.polynomial;
}

const Arithmetic::Polynomial& Arithmetic::converted(const Dim& dim) {
  if (const auto here = polynomials_.find(dim); here != polynomials_.end()) return here->second;
  Linear linear;
  for (const Dim::Part& part : dim.parts()) {
    std::vector<std::uint32_t> atoms;
    if (!part.product.is(1))
      for (const Dim& atom : part.product.factors()) atoms.push_back(atom_of(atom));
    std::ranges::sort(atoms);
    linear.emplace_back(product_of(std::move(atoms)), part.coefficient);
  }
  // The parts stay in the order of the size, which does not depend on what was asked before.
  const Signs signs = signs_of(linear);
  return polynomials_.emplace(dim, Polynomial{std::move(linear), signs}).first->second;
}

const Arithmetic::PremiseList& Arithmetic::prepared(const std::vector<Dim>& list) {
  const auto here = std::ranges::find(recent_lists_, list, &PremiseList::list);
  if (here != recent_lists_.end()) return *here;
  PremiseList& made = recent_lists_[next_list_];
  next_list_ = (next_list_ + 1) % recent_lists_.size();
  made.list = list;
  made.polynomials.clear();
  Hasher hasher;
  for (const Dim& premise : list) {
    made.polynomials.push_back(&polynomial(premise));
    hasher.add(reinterpret_cast<std::uintptr_t>(made.polynomials.back()));
  }
  made.hash = hasher.value();
  made.before.assign(list.size() + 1, PointSet::all());
  made.after = made.before;
  for (std::size_t i = 0; i < list.size(); ++i) {
    made.before[i + 1] = made.before[i];
    made.before[i + 1].keep(made.polynomials[i]->signs.natural);
  }
  for (std::size_t i = list.size(); i-- > 0;) {
    made.after[i] = made.after[i + 1];
    made.after[i].keep(made.polynomials[i]->signs.natural);
  }
  return made;
}

std::optional<Arithmetic::Product> Arithmetic::quotient(Product whole, Product part) {
  if (whole == part) return 0;
  if (part == 0) return whole;
  if (!may_divide(whole, part)) return std::nullopt;
  const auto [memo, fresh] = quotients_.try_emplace(std::uint64_t{whole} << 32 | part);
  if (!fresh) return memo;
  const auto &all = infos_[whole].atoms, &taken = infos_[part].atoms;
  if (!std::ranges::includes(all, taken)) return std::nullopt;
  std::vector<std::uint32_t> left;
  std::ranges::set_difference(all, taken, std::back_inserter(left));
  return memo = product_of(std::move(left));
}

Arithmetic::Product Arithmetic::times(Product a, Product b) {
  if (a == 0) return b;
  if (b == 0) return a;
  const auto [memo, fresh] =
      multiples_.try_emplace(std::uint64_t{std::min(a, b)} << 32 | std::max(a, b));
  if (!fresh) return memo;
  std::vector<std::uint32_t> atoms;
  std::ranges::merge(infos_[a].atoms, infos_[b].atoms, std::back_inserter(atoms));
  return memo = product_of(std::move(atoms));
}

/// Cancels what is negative in a sum by taking premises off it, one after the other.
class Search {
 public:
  Search(Arithmetic& arithmetic, const Premises& premises, const Arithmetic::PremiseList& list)
      : arithmetic_(arithmetic), premises_(premises), polynomials_(list.polynomials) {}

  bool run(const Arithmetic::Linear& rest, int depth) {
    // The part that is the product of most is cancelled by the fewest premises; a number by most.
    const std::pair<Arithmetic::Product, std::int64_t>* worst = nullptr;
    const auto size = [&](Arithmetic::Product p) { return arithmetic_.infos_[p].atoms.size(); };
    Bound positive;
    for (const auto& part : rest) {
      if (part.second > 0) positive.add(arithmetic_.infos_[part.first]);
      if (has_to_go(part.first, part.second) &&
          (worst == nullptr || size(part.first) > size(worst->first)))
        worst = &part;
    }
    if (worst == nullptr) return true;
    if (depth == 0 || ++visited_ > kMostVisits) return false;
    const auto [product, negative] = *worst;
    for (std::size_t i = 0; i < polynomials_.size(); ++i) {
      if (premises_.without == i) continue;
      const Arithmetic::Linear& premise = polynomials_[i]->linear;
      for (const auto& [part, coefficient] : premise) {
        if ((coefficient < 0) != (negative < 0) || !arithmetic_.may_divide(product, part)) continue;
        const auto multiplier = arithmetic_.quotient(product, part);
        if (!multiplier || !arithmetic_.infos_[*multiplier].natural) continue;
        // Multiples of a number lead everywhere: only if they meet what is there.
        if (part == 0 && *multiplier != 0 && !meets(rest, positive, premise, *multiplier)) continue;
        if (is_avoided(i)) break;
        const std::int64_t shared = std::gcd(negative, coefficient);
        const Use use{i, *multiplier, std::abs(negative) / shared, std::abs(coefficient) / shared};
        if (scale_ * use.scale > kMostScale || use.often > kMostScale) continue;
        uses_.push_back(use);
        scale_ *= use.scale;
        if (depth == 1 ? leaves_nothing(rest, product, use) : run(without(rest, use), depth - 1))
          return true;
        scale_ /= use.scale;
        uses_.pop_back();
      }
    }
    return false;
  }

  /// The multiples, each scaled by what came after it.
  certify::Reason take(const Dim& scale) const {
    certify::Reason reason{.scale = scale * Dim(scale_)};
    std::int64_t later = 1;
    for (auto use = uses_.rbegin(); use != uses_.rend(); ++use) {
      reason.multiples.emplace_back(
          use->premise, arithmetic_.infos_[use->multiplier].dim * Dim(use->often) * Dim(later));
      later *= use->scale;
    }
    return reason;
  }

 private:
  static constexpr int kMostVisits = 24;
  static constexpr std::int64_t kMostScale = 4096;
  struct Use {
    std::size_t premise;
    Arithmetic::Product multiplier;
    std::int64_t often, scale;
  };

  bool is_avoided(std::size_t premise) const {
    return premises_.avoiding != nullptr &&
           premises_.list[premise].replaced(*premises_.avoiding, 0) != premises_.list[premise];
  }

  /// Upper bound of some products: none has more atoms, or an atom without its bit.
  struct Bound {
    std::size_t size = 0;
    std::uint64_t mask = 0;

    void add(const Arithmetic::Info& product) {
      size = std::max(size, product.atoms.size());
      mask |= product.mask;
    }
    bool has_multiple_of(const Arithmetic::Info& a, const Arithmetic::Info& b) const {
      return a.atoms.size() + b.atoms.size() <= size && ((a.mask | b.mask) & ~mask) == 0;
    }
  };

  /// Whether each positive part of a multiple of a premise divides a positive part of the rest;
  /// `positive` is a bound of those.
  bool meets(const Arithmetic::Linear& rest, const Bound& positive,
             const Arithmetic::Linear& premise, Arithmetic::Product multiplier) {
    return std::ranges::all_of(premise, [&](const auto& part) {
      if (part.second <= 0) return true;
      if (!positive.has_multiple_of(arithmetic_.infos_[part.first], arithmetic_.infos_[multiplier]))
        return false;
      const Arithmetic::Product whole = arithmetic_.times(part.first, multiplier);
      return std::ranges::any_of(rest, [&](const auto& here) {
        return here.second > 0 && arithmetic_.quotient(here.first, whole).has_value();
      });
    });
  }

  /// Whether a part has to be cancelled: what may be negative itself, whatever its sign.
  bool has_to_go(Arithmetic::Product product, std::int64_t coefficient) const {
    if (coefficient >= 0 && arithmetic_.infos_[product].natural) return false;
    return product != 0 || coefficient <= -scale_;  // integers: -1/2 is enough
  }

  /// rest * scale - premise * multiplier * often
  Arithmetic::Linear without(const Arithmetic::Linear& rest, const Use& use) {
    const Arithmetic::Linear& premise = polynomials_[use.premise]->linear;
    Arithmetic::Linear result;
    result.reserve(rest.size() + premise.size());
    for (const auto& [product, coefficient] : rest)
      result.emplace_back(product, coefficient * use.scale);
    for (const auto& [product, coefficient] : premise) {
      const Arithmetic::Product whole = arithmetic_.times(product, use.multiplier);
      const auto here = std::ranges::find(result, whole, [](const auto& p) { return p.first; });
      if (here == result.end())
        result.emplace_back(whole, -coefficient * use.often);
      else
        here->second -= coefficient * use.often;
    }
    std::erase_if(result, [](const auto& part) { return part.second == 0; });
    return result;
  }

  /// Whether nothing has to be cancelled in `without(rest, use)`, which cancels `cancelled`. Most
  /// often something has, which is seen before the sum is made.
  bool leaves_nothing(const Arithmetic::Linear& rest, Arithmetic::Product cancelled,
                      const Use& use) {
    const Arithmetic::Linear& premise = polynomials_[use.premise]->linear;
    multiple_.clear();
    for (const auto& [product, coefficient] : premise)
      multiple_.emplace_back(arithmetic_.times(product, use.multiplier), coefficient * use.often);
    for (const auto& [product, coefficient] : rest) {
      if (product == cancelled) continue;
      std::int64_t left = coefficient * use.scale;
      for (const auto& [whole, taken] : multiple_)
        if (whole == product) left -= taken;
      if (left != 0 && has_to_go(product, left)) return false;
    }
    return std::ranges::none_of(multiple_, [&](const auto& part) {
      return has_to_go(part.first, -part.second) &&
             std::ranges::find(rest, part.first, [](const auto& p) { return p.first; }) ==
                 rest.end();
    });
  }

  Arithmetic& arithmetic_;
  const Premises& premises_;
  const std::vector<const Arithmetic::Polynomial*>& polynomials_;
  std::vector<Use> uses_;
  Arithmetic::Linear multiple_;  // scratch
  std::int64_t scale_ = 1;
  int visited_ = 0;
};

void Arithmetic::forget_if_large() {
  constexpr std::size_t kMostPolynomials = 1 << 16;  // some 30 MB
  if (polynomials_.size() > kMostPolynomials) *this = Arithmetic();
}

std::optional<certify::Reason> Arithmetic::reason_for(const Dim& e, const Premises& premises) {
  if (e.is_undefined()) return std::nullopt;
  forget_if_large();
  const PremiseList& list = prepared(premises.list);
  const Polynomial& goal = polynomial(e);
  PointSet violations = goal.signs.negative;
  violations.keep(list.before[premises.without.value_or(list.list.size())]);
  if (premises.without) violations.keep(list.after[*premises.without + 1]);
  if (!violations.empty()) return std::nullopt;
  Hasher hasher;
  hasher.add(list.hash);
  hasher.add(reinterpret_cast<std::uintptr_t>(&goal));
  hasher.add(premises.without.value_or(list.list.size()));
  hasher.add(premises.avoiding == nullptr ? 0 : premises.avoiding->hash());
  const auto [memo, fresh] = found_.try_emplace(hasher.value());
  if (fresh) memo = looked_for(e, premises, list);
  return memo;
}

bool Arithmetic::hold_together(const std::vector<Dim>& premises) {
  return !prepared(premises).before.back().empty();
}

bool Arithmetic::has_product(const Dim& size) {
  return std::ranges::any_of(linear(size),
                             [&](const auto& part) { return infos_[part.first].atoms.size() > 1; });
}

bool Arithmetic::has_negation(const std::vector<Dim>& list, const Dim& e) {
  const Linear& wanted = linear(e);
  return std::ranges::any_of(list, [&](const Dim& other) {
    return std::ranges::equal(wanted, linear(other), [](const auto& a, const auto& b) {
      return a.first == b.first && a.second == -b.second;
    });
  });
}

std::optional<certify::Reason> Arithmetic::looked_for(const Dim& e, const Premises& premises,
                                                      const PremiseList& list) {
  constexpr int kDeepest = 6;
  // Short reasons first: most are.
  const auto found = [&](const Dim& goal, const Dim& scale) -> std::optional<certify::Reason> {
    const Linear& start = linear(goal);
    Search search(*this, premises, list);
    for (int depth = 0; depth <= kDeepest; depth += depth < 3 ? 1 : 3)
      if (search.run(start, depth)) return search.take(scale);
    return std::nullopt;
  };
  if (auto reason = found(e, 1)) return reason;
  // n*e > -n for a size n may be plainer to see: quotients multiply what they compare.
  std::vector<Product> scales;
  const Linear& wanted = linear(e);  // stays where it is, as all of them do
  for (const Polynomial* premise : list.polynomials) {
    for (const auto& [product, coefficient] : premise->linear) {
      if (coefficient >= 0 || infos_[product].atoms.size() < 2) continue;
      for (const auto& [part, own] : wanted) {
        if (own >= 0 || part == 0) continue;
        const auto scale = quotient(product, part);
        if (scale && *scale != 0 && infos_[*scale].natural &&
            std::ranges::find(scales, *scale) == scales.end())
          scales.push_back(*scale);
      }
    }
  }
  for (const Product scale : scales) {
    const Dim factor = infos_[scale].dim;
    if (auto reason = found(factor * e + factor - 1, factor)) return reason;
  }
  return std::nullopt;
}

}  // namespace tessera::prove
