#include "tessera/prove/reasons.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tessera/support/hash.h"

namespace tessera::prove {

Arithmetic::Product Arithmetic::product_of(std::vector<std::uint32_t> atoms) {
  if (atoms.empty()) return 0;
  const auto [here, fresh] =
      products_.try_emplace(std::move(atoms), static_cast<Product>(infos_.size()));
  if (!fresh) return here->second;
  Info info{.atoms = here->first, .dim = 1, .natural = true};
  for (const std::uint32_t atom : here->first) info.mask |= std::uint64_t{1} << (atom % 64);
  for (const std::uint32_t atom : here->first)
    for (const auto& [dim, number] : atoms_)
      if (number == atom) {
        info.dim = info.dim * dim;
        info.natural = info.natural && dim.least().value_or(-1) >= 0;
      }
  infos_.push_back(std::move(info));
  return here->second;
}

const Arithmetic::Linear& Arithmetic::linear(const Dim& dim) {
  if (const auto constant = dim.constant())
    return *linears_.insert(*constant == 0 ? Linear{} : Linear{{0, *constant}}).first;
  if (const auto here = known_.find(dim.id()); here != known_.end()) return *here->second.second;
  Linear result;
  for (const Dim::Part& part : dim.parts()) {
    std::vector<std::uint32_t> atoms;
    if (!part.product.is(1))
      for (const Dim& atom : part.product.factors())
        atoms.push_back(
            atoms_.try_emplace(atom, static_cast<std::uint32_t>(atoms_.size())).first->second);
    std::ranges::sort(atoms);
    result.emplace_back(product_of(std::move(atoms)), part.coefficient);
  }
  std::ranges::sort(result);
  const Linear* made = &*linears_.insert(std::move(result)).first;
  known_.emplace(dim.id(), std::pair(dim, made));
  return *made;
}

std::optional<Arithmetic::Product> Arithmetic::quotient(Product whole, Product part) {
  if (whole == part) return 0;
  if (part == 0) return whole;
  // Two products of equally many are different ones.
  if (infos_[whole].atoms.size() <= infos_[part].atoms.size() ||
      (infos_[part].mask & ~infos_[whole].mask) != 0)
    return std::nullopt;
  const auto [memo, fresh] = quotients_.try_emplace(std::uint64_t{whole} << 32 | part);
  if (!fresh) return memo->second;
  const auto &all = infos_[whole].atoms, &taken = infos_[part].atoms;
  if (!std::ranges::includes(all, taken)) return std::nullopt;
  std::vector<std::uint32_t> left;
  std::ranges::set_difference(all, taken, std::back_inserter(left));
  return memo->second = product_of(std::move(left));
}

Arithmetic::Product Arithmetic::times(Product a, Product b) {
  if (a == 0) return b;
  if (b == 0) return a;
  const auto [memo, fresh] =
      multiples_.try_emplace(std::uint64_t{std::min(a, b)} << 32 | std::max(a, b));
  if (!fresh) return memo->second;
  std::vector<std::uint32_t> atoms;
  std::ranges::merge(infos_[a].atoms, infos_[b].atoms, std::back_inserter(atoms));
  return memo->second = product_of(std::move(atoms));
}

/// Cancels what is negative in a sum by taking premises off it, one after the other.
class Search {
 public:
  Search(Arithmetic& arithmetic, const Premises& premises)
      : arithmetic_(arithmetic), premises_(premises) {
    for (const Dim& premise : premises.list) linears_.push_back(&arithmetic.linear(premise));
  }

  bool run(const Arithmetic::Linear& rest, int depth) {
    // The part that is the product of most is cancelled by the fewest premises; a number by most.
    const std::pair<Arithmetic::Product, std::int64_t>* worst = nullptr;
    const auto size = [&](Arithmetic::Product p) { return arithmetic_.infos_[p].atoms.size(); };
    for (const auto& part : rest) {
      // What may be negative itself has to go, whatever its sign.
      if (part.second >= 0 && arithmetic_.infos_[part.first].natural) continue;
      if (part.first == 0 && part.second > -scale_) continue;  // integers: -1/2 is enough
      if (worst == nullptr || size(part.first) > size(worst->first)) worst = &part;
    }
    if (worst == nullptr) return true;
    if (depth == 0 || ++visited_ > kMostVisits) return false;
    const auto [product, negative] = *worst;
    for (std::size_t i = 0; i < linears_.size(); ++i) {
      if (premises_.without == i) continue;
      for (const auto& [part, coefficient] : *linears_[i]) {
        if ((coefficient < 0) != (negative < 0)) continue;
        const auto multiplier = arithmetic_.quotient(product, part);
        if (!multiplier || !arithmetic_.infos_[*multiplier].natural) continue;
        // Multiples of a number lead everywhere: only if they meet what is there.
        if (part == 0 && *multiplier != 0 && !meets(rest, *linears_[i], *multiplier)) continue;
        if (is_avoided(i)) break;
        const std::int64_t shared = std::gcd(negative, coefficient);
        const std::int64_t scale = std::abs(coefficient) / shared;
        const std::int64_t often = std::abs(negative) / shared;
        if (scale_ * scale > kMostScale || often > kMostScale) continue;
        uses_.push_back({i, *multiplier, often, scale});
        scale_ *= scale;
        if (run(without(rest, scale, *linears_[i], *multiplier, often), depth - 1)) return true;
        scale_ /= scale;
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

  bool is_avoided(std::size_t premise) const {
    return premises_.avoiding != nullptr &&
           premises_.list[premise].replaced(*premises_.avoiding, 0) != premises_.list[premise];
  }

  bool meets(const Arithmetic::Linear& rest, const Arithmetic::Linear& premise,
             Arithmetic::Product multiplier) {
    return std::ranges::all_of(premise, [&](const auto& part) {
      if (part.second <= 0) return true;
      const Arithmetic::Product whole = arithmetic_.times(part.first, multiplier);
      return std::ranges::any_of(rest, [&](const auto& here) {
        return here.second > 0 && arithmetic_.quotient(here.first, whole).has_value();
      });
    });
  }

  /// rest * scale - premise * multiplier * often
  Arithmetic::Linear without(const Arithmetic::Linear& rest, std::int64_t scale,
                             const Arithmetic::Linear& premise, Arithmetic::Product multiplier,
                             std::int64_t often) {
    Arithmetic::Linear result = rest;
    for (auto& [product, coefficient] : result) coefficient *= scale;
    for (const auto& [product, coefficient] : premise) {
      const Arithmetic::Product whole = arithmetic_.times(product, multiplier);
      const auto here = std::ranges::find(result, whole, [](const auto& p) { return p.first; });
      if (here == result.end())
        result.emplace_back(whole, -coefficient * often);
      else
        here->second -= coefficient * often;
    }
    std::erase_if(result, [](const auto& part) { return part.second == 0; });
    return result;
  }

  Arithmetic& arithmetic_;
  const Premises& premises_;
  std::vector<const Arithmetic::Linear*> linears_;
  struct Use {
    std::size_t premise;
    Arithmetic::Product multiplier;
    std::int64_t often, scale;
  };
  std::vector<Use> uses_;
  std::int64_t scale_ = 1;
  int visited_ = 0;
};

std::optional<certify::Reason> Arithmetic::reason_for(const Dim& e, const Premises& premises) {
  if (e.is_undefined()) return std::nullopt;
  Hasher hasher;
  const auto add = [&](const void* address) {
    hasher.add(reinterpret_cast<std::uintptr_t>(address));
  };
  add(&linear(e));
  for (const Dim& premise : premises.list) add(&linear(premise));
  hasher.add(premises.without.value_or(premises.list.size()));
  add(premises.avoiding == nullptr ? nullptr : &linear(*premises.avoiding));
  const auto [memo, fresh] = found_.try_emplace(hasher.value());
  if (fresh) memo->second = looked_for(e, premises);
  return memo->second;
}

std::optional<certify::Reason> Arithmetic::looked_for(const Dim& e, const Premises& premises) {
  constexpr int kDeepest = 6;
  // Short reasons first: most are.
  const auto found = [&](const Dim& goal, const Dim& scale) -> std::optional<certify::Reason> {
    const Linear& start = linear(goal);
    Search search(*this, premises);
    for (int depth = 0; depth <= kDeepest; depth += depth < 3 ? 1 : 3)
      if (search.run(start, depth)) return search.take(scale);
    return std::nullopt;
  };
  if (auto reason = found(e, 1)) return reason;
  // n*e > -n for a size n may be plainer to see: quotients multiply what they compare.
  std::vector<Product> scales;
  const Linear& wanted = linear(e);  // stays where it is, as all of them do
  for (const Dim& premise : premises.list) {
    for (const auto& [product, coefficient] : linear(premise)) {
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
