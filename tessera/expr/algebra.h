#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/expr/scalar.h"
#include "tessera/support/rational.h"

/// Computer algebra of the prover: normal form of a tensor element as a sum of products, in which
/// two elements are compared.
///
///     sum over bound where guards: coefficient * factor^exponent * …
///
/// Numbers are exact reals. Arguments of functions are kept in the same normal form, so that equal
/// arguments make equal factors. The constructors of sums, products, powers and applications
/// simplify by the facts that `docs/verification.md` lists and by nothing else.
namespace tessera::algebra {

struct Sum;

/// Factor of a term: a base with an exponent.
struct Factor {
  enum class Kind : std::uint8_t {
    Number,  // a size or an index as a number: at[0], a single atom
    Read,    // an element of the tensor `name` of type `to` at `at`
    Apply,   // fn(args); `to` is I64 where it is a function of integers
    Cast,    // args[0] converted to a narrower type
    Power,   // args[0], a sum whose power does not expand
    Most,    // maximum over the groups that are the terms of args[0]
    Fold,    // a component of a fold: args[0] has one term, the groups that are folded; then the
             // initial values; then the combiner, over the reads %L0, %R0, …
    Group,   // args[0] in brackets: a term of Most or Fold
    Bottom,  // minus infinity: below every number
  };
  Kind kind = Kind::Number;
  std::string name = {};
  Fn fn = Fn::Add;
  DType to = DType::F32;
  int component = 0;
  bool truth = false;  // its value is 0 or 1
  std::vector<Dim> at = {};
  std::shared_ptr<const std::vector<Sum>> args = {};
  Rational exponent = 1;
};

/// Summand: coefficient * factors, summed over all integers >= 0 of its bound variables; zero where
/// a guard is negative.
struct Term {
  Rational coefficient = 1;
  std::vector<std::string> bound = {};
  std::vector<Dim> guards = {};
  std::vector<Factor> factors = {};
};

/// Sum of terms: the normal form of one element.
struct Sum {
  std::vector<Term> terms = {};
};

/// Structural total order; bound variables are compared by name (see `closed`).
std::strong_ordering compare(const Factor& a, const Factor& b);
std::strong_ordering compare(const Term& a, const Term& b);
std::strong_ordering compare(const Sum& a, const Sum& b);
inline bool same(const Sum& a, const Sum& b) {
  return compare(a, b) == 0;
}

/// Supply of fresh bound variables: `%1`, `%2`, … in the order of the calls.
class Names {
 public:
  std::string fresh();

 private:
  int next_ = 0;
};

/// Constructors of sums.
Sum sum_of(Term term);
Sum constant(const Rational& value);
Sum number(const Dim& dim);
Sum factor(Factor factor);
/// Indicator: 1 where all guards are >= 0, otherwise 0.
Sum indicator(std::vector<Dim> guards);

/// Value of a sum that is a constant; nothing for any other.
std::optional<Rational> constant_of(const Sum& sum);
bool contains(const Term& term, std::string_view symbol);
bool contains(const Factor& factor, std::string_view symbol);
/// Number of factors of a sum, with those inside of them; it stops counting beyond a limit.
std::size_t size_of(const Sum& sum, std::size_t limit);
/// Whether no number in it is undefined (out of the representable range, a division by zero, or a
/// product of too many terms).
bool is_defined(const Sum& sum);

/// Whether every bound variable occurs only below a term that binds it.
bool binds_its_variables(const Sum& sum);

Sum add(Sum a, const Sum& b);
Sum add(Sum a, Sum&& b);
Sum scaled(Sum sum, const Rational& by);
Sum product(Names& names, const Sum& a, const Sum& b);
Sum power(Names& names, const Sum& base, const Rational& exponent);
Sum apply(Names& names, Fn fn, std::vector<Sum> args);
/// Application over the integers, where quotients and powers differ from those of the reals.
Sum apply_to_integers(Names& names, Fn fn, std::vector<Sum> args);
Sum cast(DType to, Sum arg);
/// Maximum of the terms, each a group with the range over which it runs.
Sum most(Names& names, std::vector<Term> groups);
Term group(Sum value);

/// Substitution of symbols, followed by simplification. The bound variables of the term itself may
/// be among the replaced symbols.
using Replacement = std::map<std::string, Dim, std::less<>>;
Dim substituted(const Dim& dim, const Replacement& with);
Sum substituted(Names& names, const Term& term, const Replacement& with);
/// Rewriting from the outside in, followed by simplification: `dims` rewrites sizes and positions,
/// `factors` may return another sum for a factor. Inner terms for whose bound variables `skips`
/// returns true are left alone.
struct Change {
  std::function<Dim(const Dim&)> dims = {};
  std::function<std::optional<Sum>(const Factor&)> factors = {};
  std::function<bool(const std::vector<std::string>& bound)> skips = {};
};
Sum changed(Names& names, const Term& term, const Change& change);
Sum changed(Names& names, const Sum& sum, const Change& change);
/// Replaces an operation on sizes (Dim::operations) throughout a term.
Sum replaced(Names& names, const Term& term, const Dim& operation, const Dim& by);
/// Drops guards that always hold, and terms that are zero.
Sum tidied(Sum sum);
/// Rebuilds and simplifies a factor whose arguments have changed.
Sum remade(Names& names, const Factor& factor);

/// Assumption about the sign of a sum: negative, zero or positive.
struct Sign {
  Sum of = {};  // closed
  int sign = 0;
};
using Signs = std::vector<Sign>;
/// Simplifies a sum under sign assumptions: comparisons that they decide become 0 or 1, dominated
/// operands of a maximum are dropped, and an equation of the form factor = expression is
/// substituted.
Sum decided(Names& names, const Sum& sum, const Signs& signs);
/// Whether a sum may have this sign: false where a simple sign analysis excludes it.
bool may_have(const Sum& sum, int sign, const Signs& signs);

/// Whether two sums are equal, also as fractions: the difference is zero after multiplication with
/// the denominators, with hyperbolic functions written as exponentials and a sum of logarithms as
/// the logarithm of a product.
bool are_equal(Names& names, const Sum& a, const Sum& b);

/// Canonicalizes: renames bound variables by their use, sorts, and adds up equal terms. Sums that
/// are equal up to names and order become identical.
Sum closed(Sum sum);
/// Inverse of `closed`: fresh names for the bound variables of the terms.
Sum opened(Names& names, Sum sum);

std::string to_text(const Sum& sum);

}  // namespace tessera::algebra
