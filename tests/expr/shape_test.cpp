#include "tessera/expr/shape.h"

#include <gtest/gtest.h>

#include "tessera/expr/text.h"
#include "tests/expr/examples.h"

namespace tessera {
namespace {

Shape shape(const std::vector<std::string>& dims) {
  Shape result;
  for (const std::string& dim : dims) result.push_back(*parse_dim(dim));
  return result;
}

/// The shapes of the outputs, or what is wrong.
std::string inferred(const std::string& definition, const std::vector<Shape>& inputs) {
  const Expected<Definition> parsed = parse_definition(definition);
  if (!parsed) return to_string(parsed.error());
  const Expected<Sizes> sizes = solve_sizes(*parsed, inputs);
  if (!sizes) return to_string(sizes.error());
  const Expected<std::vector<TensorType>> types = output_types(*parsed, *sizes);
  if (!types) return to_string(types.error());
  std::string text;
  for (const TensorType& type : *types) {
    text += (text.empty() ? "" : " ") + std::string(to_string(type.dtype)) + "[";
    for (std::size_t i = 0; i < type.shape.size(); ++i)
      text += (i == 0 ? "" : ", ") + type.shape[i].to_string();
    text += "]";
  }
  return text;
}

constexpr const char* kConv =
    "define(image: f32[#n, 2*#c, #h], weight: f32[2*#f, #c, #r]) {"
    "  out: f32[n, (g: 2, f), y: floor_div(#h + 2 - #r, 2) + 1] ="
    "    sum(c, r) { (image[n, g * #c + c, y * 2 + r - 1] else 0.0) * weight[g * #f + f, c, r] } }";

TEST(Shape, FollowsFromTheOperands) {
  EXPECT_EQ(inferred(kMatmul, {shape({"2", "3"}), shape({"3", "4"})}), "f32[2, 4]");
  EXPECT_EQ(inferred(kConv, {shape({"1", "6", "8"}), shape({"4", "3", "3"})}), "f32[1, 4, 4]");
}

TEST(Shape, KeepsSymbols) {
  EXPECT_EQ(inferred(kMatmul, {shape({"batch", "3"}), shape({"3", "2*m"})}), "f32[batch, 2*m]");
  EXPECT_EQ(inferred(kConv, {shape({"n", "6", "2*h"}), shape({"4", "3", "2"})}),
            "f32[n, 4, h + 1]");
}

TEST(Shape, TakesTheNumberWhereANumberAndASymbolMeet) {
  EXPECT_EQ(inferred("define(x: f32[#i], y: f32[#i]) { out: f32[i] = x[i] + y[i] }",
                     {shape({"n"}), shape({"3"})}),
            "f32[3]");
}

TEST(Shape, OfSeveralOutputsIsAList) {
  EXPECT_EQ(inferred("define(x: f32[#i, 4]) { left: f32[i, j: 1] = x[i, j]"
                     "  right: i64[i, j: 3] = i64(x[i, j + 1]) }",
                     {shape({"5", "4"})}),
            "f32[5, 1] i64[5, 3]");
}

TEST(Shape, ReportsSizesThatDoNotFit) {
  EXPECT_EQ(inferred(kMatmul, {shape({"2", "3"}), shape({"5", "4"})}),
            "error[shape-mismatch]: axis 0 of b has size 5\n  note: the other operands require 3");
  EXPECT_EQ(inferred(kConv, {shape({"1", "7", "8"}), shape({"4", "3", "3"})}),
            "error[shape-mismatch]: axis 1 of image has size 7\n"
            "  note: the other operands require 2*#c");
  EXPECT_EQ(inferred(kMatmul, {shape({"2", "3", "4"}), shape({"3", "4"})}),
            "error[shape-rank]: a has 3 axes\n  note: 2 are expected");
}

TEST(Shape, ReportsNegativeAndOverflowingSizes) {
  EXPECT_EQ(inferred("define(x: f32[#i]) { out: f32[j: #i - 4] = x[j] }", {shape({"1"})}),
            "error[shape-negative]: out would have size -3");
  EXPECT_EQ(
      inferred("define(x: f32[#i]) { out: f32[j: #i*#i] = 0.0 }", {shape({"9223372036854775807"})}),
      "error[shape-negative]: out would have size beyond 64 bits");
}

}  // namespace
}  // namespace tessera
