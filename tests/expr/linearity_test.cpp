#include "tessera/expr/linearity.h"

#include <gtest/gtest.h>

#include "tessera/expr/text.h"

namespace tessera {
namespace {

using Groups = std::vector<Linearity::Group>;

constexpr const char* kOperandText =
    "x: f32[#i], y: f32[#i], z: f32[#i], a: f32[#i, #k], b: f32[#k, #j], index: i64[#i], "
    "n: i64[#i], mask: bool[#i], limit: i64[]";

/// Of `out: f32[i, j] = value`.
Linearity of(const std::string& value, const std::string& dtype = "f32") {
  const auto definition = parse_definition(
      fmt::format("define({}) {{ out: {}[i, j] = {} }}", kOperandText, dtype, value));
  EXPECT_TRUE(definition) << value << "\n" << (definition ? "" : to_string(definition.error()));
  return definition ? linearity(*definition) : Linearity{};
}

void expect_linear(const std::string& value, const Groups& groups) {
  EXPECT_EQ(of(value).groups, groups) << value;
}

TEST(Linearity, IsInEachFactorOfAProduct) {
  expect_linear("sum(k) a[i, k] * b[k, j]", {{"a"}, {"b"}});
  expect_linear("x[i] * y[i] * z[i]", {{"x"}, {"y"}, {"z"}});
}

TEST(Linearity, IsJointInTheTermsOfASum) {
  expect_linear("x[i] + y[i]", {{"x", "y"}});
  expect_linear("x[i] - 2.0 * y[j] + sum(k: 3) a[i, k]", {{"a", "x", "y"}});
}

TEST(Linearity, OfAProductPlusABiasIsJointWithTheBias) {
  const Linearity found = of("sum(k) { (a[i + 1, k - 1] else 0.0) * b[k, j] } + x[i]");
  EXPECT_EQ(found.groups, (Groups{{"a", "x"}, {"b", "x"}}));
  EXPECT_TRUE(found.affine_in({"a"}));
  EXPECT_FALSE(found.linear_in({"a"}));
  EXPECT_FALSE(found.affine_in({"a", "b"}));
}

TEST(Linearity, HoldsAcrossSegmentsOfAConcatenation) {
  expect_linear("select(i < 2, x[i], select(i < 4, y[i - 2], z[i - 4]))", {{"x", "y", "z"}});
}

TEST(Linearity, IsLostWhereAnOperandChoosesOrPlaces) {
  expect_linear("x[index[i]]", {{"x"}});
  expect_linear("select(mask[i], x[i], y[i])", {{"x", "y"}});
  expect_linear("select(x[i] < 0.0, x[i], y[i])", {});
  EXPECT_TRUE(of("select(x[i] < 0.0, x[i], y[i])").affine_in({"y"}));
  expect_linear("sum(k: limit[]) a[i, k]", {{"a"}});
}

TEST(Linearity, IsLostInNonlinearFunctions) {
  expect_linear("max(x[i], y[i])", {});
  EXPECT_EQ(of("max(x[i], 0.0)").why, "x is not used linearly");
  expect_linear("prod(k) a[i, k]", {});
  expect_linear("x[i] * x[j]", {});
  expect_linear("x[i] * exp(y[i])", {{"x"}});
  expect_linear("x[i] / y[i]", {{"x"}});
}

TEST(Linearity, IsAffineWithAConstantTerm) {
  const Linearity shifted = of("x[i] + 1.0");
  EXPECT_TRUE(shifted.groups.empty());
  EXPECT_EQ(shifted.affine, (Groups{{"x"}}));
  EXPECT_EQ(of("x[i + 1] else 1.0").affine, (Groups{{"x"}}));
  EXPECT_EQ(of("x[i + 1] else 0.0").groups, (Groups{{"x"}}));
}

TEST(Linearity, IsDeclinedWithInfinities) {
  EXPECT_EQ(of("select(mask[i], x[i], -inf)").why, "an infinity is in it");
  EXPECT_EQ(of("x[i] * max(y[i], -inf)").groups, (Groups{{"x"}}));
}

TEST(Linearity, DoesNotMindRoundingButMindsIntegers) {
  expect_linear("f16(x[i])", {{"x"}});
  expect_linear("f32(i64(x[i]))", {});
  expect_linear("f32(n[i]) * x[i]", {{"x"}});
  EXPECT_EQ(of("n[i] + index[i]", "i64").groups, (Groups{{"index", "n"}}));
  EXPECT_TRUE(of("n[i] / 2", "i64").groups.empty());
}

TEST(Linearity, SeesASumAmongTheComponentsOfAFold) {
  const std::string fold =
      "fold(k) { from 0.0, -inf take a[i, k], a[i, k] by left.0 + right.0, max(left.1, right.1) }";
  expect_linear(fold + ".0", {{"a"}});
  expect_linear(fold + ".1", {});
}

Linearity scattered(const std::string& combine) {
  const auto definition = parse_definition(
      fmt::format("define({}) {{ out: f32[i] = x[i] scatter(i) at [index[i]] {} y[i] }}",
                  kOperandText, combine));
  return definition ? linearity(*definition) : Linearity{};
}

TEST(Linearity, OfForwardWritesIsJointInWhatIsThereAndWhatIsWritten) {
  EXPECT_EQ(scattered("add").groups, (Groups{{"x", "y"}}));
  EXPECT_EQ(scattered("set").groups, (Groups{{"x", "y"}}));
  EXPECT_TRUE(scattered("max").groups.empty());
  EXPECT_TRUE(scattered("mul").groups.empty());
}

TEST(Linearity, SaysWhenNothingIsUsed) {
  EXPECT_EQ(of("1.0").why, "it does not depend on an operand");
  EXPECT_EQ(of("0.0 * x[i]").why, "it does not depend on an operand");
}

TEST(Linearity, DeclinesWhatMultipliesOutToTooMuch) {
  std::string product = "1.0";
  for (int i = 0; i < 20; ++i) product += " * (x[i] + y[i] + z[i])";
  EXPECT_EQ(of(product).why, "it multiplies out to too many products");
}

TEST(Linearity, DeclinesTooManyGroups) {
  Definition pairs{.inputs = {}, .outputs = {{.name = "out", .axes = {}, .value = 0.0}}};
  for (int i = 0; i < 10; ++i) {
    const Operand left{"l" + std::to_string(i), DType::F32, {}};
    const Operand right{"r" + std::to_string(i), DType::F32, {}};
    pairs.outputs[0].value = pairs.outputs[0].value + left({}) * right({});
  }
  EXPECT_EQ(linearity(pairs).why, "there are too many groups");
}

TEST(Linearity, OfManyTermsIsFoundAtOnce) {
  Definition all{.inputs = {}, .outputs = {{.name = "out", .axes = {}, .value = 0.0}}};
  for (int i = 0; i < 200; ++i) {
    const Operand term{"x" + std::to_string(i), DType::F32, {}};
    all.outputs[0].value = all.outputs[0].value + term({});
  }
  ASSERT_EQ(linearity(all).groups.size(), 1U);
  EXPECT_EQ(linearity(all).groups[0].size(), 200U);
}

}  // namespace
}  // namespace tessera
