#include "tessera/expr/algebra.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tessera/support/cpu_time.h"
#include "tessera/support/hash.h"
#include "tessera/support/rng.h"
#include "tests/expr/examples.h"
#include "tests/support/sum_value.h"

namespace tessera::algebra {
namespace {

using testing::SumValue;

Sum element(const std::string& name, std::vector<Dim> at) {
  return factor({.kind = Factor::Kind::Read, .name = name, .at = std::move(at)});
}

/// The sum over a variable below a size of what speaks of it.
Sum sum_over(Names& names, const std::string& name, const Dim& size, const Sum& body) {
  return product(names, {{{.bound = {name}, .guards = {size - 1 - Dim::symbol(name)}}}}, body);
}

/// The largest of them.
Sum most_over(Names& names, const std::string& name, const Dim& size, Sum body) {
  Term piece = group(std::move(body));
  piece.bound = {name};
  piece.guards = {size - 1 - Dim::symbol(name)};
  return most(names, {std::move(piece)});
}

/// Few numbers, some of them equal, each the same wherever it is read.
double content_of(const std::string& name, const std::vector<std::int64_t>& at) {
  Hasher hasher;
  hasher.add_text(name);
  for (const std::int64_t i : at) hasher.add(static_cast<std::uint64_t>(i));
  hasher.add(1);
  return 0.25 * (static_cast<double>(hasher.value() % 17) - 7);
}

constexpr std::int64_t kLimit = 9;  // above all values of sizes

double value(const Sum& sum, const SizeValues& symbols) {
  return SumValue(symbols, content_of, kLimit)(sum);
}

void expect_same(const Sum& a, const Sum& b) {
  EXPECT_TRUE(same(closed(a), closed(b))) << to_text(closed(a)) << "\n" << to_text(closed(b));
}

void expect_other(const Sum& a, const Sum& b) {
  EXPECT_FALSE(same(closed(a), closed(b))) << to_text(closed(a));
}

TEST(Algebra, NamesOfBoundVariablesDoNotCount) {
  Names names;
  const auto both = [&](const std::string& a, const std::string& b) {
    const Dim x = Dim::symbol(a), y = Dim::symbol(b);
    return sum_over(
        names, a, kN,
        sum_over(names, b, kN + 1, product(names, element("x", {x, y}), element("y", {y, x}))));
  };
  expect_same(both("p", "q"), both("q", "p"));
  expect_same(both("p", "q"), both("%2_0", "%1_0"));
  expect_same(both("p", "q"), both("%1_0", "%1_1"));
  expect_same(both("p", "q"), both("%1_1", "%1_0"));
  expect_other(both("p", "q"),
               sum_over(names, "p", kN,
                        sum_over(names, "q", kN + 1,
                                 product(names, element("x", {Dim::symbol("p"), Dim::symbol("q")}),
                                         element("y", {Dim::symbol("p"), Dim::symbol("q")})))));
}

TEST(Algebra, OrderOfTermsFactorsAndGuardsDoesNotCount) {
  const Factor x = element("x", {kI}).terms[0].factors[0];
  const Factor y = element("y", {kI}).terms[0].factors[0];
  const Term a{.bound = {"i"}, .guards = {kN - kI, kI - 3}, .factors = {x, y}};
  const Term b{.bound = {"i"}, .guards = {kI - 3, kN - kI}, .factors = {y, x}};
  const Term c{.coefficient = 3, .factors = {y}};
  expect_same({{a, c}}, {{c, b}});
  expect_same({{a, b, c}}, add(scaled({{a}}, 2), {{c}}));
  expect_same({{a, c, scaled({{b}}, -1).terms[0]}}, {{c}});
}

TEST(Algebra, EqualNamesInNestedTermsAreOtherVariables) {
  // sum_i (x[i] * exp(sum_i y[i])): the inner i is its own.
  const Sum inner{{{.bound = {"i"},
                    .guards = {kN - 1 - kI},
                    .factors = {element("y", {kI}).terms[0].factors[0]}}}};
  Factor exponential{.kind = Factor::Kind::Apply,
                     .fn = Fn::Exp,
                     .args = std::make_shared<const std::vector<Sum>>(std::vector<Sum>{inner})};
  const Sum nested{{{.bound = {"i"},
                     .guards = {kN - 1 - kI},
                     .factors = {element("x", {kI}).terms[0].factors[0], exponential}}}};
  Names names;
  const SizeValues symbols{{"n", 3}, {"i", 2}, {"j", 1}};
  const double expected = value(nested, symbols);
  EXPECT_NEAR(value(closed(nested), symbols), expected, 1e-9);
  EXPECT_NEAR(value(opened(names, nested), symbols), expected, 1e-9);
  EXPECT_NEAR(value(opened(names, closed(nested)), symbols), expected, 1e-9);
  Sum other = nested;
  other.terms[0] = opened(names, nested).terms[0];
  expect_same(nested, other);
}

TEST(Algebra, SubstitutionDoesNotCapture) {
  // exp(sum_i x[i, j]) with j replaced by i + 1: the i of the sum is another.
  Names names;
  const Sum rows = apply(names, Fn::Exp, {sum_over(names, "i", kN, element("x", {kI, kJ}))});
  ASSERT_EQ(rows.terms.size(), 1u);
  const SizeValues symbols{{"n", 3}, {"i", 2}};
  const Sum moved = substituted(names, rows.terms[0], {{"j", kI + 1}});
  EXPECT_NEAR(value(moved, symbols), value(rows, {{"n", 3}, {"j", 3}}), 1e-9) << to_text(moved);
  // The same with the name that closed sums have.
  const Dim taken = Dim::symbol("%1_0");
  const Sum caught = substituted(names, rows.terms[0], {{"j", taken}});
  EXPECT_NEAR(value(caught, {{"n", 3}, {"%1_0", 2}}), value(rows, {{"n", 3}, {"j", 2}}), 1e-9)
      << to_text(caught);
  // What is bound is not replaced.
  const Sum bound = substituted(names, rows.terms[0], {{"%1_0", 0}, {"i", 0}});
  EXPECT_NEAR(value(bound, {{"n", 3}, {"j", 2}}), value(rows, {{"n", 3}, {"j", 2}}), 1e-9)
      << to_text(bound);
}

TEST(Algebra, ClosingDoesNotCaptureWhatIsFree) {
  Names names;
  for (const char* name : {"%1_0", "%1_1", "%2_0", "%1000000_0", "%2000000_0"}) {
    const Dim free = Dim::symbol(name);
    const Sum inner = sum_over(names, "j", kN, element("x", {kJ, free}));
    const Sum whole =
        sum_over(names, "i", kN,
                 product(names, element("y", {kI, free}),
                         apply(names, Fn::Exp, {product(names, inner, element("x", {kI, free}))})));
    const SizeValues symbols{{"n", 3}, {name, 1}};
    const double expected = value(whole, symbols);
    EXPECT_NEAR(value(closed(whole), symbols), expected, 1e-9) << to_text(closed(whole));
    EXPECT_NEAR(value(opened(names, closed(whole)), symbols), expected, 1e-9);
  }
}

TEST(Algebra, AProductOfASumWithItselfHasTwoVariables) {
  Names names;
  const Sum sum = sum_over(names, "i", kN, element("x", {kI}));
  const SizeValues symbols{{"n", 4}};
  const double once = value(sum, symbols);
  EXPECT_NEAR(value(product(names, sum, sum), symbols), once * once, 1e-9);
  EXPECT_NEAR(value(power(names, sum, 3), symbols), once * once * once, 1e-9);
}

TEST(Algebra, QuotientsCancel) {
  Names names;
  const Sum x = element("x", {kI}), y = element("y", {kI});
  const Sum sum = add(x, y);
  expect_same(add(apply(names, Fn::Div, {x, sum}), apply(names, Fn::Div, {y, sum})), constant(1));
  expect_same(apply(names, Fn::Div, {product(names, x, y), y}), x);
  const Sum total = sum_over(names, "j", kN, element("x", {kJ}));
  expect_same(apply(names, Fn::Div, {total, scaled(total, 2)}), constant(Rational::of(1, 2)));
}

TEST(Algebra, QuotientsCancelInsideOfOthers) {
  Names names;
  const Sum a = element("a", {}), b = element("b", {}), c = element("c", {});
  const auto over = [&](const Sum& sum) { return power(names, sum, -1); };
  const Sum s = add(a, b), t = add(b, c), both = product(names, over(s), over(t));
  // Over s and t: first what is a multiple of s, then what is left over t.
  const Sum above = product(names, product(names, s, t), both);
  expect_same(above, constant(1));
  expect_same(add(above, over(t)), add(constant(1), over(t)));
  expect_same(product(names, product(names, t, c), both), product(names, c, over(s)));
}

TEST(Algebra, ManyQuotientsAreCancelledInPolynomialTime) {
  constexpr int kQuotients = 8;
  constexpr double kMostSeconds = 20;  // of CPU time, on a slow machine; factorial time is hours
  Names names;
  Sum sum = constant(1);
  for (int i = 0; i < kQuotients; ++i) {
    const Sum x = element("x", {i});
    const Sum quotient = product(names, x, power(names, add(x, constant(1)), -1));
    sum = product(names, sum, add(add(x, constant(2)), quotient));
  }
  const CpuStopwatch watch;
  const Sum result = closed(sum);
  EXPECT_LT(watch.seconds(), kMostSeconds);
  EXPECT_EQ(result.terms.size(), 6561u);
}

TEST(Algebra, LargePowersStayPowers) {
  Names names;
  const Sum sum = add(element("x", {}), element("y", {}));
  const double once = value(sum, {});
  for (const int exponent : {8, 9, 20})
    EXPECT_NEAR(value(power(names, sum, exponent), {}) / std::pow(once, exponent), 1, 1e-9);
  EXPECT_NEAR(
      value(product(names, power(names, sum, -20), power(names, sum, 29)), {}) / std::pow(once, 9),
      1, 1e-9);
}

TEST(Algebra, RootsAreThoseOfPositiveNumbers) {
  Names names;
  const Sum x = element("x", {}), two = constant(2);
  expect_same(power(names, constant(8), Rational::of(1, 2)),
              scaled(power(names, two, Rational::of(1, 2)), 2));
  expect_same(
      product(names, power(names, two, Rational::of(1, 2)), power(names, two, Rational::of(1, 2))),
      two);
  // sqrt(x*x) is |x|, not x.
  expect_other(power(names, product(names, x, x), Rational::of(1, 2)), x);
  // sqrt(a/s^2 + b/s^2) is sqrt(a + b)/|s|.
  const Sum a = apply(names, Fn::Exp, {element("a", {})}),
            b = apply(names, Fn::Exp, {element("b", {})});
  const Sum s = add(x, element("y", {}));
  const Sum over = power(names, s, -2);
  expect_other(
      power(names, add(product(names, a, over), product(names, b, over)), Rational::of(1, 2)),
      product(names, power(names, add(a, b), Rational::of(1, 2)), power(names, s, -1)));
}

TEST(Algebra, AMaximumKeepsWhatMayBeNegativeInside) {
  Names names;
  const Sum x = element("x", {}), y = element("y", {}), s = add(x, y);
  const auto larger = [&](const Sum& a, const Sum& b) { return apply(names, Fn::Max, {a, b}); };
  expect_other(larger(product(names, s, x), product(names, s, y)), product(names, s, larger(x, y)));
  expect_same(larger(scaled(x, 2), scaled(y, 2)), scaled(larger(x, y), 2));
  // max(a/s^2, b/s^3) is not max(a*s, b)/s^3.
  const Sum a = element("a", {}), b = element("b", {});
  const Sum square = power(names, s, -2), cube = power(names, s, -3);
  for (const auto& [left, right] : {std::pair(a, b), std::pair(b, a)})
    expect_other(larger(product(names, left, square), product(names, right, cube)),
                 product(names, cube, larger(product(names, left, s), right)));
}

TEST(Algebra, AMaximumOfNothingIsBelowAll) {
  Names names;
  const Sum none = most_over(names, "k", kN - 3, {}),
            some = most_over(names, "k", kN - 3, constant(2));
  EXPECT_EQ(value(none, {{"n", 4}}), 0);
  EXPECT_EQ(value(none, {{"n", 3}}), -HUGE_VAL) << to_text(none);
  EXPECT_EQ(value(some, {{"n", 3}}), -HUGE_VAL) << to_text(some);
}

TEST(Algebra, AFunctionOfMinusInfinityOnlyWhereThatIsTheArgument) {
  Names names;
  const Sum bottom = factor({.kind = Factor::Kind::Bottom});
  expect_same(apply(names, Fn::Exp, {bottom}), {});
  expect_same(apply(names, Fn::Exp, {add(element("x", {}), bottom)}), {});
  // 1 where the guard does not hold.
  expect_other(apply(names, Fn::Exp, {product(names, indicator({kI - 1}), bottom)}), {});
  // 1 where the condition does not.
  const Sum condition =
      factor({.kind = Factor::Kind::Read, .name = "c", .to = DType::Bool, .truth = true});
  expect_other(apply(names, Fn::Exp, {product(names, condition, bottom)}), {});
  // A number of either sign.
  expect_other(apply(names, Fn::Exp, {product(names, element("x", {}), bottom)}), {});
}

Sum of(Names& names, Fn fn, Sum arg) {
  return apply(names, fn, {std::move(arg)});
}

TEST(Algebra, TheRootOfASquareIsTheAbsoluteValue) {
  Names names;
  const Sum x = element("x", {0}), y = element("y", {0});
  const auto squared = [&](const Sum& a) { return product(names, a, a); };
  expect_same(of(names, Fn::Sqrt, squared(x)), of(names, Fn::Abs, x));
  expect_other(of(names, Fn::Sqrt, squared(x)), x);
  expect_same(of(names, Fn::Abs, product(names, x, y)),
              product(names, of(names, Fn::Abs, x), of(names, Fn::Abs, y)));
  expect_same(squared(of(names, Fn::Abs, x)), squared(x));
  expect_other(power(names, of(names, Fn::Abs, x), 3), power(names, x, 3));
}

TEST(Algebra, ExponentialsLeaveLogarithmsAndQuotients) {
  Names names;
  const Sum x = element("x", {0}), y = element("y", {0});
  const auto exp = [&](const Sum& a) { return of(names, Fn::Exp, a); };
  const auto log = [&](const Sum& a) { return of(names, Fn::Log, a); };
  expect_same(exp(log(add(x, y))), add(x, y));
  expect_same(log(add(exp(add(x, y)), exp(y))), add(y, log(add(exp(x), constant(1)))));
  expect_other(log(add(exp(add(x, y)), exp(x))), add(y, log(add(exp(x), constant(1)))));
  expect_same(log(product(names, x, x)), scaled(log(of(names, Fn::Abs, x)), 2));
  expect_other(log(product(names, x, x)), scaled(log(x), 2));
  const Sum over = power(names, add(constant(1), exp(scaled(x, -1))), -1);
  expect_same(over, product(names, exp(x), power(names, add(exp(x), constant(1)), -1)));
  // The largest of exponentials, but not of something negative times them.
  expect_same(most(names, {group(exp(x)), group(exp(y))}), exp(most(names, {group(x), group(y)})));
  expect_other(most(names, {group(scaled(exp(x), -1)), group(scaled(exp(y), -1))}),
               scaled(exp(most(names, {group(x), group(y)})), -1));
}

TEST(Algebra, ComparisonsOfSizesAreGuards) {
  Names names;
  const Dim k = Dim::symbol("k");
  expect_same(apply(names, Fn::Equal, {number(k), constant(2)}), indicator({k - 2, 2 - k}));
  expect_same(apply(names, Fn::Less, {number(k), number(kN)}), indicator({kN - k - 1}));
}

TEST(Algebra, BitsOfTypes) {
  Names names;
  const auto typed = [](const std::string& name, DType type) {
    return factor({.kind = Factor::Kind::Read, .name = name, .to = type, .at = {0}});
  };
  const auto of_integers = [&](Fn fn, std::vector<Sum> args) {
    return apply_to_integers(names, fn, std::move(args));
  };
  for (const DType type : {DType::U8, DType::I32}) {
    const Sum x = typed("x", type), y = typed("y", type);
    const auto no = [&](const Sum& a) { return of_integers(Fn::Not, {a}); };
    expect_same(no(no(x)), x);
    expect_same(no(x), add(constant(type == DType::U8 ? 255 : -1), scaled(x, -1)));
    expect_same(no(of_integers(Fn::And, {x, y})), of_integers(Fn::Or, {no(x), no(y)}));
    expect_other(no(of_integers(Fn::And, {x, y})), of_integers(Fn::Or, {x, no(y)}));
    expect_same(of_integers(Fn::Xor, {of_integers(Fn::Xor, {x, y}), y}), x);
  }
  // Of one type only.
  const Sum a = typed("a", DType::U8), b = typed("b", DType::U16);
  expect_other(of_integers(Fn::And, {of_integers(Fn::Not, {a}), b}),
               add(b, scaled(of_integers(Fn::And, {a, b}), -1)));
  const Sum i = typed("i", DType::I32);
  expect_other(of_integers(Fn::ShiftRight, {i, constant(1)}),
               of_integers(Fn::Div, {i, constant(2)}));
}

TEST(Algebra, FractionsAreEqualAcross) {
  Names names;
  const Sum x = element("x", {0}), y = element("y", {0}), one = constant(1);
  const auto exp = [&](const Sum& a) { return of(names, Fn::Exp, a); };
  const auto sigmoid = [&](const Sum& a) { return power(names, add(one, exp(scaled(a, -1))), -1); };
  const Sum tanh = of(names, Fn::Tanh, x);
  EXPECT_TRUE(are_equal(names, tanh, add(scaled(sigmoid(scaled(x, 2)), 2), constant(-1))));
  EXPECT_FALSE(are_equal(names, tanh, add(scaled(sigmoid(x), 2), constant(-1))));
  EXPECT_TRUE(are_equal(names, add(sigmoid(x), sigmoid(scaled(x, -1))), one));
  EXPECT_FALSE(are_equal(names, add(sigmoid(x), sigmoid(scaled(y, -1))), one));
  const Sum log = of(names, Fn::Log, add(one, exp(x)));
  EXPECT_TRUE(are_equal(names, log, scaled(of(names, Fn::Log, sigmoid(scaled(x, -1))), -1)));
  EXPECT_FALSE(are_equal(names, log, scaled(of(names, Fn::Log, sigmoid(x)), -1)));
  const Sum sin = of(names, Fn::Sin, x), cos = of(names, Fn::Cos, x);
  EXPECT_TRUE(are_equal(names, add(product(names, sin, sin), product(names, cos, cos)), one));
  EXPECT_FALSE(are_equal(names, add(sin, cos), one));
}

TEST(Algebra, WhatIsSummedOverIsNoCommonDenominator) {
  // Σ u/S * Σ v*S is not Σ u * Σ v, whatever names the bound variables get.
  for (const std::array<std::string, 3>& tensors :
       {std::array<std::string, 3>{"u", "v", "x"}, {"v", "u", "x"}, {"a", "b", "c"}}) {
    Names names;
    const auto read = [&](int which, const std::string& k) {
      return element(tensors[static_cast<std::size_t>(which)], {Dim::symbol(k)});
    };
    const auto over = [&](const std::string& k) {
      return add(constant(1), of(names, Fn::Exp, read(2, k)));
    };
    const auto sum = [&](const std::function<Sum(const std::string&)>& body) {
      const std::string k = names.fresh();
      return sum_over(names, k, Dim::symbol("n"), body(k));
    };
    const Sum left =
        product(names, sum([&](const std::string& k) {
                  return product(names, read(0, k), power(names, over(k), -1));
                }),
                sum([&](const std::string& k) { return product(names, read(1, k), over(k)); }));
    const Sum right = product(names, sum([&](const std::string& k) { return read(0, k); }),
                              sum([&](const std::string& k) { return read(1, k); }));
    EXPECT_FALSE(are_equal(names, left, right));
  }
}

TEST(Algebra, SignsDecide) {
  Names names;
  const Sum x = element("x", {0}), y = element("y", {0});
  const Sum largest = most(names, {group(x), group(y)});
  const Sum apart = closed(add(x, scaled(y, -1)));
  expect_same(decided(names, largest, {{apart, 1}}), x);
  expect_same(decided(names, largest, {{apart, -1}}), y);
  expect_same(decided(names, add(x, scaled(y, -1)), {{apart, 0}}), {});
  const Sum other = most(names, {group(x), group(constant(3))});
  expect_same(decided(names, other, {{apart, 1}}), other);
  EXPECT_TRUE(may_have(apart, 0, {}));
  EXPECT_FALSE(may_have(closed(product(names, x, x)), -1, {}));
  EXPECT_TRUE(may_have(closed(product(names, x, y)), -1, {{x, 1}}));
  EXPECT_FALSE(may_have(closed(product(names, x, y)), -1, {{x, 1}, {y, 1}}));
}

TEST(Algebra, TheUndefinedStaysSo) {
  Names names;
  const Sum none = constant(Rational::undefined()), x = element("x", {});
  const std::vector<std::pair<const char*, Sum>> cases = {
      {"x + none", add(x, none)},
      {"x * none", product(names, x, none)},
      {"max(x, none)", apply(names, Fn::Max, {x, none})},
      {"max(0, none)", apply(names, Fn::Max, {Sum{}, none})},
      {"max(1, none)", apply(names, Fn::Max, {constant(1), none})},
      {"max(none, 1)", apply(names, Fn::Max, {none, constant(1)})},
      {"min(1, none)", apply(names, Fn::Min, {constant(1), none})},
      {"none < 1", apply(names, Fn::Less, {none, constant(1)})},
      {"1 < none", apply(names, Fn::Less, {constant(1), none})},
      {"none == 1", apply(names, Fn::Equal, {none, constant(1)})},
      {"exp(none)", apply(names, Fn::Exp, {none})},
      {"tanh(none)", apply(names, Fn::Tanh, {none})},
      {"floor(none)", apply(names, Fn::Floor, {none})},
      {"log(none)", apply(names, Fn::Log, {none})},
      {"sqrt(none)", apply(names, Fn::Sqrt, {none})},
      {"none / none", apply(names, Fn::Div, {none, none})},
      {"1 / 0", apply(names, Fn::Div, {constant(1), Sum{}})},
      {"i8(none)", cast(DType::I8, none)},
      {"the largest of x[k] + none",
       most_over(names, "k", kN, add(element("x", {Dim::symbol("k")}), none))},
  };
  for (const auto& [text, sum] : cases)
    EXPECT_FALSE(is_defined(closed(sum))) << text << " is " << to_text(closed(sum));
}

TEST(Algebra, ACastOfANumberIsThatOfTheType) {
  expect_same(cast(DType::I8, constant(100)), constant(100));
  expect_other(cast(DType::U8, constant(300)), constant(300));
  expect_other(cast(DType::U8, constant(-1)), constant(-1));
  expect_other(cast(DType::I32, constant(Rational::of(5, 2))), constant(Rational::of(5, 2)));
  expect_other(cast(DType::F16, constant(100'001)), constant(100'001));
  const auto read = [](DType dtype) {
    return factor({.kind = Factor::Kind::Read, .name = "x", .to = dtype});
  };
  expect_same(cast(DType::I32, read(DType::I8)), read(DType::I8));
  expect_same(cast(DType::F16, read(DType::U8)), read(DType::U8));
  for (const auto& [from, to] : std::vector<std::pair<DType, DType>>{{DType::I8, DType::U8},
                                                                     {DType::I8, DType::U32},
                                                                     {DType::U8, DType::I8},
                                                                     {DType::I32, DType::I16},
                                                                     {DType::F32, DType::I64},
                                                                     {DType::F32, DType::F16},
                                                                     {DType::F16, DType::BF16},
                                                                     {DType::BF16, DType::F16},
                                                                     {DType::I16, DType::F16},
                                                                     {DType::U64, DType::I64},
                                                                     {DType::F32, DType::Bool}})
    expect_other(cast(to, read(from)), read(from));
}

// --- Random sums, beside a plain computation of the same number
// ------------------------------------

/// A sum and what it should be.
struct Known {
  Sum sum;
  std::function<double(const SizeValues&)> value;
};

class Generator {
 public:
  Generator(std::uint64_t seed, Names& names) : rng_(seed), names_(names) {}

  Known any(int depth, const std::vector<std::string>& inside = {}) {
    Known result = made(depth, inside);
    return is_defined(result.sum) ? result : leaf(inside);
  }
  Dim dim(const std::vector<std::string>& inside) {
    const auto one = [&]() -> Dim {
      const std::uint64_t which = below(4 + inside.size());
      if (which >= 4) return Dim::symbol(inside[which - 4]);
      return which == 0   ? kI
             : which == 1 ? kJ
             : which == 2 ? kN
                          : Dim(static_cast<std::int64_t>(below(3)));
    };
    switch (below(8)) {
      case 0: return one() + one();
      case 1: return one() - one();
      case 2: return one() * one();
      case 3: return floor_div(one(), 2);
      case 4: return mod(one() + 1, 3);
      default: return one();
    }
  }
  std::uint64_t below(std::uint64_t bound) { return rng_.below(bound); }

 private:
  Known made(int depth, const std::vector<std::string>& inside) {
    if (depth == 0) return leaf(inside);
    switch (below(12)) {
      case 0: return leaf(inside);
      case 1: {
        const Known a = any(depth - 1, inside), b = any(depth - 1, inside);
        return {add(a.sum, b.sum), [=](const SizeValues& s) { return a.value(s) + b.value(s); }};
      }
      case 2:
      case 3: {
        const Known a = any(depth - 1, inside), b = any(depth - 1, inside);
        return {product(names_, a.sum, b.sum),
                [=](const SizeValues& s) { return a.value(s) * b.value(s); }};
      }
      case 4: {
        const Known a = any(depth - 1, inside);
        const Rational by = Rational::of(static_cast<std::int64_t>(below(9)) - 4, 2);
        return {scaled(a.sum, by),
                [=](const SizeValues& s) { return a.value(s) * by.to_double(); }};
      }
      case 5: {
        const Known a = any(depth - 1, inside);
        const std::vector<Rational> exponents = {
            2, 3, -1, -2, -3, Rational::of(1, 2), Rational::of(-1, 2), Rational::of(3, 2)};
        const Rational by = exponents[below(exponents.size())];
        return {power(names_, a.sum, by),
                [=](const SizeValues& s) { return std::pow(a.value(s), by.to_double()); }};
      }
      case 6:
      case 7: return over_range(depth, inside);
      case 8: return function_of_two(depth, inside);
      case 9: {
        // With itself, so that something cancels.
        const Known a = any(depth - 1, inside), b = any(depth - 1, inside);
        const Sum both = add(a.sum, b.sum);
        const auto sum = [=](const SizeValues& s) { return a.value(s) + b.value(s); };
        const bool divides = below(2) == 0;
        if (divides)
          return {add(apply(names_, Fn::Div, {a.sum, both}), apply(names_, Fn::Div, {b.sum, both})),
                  [=](const SizeValues& s) { return sum(s) / sum(s); }};
        return {power(names_, product(names_, both, both), Rational::of(1, 2)),
                [=](const SizeValues& s) { return std::fabs(sum(s)); }};
      }
      default: {
        const Known a = any(depth - 1, inside);
        constexpr std::array kFns = {Fn::Exp, Fn::Exp, Fn::Log,  Fn::Sqrt, Fn::Sin, Fn::Cos,
                                     Fn::Erf, Fn::Abs, Fn::Tanh, Fn::Atan, Fn::Neg, Fn::Floor};
        const Fn fn = kFns[below(kFns.size())];
        return {apply(names_, fn, {a.sum}),
                [=](const SizeValues& s) { return testing::value_of(fn, {a.value(s)}); }};
      }
    }
  }

  Known leaf(const std::vector<std::string>& inside) {
    const Dim a = dim(inside), b = dim(inside);
    const auto at = [](const Dim& d, const SizeValues& s) { return testing::value_of(d, s); };
    switch (below(6)) {
      case 0:
        return {number(a), [=](const SizeValues& s) { return static_cast<double>(at(a, s)); }};
      case 1:
        return {indicator({a - b, a}), [=](const SizeValues& s) {
                  return at(a, s) >= at(b, s) && at(a, s) >= 0 ? 1.0 : 0;
                }};
      case 2: {
        const Rational c = Rational::of(static_cast<std::int64_t>(below(13)) - 6, 4);
        return {constant(c), [=](const SizeValues&) { return c.to_double(); }};
      }
      default: {
        const std::string name = below(2) == 0 ? "x" : "y";
        return {element(name, {a, b}), [=](const SizeValues& s) {
                  return content_of(name, {at(a, s), at(b, s)});
                }};
      }
    }
  }

  Known function_of_two(int depth, const std::vector<std::string>& inside) {
    const Known a = any(depth - 1, inside), b = any(depth - 1, inside);
    constexpr std::array kFns = {Fn::Max, Fn::Min, Fn::Less, Fn::Equal, Fn::Max, Fn::Sub};
    const Fn fn = kFns[below(kFns.size())];
    return {apply(names_, fn, {a.sum, b.sum}), [=](const SizeValues& s) {
              return testing::value_of(fn, {a.value(s), b.value(s)});
            }};
  }

  Known over_range(int depth, std::vector<std::string> inside) {
    const bool sums = below(2) == 0;
    // A maximum of nothing is no number.
    const Dim size = !sums ? kN + 1 : below(3) == 0 ? dim(inside) : below(2) == 0 ? kN : kJ + 1;
    const std::string name = names_.fresh();
    inside.push_back(name);
    const Known body = any(depth - 1, inside);
    return {sums ? sum_over(names_, name, size, body.sum) : most_over(names_, name, size, body.sum),
            [=](SizeValues s) {
              double result = sums ? 0 : -HUGE_VAL;
              const std::int64_t most = std::min(kLimit, testing::value_of(size, s));
              for (std::int64_t at = 0; at < most; ++at) {
                s.insert_or_assign(name, at);
                result = sums ? result + body.value(s) : std::max(result, body.value(s));
                if (std::isnan(body.value(s))) result = body.value(s);
              }
              return result;
            }};
  }

  Rng rng_;
  Names& names_;
};

/// Numbers that double arithmetic may be held to; others say nothing.
bool is_fair(double x) {
  return std::isfinite(x) && std::fabs(x) < 1e6;
}

void expect_value(const Sum& sum, double expected, const SizeValues& symbols, const char* what,
                  const Sum& before) {
  if (!is_fair(expected) || !is_defined(sum)) return;
  const double found = value(sum, symbols);
  EXPECT_NEAR(found, expected, 1e-6 * std::max(1.0, std::fabs(expected)))
      << what << " of\n  " << to_text(before) << "\nis\n  " << to_text(sum);
}

class RandomSums : public ::testing::TestWithParam<int> {};

void expect_kept(std::uint64_t seed, int depth) {
  SCOPED_TRACE(fmt::format("seed {}, depth {}", seed, depth));
  Names names;
  Generator random(seed, names);
  const Known a = random.any(depth), b = random.any(depth - 1);
  if (a.sum.terms.size() > 60 || b.sum.terms.size() > 60) return;
  const Sum shut = closed(a.sum);
  const Sum wide = opened(names, shut);
  const Sum both = product(names, a.sum, b.sum), again = product(names, wide, wide);
  const Dim put_in = random.dim({});
  const auto with_put_in = [&](const Sum& sum) {
    Sum result;
    for (const Term& term : sum.terms) {
      // What only inner terms bind is not meant.
      Replacement with{{"i", put_in}, {"%1_0", 7}};
      for (const std::string& name : term.bound) with.erase(name);
      result = add(std::move(result), substituted(names, term, with));
    }
    return result;
  };
  const Sum moved = with_put_in(a.sum), moved_shut = with_put_in(shut);
  const Sum remade = changed(names, shut, {});
  for (std::int64_t n : {0, 1, 3}) {
    const SizeValues symbols{{"i", (n + 1) % 3}, {"j", n}, {"n", n}};
    const double x = a.value(symbols);
    expect_value(a.sum, x, symbols, "made", a.sum);
    expect_value(shut, x, symbols, "closed", a.sum);
    expect_value(wide, x, symbols, "opened", shut);
    expect_value(remade, x, symbols, "made anew", shut);
    if (is_fair(x)) expect_value(again, x * x, symbols, "squared", wide);
    const double y = b.value(symbols);
    if (is_fair(x) && is_fair(y)) expect_value(both, x * y, symbols, "product", a.sum);
    SizeValues other = symbols;
    other["i"] = testing::value_of(put_in, symbols);
    if (other["i"] < 0) continue;
    const double z = a.value(other);
    expect_value(moved, z, symbols, "substituted", a.sum);
    expect_value(moved_shut, z, symbols, "substituted", shut);
  }
}

TEST_P(RandomSums, KeepTheirValue) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    expect_kept(seed * 1000 + static_cast<std::uint64_t>(GetParam()), GetParam());
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Algebra, RandomSums, ::testing::Values(1, 2, 3));

TEST(SlowRandomSums, KeepTheirValue) {
  for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
    expect_kept(seed, 1 + static_cast<int>(seed % 4));
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tessera::algebra
