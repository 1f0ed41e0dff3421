#include "tessera/expr/symbolic.h"

#include <gtest/gtest.h>

#include <span>

#include "tessera/expr/text.h"
#include "tests/expr/examples.h"

namespace tessera {
namespace {

Argument sizes_of(std::vector<Dim> value, DType dtype = DType::I64) {
  const Dim count = static_cast<std::int64_t>(value.size());
  return {.type = {dtype, {count}}, .value = std::move(value)};
}

Argument numbers(const std::vector<float>& content) {
  const auto count = static_cast<std::int64_t>(content.size());
  return {.type = {DType::F32, {count}},
          .content = Tensor::of<float>(DType::F32, {count}, content)};
}

struct Case {
  Definition definition;
  Sizes sizes;
  std::vector<const Argument*> inputs;
};

Case case_of(const std::string& text, const std::vector<Argument>& arguments) {
  Case result;
  Expected<Definition> definition = parse_definition(text);
  EXPECT_TRUE(definition) << text << "\n" << (definition ? "" : to_string(definition.error()));
  if (!definition) return result;
  result.definition = *definition;
  std::vector<Shape> shapes;
  for (const Argument& argument : arguments) {
    shapes.push_back(argument.type.shape);
    result.inputs.push_back(&argument);
  }
  result.sizes = *solve_sizes(result.definition, shapes);
  return result;
}

using Values = std::optional<std::vector<Dim>>;

Values values(const std::string& text, const std::vector<Argument>& arguments) {
  const Case c = case_of(text, arguments);
  return symbolic_values(c.definition, c.sizes, c.inputs);
}

std::optional<Tensor> content(const std::string& text, const std::vector<Argument>& arguments) {
  const Case c = case_of(text, arguments);
  return known_content(c.definition, c.sizes, c.inputs);
}

TEST(Symbolic, ReadsTheSizesOfAnUnknownTensor) {
  EXPECT_EQ(values("define(x: f32[#a, #b]) { out: i64[i: 2] = select(i == 0, #a, #b) }",
                   {{.type = {DType::F32, {kN, 3}}}}),
            (Values{{kN, 3}}));
}

TEST(Symbolic, DoesArithmeticOnSizes) {
  const std::vector<Argument> in = {sizes_of({kN, 4})};
  const auto of = [&](const std::string& value) {
    return values("define(x: i64[#i]) { out: i64[] = " + value + " }", in);
  };
  EXPECT_EQ(of("x[0] * 2 + x[1]"), (Values{{kN * 2 + 4}}));
  EXPECT_EQ(of("x[0] * 4 / x[1]"), (Values{{kN}}));
  EXPECT_EQ(of("x[0] / 2"), (Values{{floor_div(kN, 2)}}));
  EXPECT_EQ(of("(0 - 7) / 2"), (Values{{-3}}));
  EXPECT_EQ(of("floor_div(0 - 7, 2)"), (Values{{-4}}));
  EXPECT_EQ(of("mod(x[0], 2)"), (Values{{mod(kN, 2)}}));
  EXPECT_EQ(of("max(x[0], 0)"), (Values{{kN}}));
  EXPECT_EQ(of("min(x[0] + 1, x[0])"), (Values{{kN}}));
  EXPECT_EQ(of("min(x[0], x[1])"), (Values{{min(kN, 4)}}));
  EXPECT_EQ(of("abs(x[0] + 1)"), (Values{{kN + 1}}));
  EXPECT_EQ(of("(0 - x[0]) / 2"), std::nullopt);
  EXPECT_EQ(of("x[1] / 0"), std::nullopt);
  EXPECT_EQ(of("9223372036854775807 + x[1]"), std::nullopt);
}

TEST(Symbolic, DecidesAConditionWhereNoSymbolMatters) {
  const std::vector<Argument> in = {sizes_of({kN, floor_div(kN - 1, 2) + 1, -1})};
  const auto of = [&](const std::string& value) {
    return values("define(x: i64[#i]) { out: bool[] = " + value + " }", in);
  };
  EXPECT_EQ(of("x[0] == -1"), (Values{{0}}));
  EXPECT_EQ(of("x[1] == -1"), (Values{{0}}));
  EXPECT_EQ(of("x[2] == -1"), (Values{{1}}));
  EXPECT_EQ(of("x[0] < x[0] + 1"), (Values{{1}}));
  EXPECT_EQ(of("x[0] < 0"), (Values{{0}}));
  EXPECT_EQ(of("x[0] <= 5"), std::nullopt);
  EXPECT_EQ(of("x[0] <= 5 && x[0] < 0"), (Values{{0}}));
}

TEST(Symbolic, LooksAtNothingThatIsNotNeeded) {
  const std::string text =
      "define(x: i64[#i], y: i64[#j]) { out: i64[i: 2] = select(i < 1, x[i], y[i - 1]) }";
  const Argument unknown{.type = {DType::I64, {2}}};
  EXPECT_EQ(values(text, {sizes_of({kN, kM}), sizes_of({5, 6})}), (Values{{kN, 5}}));
  EXPECT_EQ(values(text, {sizes_of({kN, kM}), unknown}), std::nullopt);
  EXPECT_EQ(values("define(x: i64[#i], y: i64[#j]) { out: i64[] = select(true, x[0], y[0]) }",
                   {sizes_of({kN}), unknown}),
            (Values{{kN}}));
}

TEST(Symbolic, ReadsOutOfRangeWhereThereIsAnElse) {
  const std::vector<Argument> in = {sizes_of({kN, kM})};
  EXPECT_EQ(values("define(x: i64[#i]) { out: i64[j: 4] = x[j - 1] else 7 }", in),
            (Values{{7, kN, kM, 7}}));
  EXPECT_EQ(values("define(x: i64[#i]) { out: i64[] = x[2] }", in), std::nullopt);
  EXPECT_EQ(
      values("define(x: f32[#i]) { out: f32[] = x[#i] else 2.0 }", {{.type = {DType::F32, {kN}}}}),
      (Values{{2}}));
}

TEST(Symbolic, FindsNoPlaceInATensorThatHasNone) {
  const Dim most = std::int64_t{1} << 62;
  EXPECT_EQ(values("define(x: i64[#a, #b]) { out: i64[] = x[#a - 1, #b - 1] }",
                   {{.type = {DType::I64, {most, most}}}}),
            std::nullopt);
}

TEST(Symbolic, Folds) {
  const std::vector<Argument> in = {sizes_of({kN, kM, 3})};
  EXPECT_EQ(values("define(x: i64[#i]) { out: i64[] = prod(i) x[i] }", in),
            (Values{{kN * kM * 3}}));
  EXPECT_EQ(values("define(x: i64[#i]) { out: i64[i] = sum(j: i + 1) x[j] }", in),
            (Values{{kN, kN + kM, kN + kM + 3}}));
  EXPECT_EQ(values("define(x: i64[#i]) { out: i64[] = sum(j: 3) sum(k: j + 1) 1 }", in),
            (Values{{6}}));
  EXPECT_EQ(values("define(x: i64[#i]) { out: i64[] = fold(i) { from 0, 0 take x[i], 1 by "
                   "left.0 + right.0, left.1 + right.1 }.1 }",
                   in),
            (Values{{3}}));
  EXPECT_EQ(values("define(x: i64[#i], y: f32[#n]) { out: i64[] = sum(n) 1 }",
                   {in[0], {.type = {DType::F32, {kN}}}}),
            std::nullopt);
}

TEST(Symbolic, Scatters) {
  const std::vector<Argument> in = {sizes_of({kN, kM, 3}), sizes_of({2, 0})};
  const std::string text = "define(x: i64[#i], at: i64[#j]) { out: i64[i] = x[i] scatter(j) at ";
  EXPECT_EQ(values(text + "[at[j]] set j + 10 }", in), (Values{{11, kM, 10}}));
  EXPECT_EQ(values(text + "[at[j]] add 1 }", in), (Values{{kN + 1, kM, 4}}));
  EXPECT_EQ(values(text + "[at[j] + 5] add 1 }", in), std::nullopt);
}

TEST(Symbolic, FollowsSizesThroughFloats) {
  const std::string text =
      "define(x: i64[#i], scale: f32[#i]) { out: i64[i] = i64(floor(f32(x[i]) * scale[i])) }";
  EXPECT_EQ(values(text, {sizes_of({kN, 5}), numbers({2, 1.5})}), (Values{{kN * 2, 7}}));
  EXPECT_EQ(values(text, {sizes_of({kN, 5}), numbers({0.5, 1})}), std::nullopt);
}

TEST(Symbolic, KnowsTheContentOfNumbers) {
  const auto known =
      content("define(x: f32[#i]) { out: f16[i] = sqrt(x[i]) + 0.0 }", {numbers({4, 2})});
  ASSERT_TRUE(known);
  EXPECT_EQ(known->dtype, DType::F16);
  EXPECT_EQ(number_at(*known, 0), 2.0);
  EXPECT_EQ(number_at(*known, 1), 1.4140625);
  EXPECT_FALSE(content("define(x: i64[#i]) { out: i64[i] = x[i] }", {sizes_of({kN})}));
  const auto wrapped = content("define(x: i64[#i]) { out: u8[i] = x[i] }", {sizes_of({300})});
  ASSERT_TRUE(wrapped);
  EXPECT_EQ(integer_at(*wrapped, 0), 44);
}

TEST(Symbolic, StopsAtLargeOutputsAndLongFolds) {
  EXPECT_TRUE(values("define() { out: i64[i: 1024] = i }", {}));
  EXPECT_FALSE(values("define() { out: i64[i: 1025] = i }", {}));
  EXPECT_FALSE(values("define() { out: i64[i: 4611686018427387904, j: 4] = i }", {}));
  EXPECT_FALSE(values("define() { out: i64[] = sum(i: 9223372036854775807) 1 }", {}));
  EXPECT_FALSE(values("define() { out: i64[] = sum(i: 1000, j: 1000) 1 }", {}));
  EXPECT_EQ(values("define() { out: i64[i: 0, j: 5] = i }", {}), (Values{std::vector<Dim>{}}));
}

TEST(Symbolic, GoesThroughMergedAxesInOrder) {
  EXPECT_EQ(values("define() { out: i64[(i: 2, j: 3)] = i * 10 + j }", {}),
            (Values{{0, 1, 2, 10, 11, 12}}));
}

}  // namespace
}  // namespace tessera
