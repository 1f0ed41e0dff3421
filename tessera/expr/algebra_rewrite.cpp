#include <algorithm>

#include "tessera/expr/algebra_internal.h"

namespace tessera::algebra {
namespace {

template <class Change>
void change_args(Factor& factor, Change change) {
  if (factor.args == nullptr) return;
  Args args;
  for (const Sum& arg : *factor.args) args.push_back(change(arg));
  factor.args = shared(std::move(args));
}

/// Capture avoidance: renames inner bound variables that are replaced or occur in the replacement.
void keep_inner_apart(Names& names, Term& term, const Replacement& with) {
  const auto clashes = [&](const std::string& name) {
    return with.contains(name) || std::ranges::any_of(with, [&](const auto& entry) {
             return entry.second.contains(name);
           });
  };
  for (Factor& factor : term.factors) {
    change_args(factor, [&](Sum arg) {
      for (Term& inner : arg.terms) {
        if (std::ranges::any_of(inner.bound, clashes))
          inner = opened(names, sum_of(std::move(inner))).terms[0];
        keep_inner_apart(names, inner, with);
      }
      return arg;
    });
  }
}

}  // namespace

Sum remade(Names& names, const Factor& factor) {
  const auto open_args = [&] {
    Args args;
    for (const Sum& arg : args_of(factor)) args.push_back(opened(names, arg));
    return args;
  };
  const Rational& exponent = factor.exponent;
  switch (factor.kind) {
    case Kind::Number:
      // The substitution may have turned a single atom into arithmetic.
      return power(names, number(factor.at[0]), exponent);
    case Kind::Power: return power(names, opened(names, args_of(factor)[0]), exponent);
    case Kind::Apply: {
      Args args = open_args();
      if (factor.truth) args.emplace_back();
      const Sum base = factor.to == DType::I64
                           ? apply_to_integers(names, factor.fn, std::move(args))
                           : apply(names, factor.fn, std::move(args));
      return power(names, base, exponent);
    }
    case Kind::Most: return power(names, most_of_closed(names, args_of(factor)[0]), exponent);
    case Kind::Cast: return power(names, cast(factor.to, args_of(factor)[0]), exponent);
    case Kind::Fold: return power(names, folded(names, base_of(factor)), exponent);
    case Kind::Read:
    case Kind::Group:
    case Kind::Bottom: break;
  }
  return algebra::factor(factor);
}

Dim substituted(const Dim& dim, const Replacement& with) {
  if (std::ranges::none_of(with, [&](const auto& entry) { return dim.contains(entry.first); }))
    return dim;
  return dim.substituted([&](std::string_view name) -> std::optional<Dim> {
    const auto here = with.find(name);
    return here == with.end() ? std::nullopt : std::optional(here->second);
  });
}

Sum changed(Names& names, const Sum& sum, const Change& change) {
  Sum result;
  for (const Term& term : sum.terms) {
    const bool skipped = change.skips && !term.bound.empty() && change.skips(term.bound);
    result = add(std::move(result), skipped ? sum_of(term) : changed(names, term, change));
  }
  return result;
}

Sum changed(Names& names, const Term& term, const Change& change) {
  const auto dim = [&](const Dim& d) { return change.dims ? change.dims(d) : d; };
  Sum result = sum_of({.coefficient = term.coefficient, .bound = term.bound});
  for (const Dim& guard : term.guards) result.terms[0].guards.push_back(dim(guard));
  for (const Factor& f : term.factors) {
    if (change.factors) {
      if (const auto other = change.factors(f)) {
        result = product(names, result, *other);
        continue;
      }
    }
    Factor next = f;
    for (Dim& d : next.at) d = dim(d);
    change_args(next, [&](const Sum& arg) { return closed(changed(names, arg, change)); });
    result = product(names, result, remade(names, next));
  }
  return result;
}

Sum substituted(Names& names, const Term& term, const Replacement& with) {
  Term clear = term;
  keep_inner_apart(names, clear, with);
  return changed(names, clear, {.dims = [&](const Dim& dim) { return substituted(dim, with); }});
}

Sum replaced(Names& names, const Term& term, const Dim& operation, const Dim& by) {
  return changed(names, term,
                 {.dims = [&](const Dim& dim) { return dim.replaced(operation, by); },
                  // A variable that is bound there shadows the outer one of the same name.
                  .skips =
                      [&](const std::vector<std::string>& bound) {
                        return std::ranges::any_of(bound, [&](const std::string& name) {
                          return operation.contains(name) || by.contains(name);
                        });
                      }});
}

}  // namespace tessera::algebra
