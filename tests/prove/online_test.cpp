#include <gtest/gtest.h>

#include "tessera/certify/check.h"
#include "tessera/expr/text.h"
#include "tessera/prove/prove.h"

namespace tessera::prove {
namespace {

/// Two definitions over the same operands, whose sizes are called as their axes are.
certify::Claim definition_claim(const std::string& one, const std::string& other) {
  certify::Claim claim;
  std::vector<std::string> operands;
  const auto first = parse_definition(one), second = parse_definition(other);
  EXPECT_TRUE(first && second);
  for (const Operand& operand : first->inputs) {
    certify::Input input{operand.name, {operand.dtype, {}}};
    for (const Dim& size : operand.shape)
      input.type.shape.push_back(Dim::symbol(std::string(size.as_symbol()->substr(1))));
    claim.inputs.push_back(std::move(input));
    operands.push_back(operand.name);
  }
  claim.values = {{"a", std::make_shared<const Definition>(*first), 0, operands},
                  {"b", std::make_shared<const Definition>(*second), 0, operands}};
  claim.pairs = {{"a", "b"}};
  return claim;
}

void expect_claim_proved(const std::string& one, const std::string& other) {
  std::string why;
  const auto certificate = prove_claim(definition_claim(one, other), {}, why);
  ASSERT_TRUE(certificate.has_value()) << why;
  EXPECT_TRUE(certify::check(*certificate));
}

void expect_claim_not_proved(const std::string& one, const std::string& other) {
  std::string why;
  EXPECT_FALSE(prove_claim(definition_claim(one, other), {}, why).has_value());
}

const std::string kRescale =
    "left.1*exp(left.0 - max(left.0, right.0)) + right.1*exp(right.0 - max(left.0, right.0))";
const std::string kOnePass =
    "fold(k: #n) { from -inf, 0.0 take x[m, k], 1.0 by max(left.0, right.0), " + kRescale + " }";
const std::string kLargest = "(max_of(k: #n) { x[m, k] })";
const std::string kTwoPass = "(sum(j: #n) { exp(x[m, j] - " + kLargest + ") })";
const std::string kDefineOverMatrix = "define(x: f32[#m, #n]) { ";

TEST(OnlineSoftmax, TheNormalizerInOnePassIsThatOfTwo) {
  expect_claim_proved(kDefineOverMatrix + "out: f32[m] = " + kOnePass + ".1 }",
                      kDefineOverMatrix + "out: f32[m] = " + kTwoPass + " }");
}

TEST(OnlineSoftmax, InOnePassIsThatOfTwo) {
  expect_claim_proved(
      kDefineOverMatrix + "let (%0, %1) = " + kOnePass +
          " out: f32[m, n] = exp(x[m, n] - %0) / %1 }",
      kDefineOverMatrix + "out: f32[m, n] = exp(x[m, n] - " + kLargest + ") / " + kTwoPass + " }");
}

TEST(OnlineSoftmax, CarriesTheProductWithTheValuesAlong) {
  const std::string inputs = "define(x: f32[#m, #n], v: f32[#n, #d]) { ";
  const std::string weighted =
      "left.2*exp(left.0 - max(left.0, right.0)) + right.2*exp(right.0 - max(left.0, right.0))";
  expect_claim_proved(inputs +
                          "let (%0, %1, %2) = fold(k: #n) { from -inf, 0.0, 0.0 take x[m, k], 1.0, "
                          "v[k, d] by max(left.0, right.0), " +
                          kRescale + ", " + weighted + " } out: f32[m, d] = %2 / %1 }",
                      inputs + "out: f32[m, d] = sum(l: #n) { v[l, d] * exp(x[m, l] - " + kLargest +
                          ") / " + kTwoPass + " } }");
}

TEST(OnlineSoftmax, IsAnotherWithoutRescaling) {
  expect_claim_not_proved(kDefineOverMatrix +
                              "out: f32[m] = fold(k: #n) { from -inf, 0.0 take x[m, k], 1.0 by "
                              "max(left.0, right.0), left.1 + right.1*exp(right.0 - max(left.0, "
                              "right.0)) }.1 }",
                          kDefineOverMatrix + "out: f32[m] = " + kTwoPass + " }");
}

}  // namespace
}  // namespace tessera::prove
