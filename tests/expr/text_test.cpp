#include "tessera/expr/text.h"

#include <gtest/gtest.h>

#include <limits>

#include "tessera/support/rng.h"

namespace tessera {
namespace {

const std::vector<Operand> kOperands = {{"x", DType::F32, {Dim::symbol("#i")}},
                                        {"m", DType::F32, {Dim::symbol("#i"), Dim::symbol("#j")}},
                                        {"idx", DType::I64, {Dim::symbol("#i")}},
                                        {"u", DType::U64, {}},
                                        {"mask", DType::Bool, {Dim::symbol("#i")}}};

void expect_round_trip(const std::string& text) {
  const Expected<Scalar> scalar = parse_scalar(text, kOperands);
  ASSERT_TRUE(scalar) << text << "\n" << to_string(scalar.error());
  EXPECT_EQ(to_text(*scalar), text);
}

void expect_definition(const std::string& text) {
  const Expected<Definition> definition = parse_definition(text);
  ASSERT_TRUE(definition) << text << "\n" << to_string(definition.error());
  EXPECT_EQ(to_text(*definition), text);
}

void expect_error(const std::string& text, const std::string& message) {
  const Expected<Definition> definition = parse_definition(text);
  ASSERT_FALSE(definition) << text;
  EXPECT_EQ(definition.error().id, "text-syntax");
  EXPECT_EQ(definition.error().message, message);
}

TEST(Text, PrintsScalarsAsTheyAreRead) {
  for (const char* text : {"1.0",
                           "-1.0",
                           "-0.0",
                           "inf",
                           "-inf",
                           "nan",
                           "1",
                           "-9223372036854775808",
                           "7u",
                           "18446744073709551615u",
                           "true",
                           "false",
                           "i",
                           "#i",
                           "size(2*#i + n)",
                           "size(3)",
                           "'#odd axis'",
                           "x[i]",
                           "u[]",
                           "x[i + 1] else 0.0",
                           "(x[i - 1] else 0.0) * 2.0",
                           "x[i] else x[0] else 0.0",
                           "neg(1.0)",
                           "-x[i]",
                           "--x[i]",
                           "-(x[i] + 1.0)",
                           "-x[i] * x[j]",
                           "1 - -2",
                           "1 - (2 - 3)",
                           "1 - 2 - 3",
                           "1 * (2 + 3) / 4",
                           "(1 < 2) == (2 <= 3)",
                           "!mask[i] && mask[j] || mask[k]",
                           "!(mask[i] || mask[j])",
                           "select(i < 2, x[i], 0.0)",
                           "max(x[i], 0.0)",
                           "floor_div(i, 2) + mod(i, 3)",
                           "f16(x[i])",
                           "i64(x[i]) + 1",
                           "shift_left(idx[i], 3)",
                           "xor(mask[i], mask[j])",
                           "x[idx[i]]",
                           "pow(x[i], 2.0)",
                           "sum(k) m[i, k] * x[k]",
                           "sum(k) { x[k] } / 2.0",
                           "1.0 + sum(k) { x[k] }",
                           "sum(j: i + 1) x[j]",
                           "sum(i: 3, j: #i) 1",
                           "max_of(k) x[k]",
                           "any_of(k) mask[k]",
                           "min_of(k) idx[k]",
                           "prod(k) sum(i) m[i, k]",
                           "max(sum(k) x[k], 0.0)",
                           "fold(k) { from 5.0 take x[k] by left.0 + right.0 }",
                           "fold(k) { from -inf, 0 take x[k], k by max(left.0, right.0), "
                           "select(left.0 < right.0, right.1, left.1) }.1"})
    expect_round_trip(text);
}

TEST(Text, NamesWhatIsUsedTwice) {
  expect_round_trip("let %0 = exp(x[i] * 2.0 + x[j] * 3.0) in %0 / (1.0 + %0)");
  expect_round_trip(
      "let (%0, %1) = fold(k) { from 0.0, 0 take x[k], k by left.0 + right.0, left.1 + right.1 } "
      "in %0 / f32(%1)");
}

TEST(Text, KeepsTheComponentsOfOneFoldTogether) {
  const Tuple both = fold({Axis{"k"}}, {0.0, 0}, {kOperands[0]({Axis{"k"}}), 1},
                          [](const Tuple& left, const Tuple& right) -> Tuple {
                            return {left[0] + right[0], left[1] + right[1]};
                          });
  const Expected<Scalar> back =
      parse_scalar(to_text(both[0] / cast(DType::F32, both[1])), kOperands);
  ASSERT_TRUE(back);
  const auto& quotient = std::get<node::Apply>(back->node());
  const auto& first = std::get<node::Component>(quotient.args[0].node());
  const auto& second =
      std::get<node::Component>(std::get<node::Cast>(quotient.args[1].node()).arg->node());
  EXPECT_EQ(first.fold, second.fold);
}

TEST(Text, SaysTheSortOfAPartialThatIsNamedOutsideOfItsFold) {
  expect_round_trip(
      "let %0 = select(left.0 < right.0, left.1i * 2, right.1i * 3) "
      "in fold(k) { from 0.0, 0 take x[k], k by left.0 + right.0, %0 * %0 }.1");
}

TEST(Text, DoesNotBlowUpOnASharedExpression) {
  Scalar square = kOperands[0]({Axis{"i"}}) + 1.0;
  for (int i = 0; i < 64; ++i) square = square * square;
  const std::string text = to_text(square);
  EXPECT_LT(text.size(), 4000U);
  const Expected<Scalar> back = parse_scalar(text, kOperands);
  ASSERT_TRUE(back);
  EXPECT_EQ(to_text(*back), text);
}

TEST(Text, PrintsDefinitionsAsTheyAreRead) {
  expect_definition(
      "define(a: f32[#i, #k], b: f32[#k, #j]) {\n"
      "  out: f32[i, j] = sum(k) a[i, k] * b[k, j]\n"
      "}\n");
  expect_definition(
      "define(image: f32[#n, 2*#c, #h], weight: f32[2*#f, #c, #r], bias: f32[2*#f]) {\n"
      "  out: f32[n, (g: 2, f), y: #h - #r + 3] =\n"
      "    sum(c, r) { (image[n, g * #c + c, y + r - 1] else 0.0) * weight[g * #f + f, c, r] } + "
      "bias[g * #f + f]\n"
      "}\n");
  expect_definition(
      "define(data: f32[#n, #m], index: i64[#k], update: f32[#k, #m]) {\n"
      "  out: f32[n, m] = data[n, m]\n"
      "  scatter(k, m) at [index[k], m] add update[k, m]\n"
      "  count: i64[n] = 0\n"
      "  scatter(k) at [index[k]] set 1\n"
      "}\n");
  expect_definition("define() {\n  out: f64[(), i: 3] = f64(i)\n}\n");
}

TEST(Text, TakesShortFormsTypedByHand) {
  const Expected<Definition> definition = parse_definition(
      "define(a: f32[#i, #k], b: f32[#k, #j]) { // a contraction\n"
      "  out: f32[i, j] = sum(k) a[i, k] * b[k, j] }");
  ASSERT_TRUE(definition);
  EXPECT_EQ(definition->outputs[0].shape(), (Shape{Dim::symbol("#i"), Dim::symbol("#j")}));
  EXPECT_EQ(to_text(*parse_scalar("1 > 2")), "2 < 1");
  EXPECT_EQ(to_text(*parse_scalar("1 != 2")), "!(1 == 2)");
}

TEST(Text, ReadsSizes) {
  for (const char* text :
       {"0", "-3", "n", "'batch size'", "2*m*n + floor_div(h + 1, 2) - 1", "-n", "'undefined'",
        "min(a, b) + max(a, 2*b)", "mod(n, 4)", "undefined", "n - 9223372036854775808",
        "-9223372036854775808", "floor_div(mod(n, 3), 2)*n"}) {
    const Expected<Dim> dim = parse_dim(text);
    ASSERT_TRUE(dim) << text << "\n" << to_string(dim.error());
    EXPECT_EQ(parse_dim(dim->to_string())->to_string(), dim->to_string());
    EXPECT_EQ(*parse_dim(dim->to_string()), *dim) << text;
  }
  EXPECT_EQ(*parse_dim("(n + 1)*(n - 1)"), *parse_dim("n*n - 1"));
  EXPECT_EQ(*parse_dim("ceil_div(7, 2)"), Dim(4));
}

TEST(Text, ReportsWhatIsNotADefinition) {
  expect_error("define(x: f32[#i]) { out: f32[i] = y[i] }", "there is no operand y");
  expect_error("define(x: f32[#i]) { out: f32[i] = x[j] }", "there is no axis j here");
  expect_error("define(x: f32[#i]) { out: f32[j] = x[j] }", "no operand tells the size #j");
  expect_error("define(x: f32[#i]) { out: f32[i] = x[i, i] }", "x has 1 axes and is read at 2");
  expect_error("define(x: f32[#i]) { out: f32[i] = x[x[i]] }", "an index is a value");
  expect_error("define(x: f32[#i]) { out: f32[i] = select(i, x[i], 0.0) }",
               "a condition is not a truth value");
  expect_error("define(x: f32[#i]) { out: f32[i] = left.0 }",
               "left and right are used outside of a fold");
  expect_error("define(x: f32[#i*#j]) { out: f32[i] = 1.0 }",
               "the shape of x does not tell the size #i");
  expect_error("define(x: f32[#i]) { out: f32[i, i] = x[i] }", "there are two axes i");
  expect_error("define(x: f32[#i]) { out: f32[i] = sum(i) x[i] }",
               "a fold runs over i, an axis around it");
  expect_error("define(x: f32[#i]) { out: f32[] = sum(i) sum(i) x[i] }",
               "a fold over i is inside of another");
  expect_error("define(x: f32[#i]) { out: f32[] = sum(i, j: i + 1) x[i] }",
               "there is no axis i here");
  expect_error("define(x: f32[#i], x: f32[]) { }", "there are two operands x");
  expect_error("define(x: f33[#i]) { }", "found f33");
  expect_error("define(x: f32[#i]) { out: f32[i] = x[i] + }", "found }");
  expect_error("define(x: f32[#i]) { out: f32[i] = 1 + 2 else 3 }",
               "else follows something that is not read");
  expect_error("define(x: f32[#i]) { out: f32[i] = 1 < 2 < 3 }", "comparisons do not chain");
  expect_error("define(x: f32[#i]) { out: f32[i] = fold(k) { from 1, 2 take 1, 2 by 1, 2 } }",
               "found }");
  expect_error("define(x: f32[#i]) { out: f32[i] = fold(i) { from 1 take 1 by left.3 } }",
               "the fold has 1 components");
  expect_error("define(x: f32[#i]) { out: f32[i] = frob(1) }", "there is no function frob");
  expect_error("define(x: f32[#i]) { out: f32[i] = exp(1.0, 2.0) }", "2 arguments are given");
  expect_error("define(x: f32[#i]) { out: f32[i] = %1 }", "%1 has no meaning yet");
  expect_error("define(x: f32[#i]) { out: f32[i] = 9223372036854775808 }",
               "this integer exceeds 64 bits");
  expect_error("define(x: f32[#i]) { out: f32[i] = x[i]", "the text ends here");
  expect_error("", "the text ends here");
}

TEST(Text, RefusesWhatIsTooDeep) {
  const auto repeated = [](const std::string& text, int times) {
    std::string result;
    for (int i = 0; i < times; ++i) result += text;
    return result;
  };
  const std::string deep = "this is nested too deeply";
  EXPECT_EQ(parse_scalar(repeated("(", 100'000)).error().message, deep);
  EXPECT_EQ(parse_scalar(repeated("-", 100'000)).error().message, deep);
  EXPECT_EQ(parse_scalar(repeated("exp(", 100'000)).error().message, deep);
  EXPECT_EQ(parse_scalar("1" + repeated("+1", 100'000)).error().message, deep);
  EXPECT_EQ(parse_dim(repeated("(", 100'000)).error().message, deep);
  EXPECT_EQ(parse_dim(repeated("-", 100'000)).error().message, deep);
  EXPECT_EQ(parse_dim("n" + repeated("+n", 100'000)).error().message, "this sum is too long");
  std::string lets = "let %0 = 1 ";
  for (int i = 1; i < 5000; ++i) lets += fmt::format("let %{} = -%{} ", i, i - 1);
  EXPECT_EQ(parse_scalar(lets + "in 1").error().message, deep);
}

/// Random well-sorted expressions and definitions that contain them.
class Random {
 public:
  explicit Random(std::uint64_t seed) : rng_(seed) {}

  Scalar of(Sort sort, int depth) {
    // Now and then something that was made before, so that expressions are shared.
    if (rng_.below(4) == 0)
      for (const Scalar& made : made_)
        if (made.sort() == sort && rng_.below(2) == 0) return made;
    Scalar result = fresh(sort, depth);
    if (sums_ == 0) made_.push_back(result);
    return result;
  }

  Definition definition() {
    Definition result{.inputs = kOperands, .outputs = {}};
    for (std::uint64_t i = 0; i <= rng_.below(2); ++i) {
      Output output{.name = "out" + std::to_string(i),
                    .dtype = DType::F32,
                    .axes = {{{Axis{"i"}}}, merge({"a", 2}, {"j"})},
                    .value = of(Sort::Value, 5)};
      if (rng_.below(3) == 0) {
        output.forward = ScatterWrite{.over = {{"i"}, {"a", 3}, {"j", 2}},
                                      .target = {of(Sort::Integer, 2), of(Sort::Integer, 2)},
                                      .value = of(Sort::Value, 3)};
        if (rng_.below(2) == 0) output.forward->combine = Fn::Max;
      }
      result.outputs.push_back(std::move(output));
    }
    return result;
  }

 private:
  Scalar leaf(Sort sort) {
    switch (sort) {
      case Sort::Bool: return truth(rng_.below(2) == 0);
      case Sort::Unsigned:
        return Scalar(Node(node::Constant{.sort = Sort::Unsigned,
                                          .integer = static_cast<std::int64_t>(rng_.next())}));
      case Sort::Integer:
        switch (rng_.below(4)) {
          case 0: return static_cast<std::int64_t>(rng_.next());
          case 1: return Dim::symbol("#i") * 2 + 1;
          case 2: return Dim::symbol("#j");
          default: return index_of(rng_.below(2) == 0 ? "i" : "j");
        }
      case Sort::Value:
      case Sort::Text: break;
    }
    return std::bit_cast<double>(rng_.next() & ~(std::uint64_t{1} << 62));  // no nan
  }

  Scalar fresh(Sort sort, int depth) {
    if (depth == 0) return leaf(sort);
    const auto sub = [&](Sort part) { return of(part, depth - 1); };
    switch (rng_.below(6)) {
      case 0: return leaf(sort);
      case 1: return select(sub(Sort::Bool), sub(sort), sub(sort));
      case 2: return folded(sort, depth);
      default: break;
    }
    if (sort == Sort::Bool) {
      static constexpr Fn kFns[] = {Fn::And, Fn::Or, Fn::Xor, Fn::Less, Fn::LessEqual, Fn::Equal};
      const std::uint64_t which = rng_.below(9);
      if (which == 7) return apply(Fn::Not, {sub(Sort::Bool)});
      if (which >= 6) return kOperands[4].or_zero({sub(Sort::Integer)});
      const Sort of_args = which < 3            ? Sort::Bool
                           : rng_.below(2) == 0 ? Sort::Value
                                                : Sort::Integer;
      return apply(kFns[which], {sub(of_args), sub(of_args)});
    }
    static constexpr Fn kFns[] = {Fn::Add, Fn::Sub, Fn::Mul, Fn::Div, Fn::FloorDiv,
                                  Fn::Mod, Fn::Max, Fn::Min, Fn::Neg, Fn::Abs};
    const std::uint64_t which = rng_.below(13);
    if (which < 8) return apply(kFns[which], {sub(sort), sub(sort)});
    if (which < 10) return apply(kFns[which], {sub(sort)});
    if (which == 10 && sort == Sort::Value) return cast(DType::BF16, sub(Sort::Integer));
    if (sort == Sort::Integer) return kOperands[2]({sub(Sort::Integer)});
    if (sort == Sort::Unsigned) return kOperands[3]({});
    if (which == 11) return kOperands[1]({sub(Sort::Integer), index_of("i")});
    return kOperands[0].or_else({sub(Sort::Integer)}, sub(Sort::Value));
  }

  Scalar folded(Sort sort, int depth) {
    const auto sub = [&](Sort part) { return of(part, depth - 1); };
    const int number = folds_++;  // an axis is bound once on any way into an expression
    const std::vector<Bound> over = {{fmt::format("k{}", number), sub(Sort::Integer)},
                                     {fmt::format("m{}", number), Dim::symbol("#i")}};
    if (rng_.below(2) == 0 && sort == Sort::Value) return sum(over, sub(sort));
    const Sort other = rng_.below(2) == 0 ? Sort::Integer : Sort::Value;
    const Tuple init = {sub(sort), sub(other)}, lift = {sub(sort), sub(other)};
    ++sums_;
    const Tuple all = fold(over, init, lift, [&](const Tuple& left, const Tuple& right) -> Tuple {
      const Scalar first = select(equal(left[1], right[1]), left[0], right[0]);
      return {select(sub(Sort::Bool), first, first), max(left[1], right[1])};
    });
    --sums_;
    if (sums_ == 0) made_.push_back(all[1]);
    return all[0];
  }

  Rng rng_;
  std::vector<Scalar> made_;
  int folds_ = 0;
  int sums_ = 0;  // partials are not shared with what is outside of their fold
};

TEST(Text, GivesBackAnyScalar) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const std::string text = to_text(random.of(seed % 2 == 0 ? Sort::Value : Sort::Integer, 6));
    const Expected<Scalar> back = parse_scalar(text, kOperands);
    ASSERT_TRUE(back) << "seed " << seed << "\n" << text << "\n" << to_string(back.error());
    ASSERT_EQ(to_text(*back), text) << "seed " << seed;
  }
}

TEST(Text, GivesBackAnyDefinition) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = to_text(Random(seed).definition());
    const Expected<Definition> back = parse_definition(text);
    ASSERT_TRUE(back) << "seed " << seed << "\n" << text << "\n" << to_string(back.error());
    ASSERT_EQ(to_text(*back), text) << "seed " << seed;
  }
}

TEST(Text, SurvivesDamage) {
  Rng rng(11);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::string text = to_text(Random(seed).definition());
    for (int i = 0; i < 4; ++i) text[rng.below(text.size())] = static_cast<char>(rng.below(128));
    const Expected<Definition> damaged = parse_definition(text);
    if (!damaged) continue;
    EXPECT_TRUE(parse_definition(to_text(*damaged))) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tessera
