#include <algorithm>
#include <utility>

#include "tessera/tile/passes/affine_tiles.h"
#include "tessera/tile/passes/ranges.h"

namespace tessera::tile {
namespace {

constexpr std::size_t kMostTerms = 16, kMostFactors = 4;

}  // namespace

Polynomial Polynomial::constant(std::int64_t number) {
  return Polynomial(Affine<Product>::constant(number));
}

Polynomial Polynomial::value(ValueId scalar) {
  return Polynomial(Affine<Product>::of({scalar}));
}

std::optional<Polynomial> Polynomial::limited(std::optional<Affine<Product>> sum) {
  if (!sum || sum->terms.size() + (sum->base != 0 ? 1 : 0) > kMostTerms) return {};
  for (const auto& [product, factor] : sum->terms)
    if (product.size() > kMostFactors) return {};
  return Polynomial(*std::move(sum));
}

std::optional<Polynomial> Polynomial::plus(const Polynomial& other, std::int64_t factor) const {
  return limited(sum_.plus(other.sum_, factor));
}

std::optional<Polynomial> Polynomial::times(const Polynomial& other) const {
  auto sum = sum_.times(other.sum_.base);
  for (const auto& [right, b] : other.sum_.terms) {
    if (sum) sum = sum->plus(Affine<Product>{.terms = {{right, b}}}, sum_.base);
    for (const auto& [left, a] : sum_.terms) {
      Product both;
      std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both));
      const auto term = Affine<Product>::of(std::move(both)).times(a);
      if (sum) sum = sum->plus(*term, b);
    }
  }
  return limited(std::move(sum));
}

std::optional<Polynomial> Polynomial::divided(std::int64_t by) const {
  Affine<Product> quotient{.base = sum_.base / by - (sum_.base % by != 0 && sum_.base < 0 ? 1 : 0)};
  for (const auto& [product, factor] : sum_.terms) {
    if (factor % by != 0) return {};
    quotient.terms.push_back({product, factor / by});
  }
  return Polynomial(std::move(quotient));
}

std::optional<Polynomial::Linear> Polynomial::linear_in(ValueId scalar) const {
  Affine<Product> rest{.base = sum_.base}, factor;
  for (const auto& [product, coefficient] : sum_.terms) {
    const auto count = std::count(product.begin(), product.end(), scalar);
    if (count > 1) return {};
    if (count == 0) {
      rest.terms.push_back({product, coefficient});
    } else if (product.size() == 1) {
      factor.base += coefficient;
    } else {
      Product others = product;
      others.erase(std::find(others.begin(), others.end(), scalar));
      const auto sum = factor.plus(Affine<Product>{.terms = {{others, 1}}}, coefficient);
      if (!sum) return {};
      factor = *sum;
    }
  }
  return Linear{Polynomial(std::move(rest)), Polynomial(std::move(factor))};
}

std::vector<ValueId> Polynomial::scalars() const {
  std::vector<ValueId> all;
  for (const auto& [product, coefficient] : sum_.terms)
    all.insert(all.end(), product.begin(), product.end());
  return all;
}

std::optional<std::int64_t> Polynomial::as_constant() const {
  return sum_.is_constant() ? std::optional(sum_.base) : std::nullopt;
}

std::optional<std::int64_t> Polynomial::least(const std::vector<Facts>& facts) const {
  Interval sum{sum_.base, sum_.base};
  for (const auto& [product, factor] : sum_.terms) {
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
  for (const auto& [product, factor] : sum_.terms) {
    std::optional<ValueId> term;
    for (const ValueId id : product) {
      const ValueId wide = out.cast(out.of(id), DType::I64);
      term = term ? out.map(Function::Mul, {*term, wide}) : wide;
    }
    if (factor != 1 && factor != -1) term = out.map(Function::Mul, {*term, out.index(factor)});
    plus(*term, factor == -1);
  }
  if (sum_.base != 0) plus(out.index(sum_.base), false);
  return sum ? *sum : out.index(0);
}

}  // namespace tessera::tile
