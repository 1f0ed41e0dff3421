#include <cmath>
#include <functional>
#include <numbers>

#include <gtest/gtest.h>

#include "tests/support/evaluate.h"

namespace tessera {
namespace {

using testing::evaluate;
using testing::expect_near;
using testing::f32;
using testing::numbers;
using testing::tensor;
using testing::try_evaluate;

struct ActivationCase {
  const char* op;
  Attrs attrs;
  std::function<double(double)> expected;
};

double logistic(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
double softplus(double x) {
  return x > 30 ? x : std::log1p(std::exp(x));
}
double normal(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}
double within(double x, double low, double high) {
  return std::fmin(std::fmax(x, low), high);
}

TEST(Activation, IsItsFormulaAtEachElement) {
  const ActivationCase cases[] = {
      {"sigmoid", {}, logistic},
      {"softplus", {}, softplus},
      {"softsign", {}, [](double x) { return x / (1 + std::fabs(x)); }},
      {"mish", {}, [](double x) { return x * std::tanh(softplus(x)); }},
      {"swish", {}, [](double x) { return x * logistic(x); }},
      {"swish", {{"alpha", 1.5}}, [](double x) { return x * logistic(1.5 * x); }},
      {"elu", {}, [](double x) { return x > 0 ? x : std::expm1(x); }},
      {"elu", {{"alpha", 2.0}}, [](double x) { return x > 0 ? x : 2 * std::expm1(x); }},
      {"selu", {}, [](double x) { return 1.0507010 * (x > 0 ? x : 1.6732632 * std::expm1(x)); }},
      {"selu",
       {{"alpha", 2.0}, {"gamma", 3.0}},
       [](double x) { return 3 * (x > 0 ? x : 2 * std::expm1(x)); }},
      {"celu", {{"alpha", 2.0}}, [](double x) { return x > 0 ? x : 2 * std::expm1(x / 2); }},
      {"leaky_relu", {}, [](double x) { return x > 0 ? x : 0.01 * x; }},
      {"leaky_relu", {{"alpha", 0.1}}, [](double x) { return x > 0 ? x : 0.1 * x; }},
      {"thresholded_relu", {}, [](double x) { return x > 1 ? x : 0; }},
      {"thresholded_relu", {{"alpha", 2.0}}, [](double x) { return x > 2 ? x : 0; }},
      {"hard_sigmoid", {}, [](double x) { return within(0.2 * x + 0.5, 0, 1); }},
      {"hard_sigmoid",
       {{"alpha", 0.5}, {"beta", 0.6}},
       [](double x) { return within(0.5 * x + 0.6, 0, 1); }},
      {"hard_swish", {}, [](double x) { return x * within(x + 3, 0, 6) / 6; }},
      {"gelu", {}, [](double x) { return x * normal(x); }},
      {"gelu",
       {{"approximate", "tanh"}},
       [](double x) {
         return x / 2 *
                (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * std::pow(x, 3))));
       }},
      {"shrink", {}, [](double x) { return std::fabs(x) > 0.5 ? x : 0; }},
      {"shrink",
       {{"lambd", 1.5}, {"bias", 1.0}},
       [](double x) { return std::fabs(x) > 1.5 ? x - std::copysign(1.0, x) : 0; }},
  };
  const std::vector<double> points = {-200, -90.5, -4, -2.5, -1.5, -0.3, 0,
                                      0.4,  1,     2,  3.7,  90.5, 200};
  for (const ActivationCase& c : cases) {
    SCOPED_TRACE(c.op);
    std::vector<double> expected;
    for (const double x : points) expected.push_back(c.expected(x));
    const auto out = evaluate(c.op, c.attrs, {f32({13}, points)});
    ASSERT_EQ(out.size(), 1u);
    expect_near(out[0], f32({13}, expected), 1e-6);
  }
}

TEST(Activation, ShrinkKeepsIntegers) {
  const auto out = evaluate("shrink", {{"lambd", 1.9}, {"bias", 1.0}},
                            {tensor(DType::I32, {5}, {-3, -1, 0, 1, 2})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].dtype, DType::I32);
  EXPECT_EQ(numbers(out[0]), (std::vector<double>{-2, 0, 0, 0, 1}));
}

TEST(Activation, PreluHasASlopeForEachChannel) {
  const auto out = evaluate(
      "prelu", {}, {f32({2, 2, 2}, {-1, 2, -3, 4, -5, 6, -7, -8}), f32({2, 1}, {0.5, 0.25})});
  ASSERT_EQ(out.size(), 1u);
  expect_near(out[0], f32({2, 2, 2}, {-0.5, 2, -0.75, 4, -2.5, 6, -1.75, -2}));
}

TEST(Activation, PreluRefusesASlopeThatIsLargerThanX) {
  EXPECT_FALSE(try_evaluate("prelu", {}, {f32({2}, {1, 2}), f32({2, 2}, {1, 2, 3, 4})}));
}

TEST(Activation, RefusesIntegers) {
  EXPECT_FALSE(try_evaluate("sigmoid", {}, {tensor(DType::I32, {1}, {1})}));
}

TEST(Activation, GeluKnowsTwoForms) {
  EXPECT_FALSE(try_evaluate("gelu", {{"approximate", "cubic"}}, {f32({1}, {1})}));
}

TEST(Swiglu, MultipliesWithTheGatesSwish) {
  const std::vector<Tensor> out =
      evaluate("swiglu", {{"alpha", 2.0}}, {f32({3}, {0, 0.5, -100}), f32({3}, {7, 2, 3})});
  expect_near(out.at(0), f32({3}, {0, 0.7310586, 0}));
  EXPECT_FALSE(try_evaluate("swiglu", {}, {f32({2}, {1, 2}), f32({1}, {1})}));
}

}  // namespace
}  // namespace tessera
