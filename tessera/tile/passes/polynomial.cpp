#include <algorithm>
#include <utility>

#include "tessera/tile/passes/affine.h"
#include "tessera/tile/passes/ranges.h"

namespace tessera::tile {
namespace {

constexpr std::size_t kMostTerms = 16, kMostFactors = 4;

}  // namespace

Polynomial Polynomial::constant(std::int64_t number) {
  Polynomial result;
  if (number != 0) result.terms_[{}] = number;
  return result;
}

Polynomial Polynomial::value(ValueId scalar) {
  Polynomial result;
  result.terms_[{scalar}] = 1;
  return result;
}

bool Polynomial::add(const Product& product, std::int64_t factor) {
  std::int64_t& total = terms_[product];
  if (__builtin_add_overflow(total, factor, &total)) return false;
  if (total == 0) terms_.erase(product);
  return terms_.size() <= kMostTerms && product.size() <= kMostFactors;
}

std::optional<Polynomial> Polynomial::plus(const Polynomial& other, std::int64_t factor) const {
  Polynomial sum = *this;
  for (const auto& [product, own] : other.terms_) {
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(own, factor, &scaled) || !sum.add(product, scaled)) return {};
  }
  return sum;
}

std::optional<Polynomial> Polynomial::times(const Polynomial& other) const {
  Polynomial result;
  for (const auto& [left, a] : terms_) {
    for (const auto& [right, b] : other.terms_) {
      Product both;
      std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both));
      std::int64_t factor = 0;
      if (__builtin_mul_overflow(a, b, &factor) || !result.add(both, factor)) return {};
    }
  }
  return result;
}

std::optional<Polynomial> Polynomial::divided(std::int64_t by) const {
  Polynomial quotient;
  for (const auto& [product, factor] : terms_) {
    const bool exact = factor % by == 0;
    if (!exact && !product.empty()) return {};
    const std::int64_t down = factor / by - (!exact && factor < 0 ? 1 : 0);
    if (!quotient.add(product, down)) return {};
  }
  return quotient;
}

std::optional<std::int64_t> Polynomial::as_constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
  return {};
}

std::optional<std::int64_t> Polynomial::least(const std::vector<Facts>& facts) const {
  Interval sum{0, 0};
  for (const auto& [product, factor] : terms_) {
    Interval range{factor, factor};
    for (const ValueId id : product) range = multiply(range, range_of(facts[id]));
    sum = tile::add(sum, range);
  }
  return sum.low;
}

ValueId Polynomial::emit(Rewrite& out) const {
  std::optional<ValueId> sum;
  const auto plus = [&](ValueId x, bool minus) {
    const Function function = minus ? Function::Sub : Function::Add;
    sum = sum || minus ? out.map(function, {sum ? *sum : out.index(0), x}) : x;
  };
  for (const auto& [product, factor] : terms_) {
    if (product.empty()) continue;
    std::optional<ValueId> term;
    for (const ValueId id : product) {
      const ValueId wide = out.cast(out.of(id), DType::I64);
      term = term ? out.map(Function::Mul, {*term, wide}) : wide;
    }
    if (factor != 1 && factor != -1) term = out.map(Function::Mul, {*term, out.index(factor)});
    plus(*term, factor == -1);
  }
  if (const auto number = terms_.find({}); number != terms_.end())
    plus(out.index(number->second), false);
  return sum ? *sum : out.index(0);
}

}  // namespace tessera::tile
