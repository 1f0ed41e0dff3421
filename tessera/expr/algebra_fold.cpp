#include <fmt/format.h>

#include <algorithm>

#include "tessera/expr/algebra_internal.h"

namespace tessera::algebra {
namespace {

constexpr std::int64_t kMostWritten = 16;  // factors of a product that is written out

Factor partial(char side, std::size_t component) {
  return {.kind = Kind::Read, .name = fmt::format("%{}{}", side, component)};
}

/// Range of a fold: one term, with a group for each component.
const Term& range_of(const Factor& fold) {
  return args_of(fold)[0].terms[0];
}

/// Number of folded elements, if it is known, of a fold over one axis.
std::optional<std::int64_t> count_of(const Term& range) {
  if (range.bound.size() != 1 || range.guards.size() != 1) return std::nullopt;
  const auto last = (range.guards[0] + Dim::symbol(range.bound[0])).constant();
  return last && *last >= 0 ? std::optional(*last + 1) : std::nullopt;
}

Sum lifted(Names& names, const Term& range, std::size_t component, std::int64_t at) {
  Sum result;
  for (const Term& term : opened(names, args_of(range.factors[component])[0]).terms)
    result = add(std::move(result), substituted(names, term, {{range.bound[0], Dim(at)}}));
  return result;
}

/// Fold of one element: the initial value combined with it.
Sum of_one(Names& names, const Factor& fold) {
  const Term& range = range_of(fold);
  const std::size_t components = range.factors.size();
  const Sum& combine = args_of(fold)[1 + components + static_cast<std::size_t>(fold.component)];
  return changed(names, combine, {.factors = [&](const Factor& f) -> std::optional<Sum> {
                   for (std::size_t c = 0; c < components; ++c) {
                     if (f.kind != Kind::Read) break;
                     if (f.name == partial('L', c).name)
                       return power(names, opened(names, args_of(fold)[1 + c]), f.exponent);
                     if (f.name == partial('R', c).name)
                       return power(names, lifted(names, range, c, 0), f.exponent);
                   }
                   return std::nullopt;
                 }});
}

Factor product_over(const Term& range, Sum value) {
  Term own = range;
  own.factors = group(std::move(value)).factors;
  const Sum both{{{.factors = {partial('L', 0), partial('R', 0)}}}};
  return {.kind = Kind::Fold, .args = shared({closed({{own}}), constant(1), closed(both)})};
}

/// Product fold of a product or an exponential: the product of the folds, or the exponential of the
/// sum.
Sum product_of(Names& names, const Term& range, const Sum& value) {
  if (value.terms.size() != 1 || !is_plain(value.terms[0]) || value.terms[0].factors.empty())
    return factor(product_over(range, value));
  Sum result = constant(1);
  if (!value.terms[0].coefficient.is(1))
    result = factor(product_over(range, constant(value.terms[0].coefficient)));
  for (const Factor& f : value.terms[0].factors) {
    if (f.kind == Kind::Apply && f.fn == Fn::Exp) {
      Term run = range;
      run.factors.clear();
      const Sum total = product(names, opened(names, {{run}}), constant(1));
      Sum sum;
      for (const Term& over : total.terms) {
        Replacement with;
        for (std::size_t i = 0; i < range.bound.size(); ++i)
          with.emplace(range.bound[i], Dim::symbol(over.bound[i]));
        for (const Term& term : opened(names, args_of(f)[0]).terms)
          sum = add(std::move(sum), product(names, {{over}}, substituted(names, term, with)));
      }
      result = product(names, result, apply(names, Fn::Exp, {scaled(std::move(sum), f.exponent)}));
    } else if (f.exponent.is_integer()) {
      result = product(names, result,
                       power(names, factor(product_over(range, factor(base_of(f)))), f.exponent));
    } else {
      result = product(names, result, factor(product_over(range, factor(f))));
    }
  }
  return result;
}

}  // namespace

Sum folded(Names& names, const Factor& fold) {
  const Term& range = range_of(fold);
  const std::optional<std::int64_t> count = count_of(range);
  if (count == 1) return of_one(names, fold);
  const bool product_fold =
      range.factors.size() == 1 && args_of(fold).size() == 3 && constant_of(args_of(fold)[1]) &&
      same(args_of(fold)[2], closed({{{.factors = {partial('L', 0), partial('R', 0)}}}}));
  if (!product_fold) return factor(fold);
  Sum result = args_of(fold)[1];
  if (count && *count <= kMostWritten) {
    for (std::int64_t i = 0; i < *count; ++i)
      result = product(names, result, lifted(names, range, 0, i));
    return result;
  }
  return product(names, result, product_of(names, range, args_of(range.factors[0])[0]));
}

}  // namespace tessera::algebra
