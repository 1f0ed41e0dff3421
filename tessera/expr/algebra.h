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

/// What an element is, as a sum of products: the form in which two elements are compared.
///
///     sum over bound where guards: coefficient * factor^exponent * …
///
/// Numbers are reals and exact. Functions keep what they are applied to in the same form, so that
/// equal arguments make equal factors. Making a sum, a product, a power or an application
/// simplifies by the facts that `docs/verification.md` lists and by nothing else.
namespace tessera::algebra {

struct Sum;

/// A base and its exponent.
struct Factor {
  enum class Kind : std::uint8_t {
    Number,  // a size or an index as a number: at[0], a lone atom
    Read,    // an element of the tensor `name` of type `to` at `at`
    Apply,   // fn(args); `to` is I64 where it is a function of integers
    Cast,    // args[0] converted to a narrower type
    Power,   // args[0], a sum that did not come apart
    Most,    // the largest of the groups that are the terms of args[0]
    Fold,    // a component of a fold: args[0] has one term, the groups to take in; then the inits;
             // then what combines them, over the reads %L0, %R0, …
    Group,   // args[0] in brackets: a term of Most or Fold
    Bottom,  // below every number
  };
  Kind kind = Kind::Number;
  std::string name = {};
  Fn fn = Fn::Add;
  DType to = DType::F32;
  int component = 0;
  bool truth = false;  // it is 0 or 1
  std::vector<Dim> at = {};
  std::shared_ptr<const std::vector<Sum>> args = {};
  Rational exponent = 1;
};

/// Runs over all integers >= 0 for its bound variables; zero where a guard is negative.
struct Term {
  Rational coefficient = 1;
  std::vector<std::string> bound = {};
  std::vector<Dim> guards = {};
  std::vector<Factor> factors = {};
};

struct Sum {
  std::vector<Term> terms = {};
};

std::strong_ordering compare(const Factor& a, const Factor& b);
std::strong_ordering compare(const Term& a, const Term& b);
std::strong_ordering compare(const Sum& a, const Sum& b);
inline bool same(const Sum& a, const Sum& b) {
  return compare(a, b) == 0;
}

/// Names of bound variables that nothing else has: `%1`, `%2`, … in the order of the calls.
class Names {
 public:
  std::string fresh();

 private:
  int next_ = 0;
};

Sum constant(const Rational& value);
Sum number(const Dim& dim);
Sum factor(Factor factor);
/// 1 where all are >= 0, else 0.
Sum indicator(std::vector<Dim> guards);

/// The number, if that is all it is.
std::optional<Rational> constant_of(const Sum& sum);
bool contains(const Term& term, std::string_view symbol);
bool contains(const Factor& factor, std::string_view symbol);
/// Whether nothing in it left the numbers that can be represented.
bool is_defined(const Sum& sum);

/// Whether every variable of the kind that terms bind is bound where it is spoken of.
bool binds_its_variables(const Sum& sum);

Sum add(Sum a, const Sum& b);
Sum scaled(Sum sum, const Rational& by);
Sum product(Names& names, const Sum& a, const Sum& b);
Sum power(Names& names, const Sum& base, const Rational& exponent);
Sum apply(Names& names, Fn fn, std::vector<Sum> args);
/// The same over the integers, where quotients and powers are not those of the reals.
Sum apply_to_integers(Names& names, Fn fn, std::vector<Sum> args);
Sum cast(DType to, Sum arg);
/// The largest of the terms, each a group with the range over which it runs.
Sum most(Names& names, std::vector<Term> groups);
Term group(Sum value);

/// With symbols replaced, and made anew. The bound variables of the term itself may be among them.
using Replacement = std::map<std::string, Dim, std::less<>>;
Dim substituted(const Dim& dim, const Replacement& with);
Sum substituted(Names& names, const Term& term, const Replacement& with);
/// Changed from the outside in and made anew: `dims` changes sizes and positions, `factors` may
/// give another sum for a factor. Inner terms for whose bound variables `skips` says so are left
/// alone.
struct Change {
  std::function<Dim(const Dim&)> dims = {};
  std::function<std::optional<Sum>(const Factor&)> factors = {};
  std::function<bool(const std::vector<std::string>& bound)> skips = {};
};
Sum changed(Names& names, const Term& term, const Change& change);
Sum changed(Names& names, const Sum& sum, const Change& change);
/// With an operation on sizes (Dim::operations) replaced throughout.
Sum replaced(Names& names, const Term& term, const Dim& operation, const Dim& by);
/// Without guards that say nothing, and without terms that are nothing.
Sum tidied(Sum sum);
/// A factor made anew after its arguments have changed.
Sum remade(Names& names, const Factor& factor);

/// What is known of the sign of a sum: it is below zero, zero or above zero.
struct Sign {
  Sum of = {};  // closed
  int sign = 0;
};
using Signs = std::vector<Sign>;
/// The sum where that holds: comparisons that it decides are 0 or 1, what is below another one
/// leaves a maximum, and what is zero is put in where it says what a factor is.
Sum decided(Names& names, const Sum& sum, const Signs& signs);
/// Whether it may have this sign: false where it is plain to see that it does not.
bool may_have(const Sum& sum, int sign, const Signs& signs);

/// Whether two sums are the same, also as fractions: the difference is zero once it is multiplied
/// by what it is divided by, exponentials are written for hyperbolic functions, and a sum of
/// logarithms is the logarithm of a product.
bool are_equal(Names& names, const Sum& a, const Sum& b);

/// Gives bound variables names that hang on what they do alone, sorts, and adds up equal terms.
/// Sums that are equal up to names and order become the same.
Sum closed(Sum sum);
/// The other way: fresh names for the bound variables of its terms.
Sum opened(Names& names, Sum sum);

std::string to_text(const Sum& sum);

}  // namespace tessera::algebra
