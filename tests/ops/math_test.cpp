#include <cmath>

#include <functional>

#include <gtest/gtest.h>

#include "tests/ops/expect_op.h"

namespace tessera {
namespace {

using testing::evaluate;
using testing::expect_op;
using testing::f32;
using testing::f64;
using testing::i64;
using testing::numbers;
using testing::try_evaluate;

struct MathCase {
  const char* op;
  std::function<double(double)> expected;
  std::vector<double> at;
};

TEST(Math, AgreesWithTheFunctionsOfTheLibrary) {
  const std::vector<double> wide = {-700, -20, -3.7, -1, -0.5, -1e-9, 0,  1e-9,
                                    1e-3, 0.5, 0.99, 1,  2.5,  20,    700};
  const std::vector<double> positive = {1e-300, 1e-9, 0.5, 1, 2.5, 1e9, 1e300};
  const std::vector<double> unit = {-1, -0.999999999, -0.5, -1e-9, 0, 1e-9, 0.3, 0.999999999, 1};
  const MathCase cases[] = {
      {"sqrt", [](double x) { return std::sqrt(x); }, positive},
      {"exp", [](double x) { return std::exp(x); }, wide},
      {"log", [](double x) { return std::log(x); }, positive},
      {"sin", [](double x) { return std::sin(x); }, wide},
      {"cos", [](double x) { return std::cos(x); }, wide},
      {"tan", [](double x) { return std::tan(x); }, wide},
      {"asin", [](double x) { return std::asin(x); }, unit},
      {"acos", [](double x) { return std::acos(x); }, unit},
      {"atan", [](double x) { return std::atan(x); }, wide},
      {"sinh", [](double x) { return std::sinh(x); }, wide},
      {"cosh", [](double x) { return std::cosh(x); }, wide},
      {"tanh", [](double x) { return std::tanh(x); }, wide},
      {"asinh", [](double x) { return std::asinh(x); }, wide},
      {"asinh", [](double x) { return std::asinh(x); }, positive},
      {"acosh",
       [](double x) { return std::acosh(x); },
       {1, 1 + 1e-12, 1.5, 7, 1e9, 2e9, 1e300, 0.5, -0.5, -1, -1.5, -4102.5, -1e9, -1e300}},
      {"atanh", [](double x) { return std::atanh(x); }, unit},
      {"erf", [](double x) { return std::erf(x); }, wide},
      {"floor", [](double x) { return std::floor(x); }, wide},
      {"ceil", [](double x) { return std::ceil(x); }, wide},
      {"reciprocal", [](double x) { return 1 / x; }, positive},
  };
  for (const MathCase& c : cases) {
    SCOPED_TRACE(c.op);
    const auto count = static_cast<std::int64_t>(c.at.size());
    const std::vector<double> out = numbers(evaluate(c.op, {}, {f64({count}, c.at)}).at(0));
    for (std::size_t i = 0; i < c.at.size(); ++i) {
      const double expected = c.expected(c.at[i]);
      SCOPED_TRACE(c.at[i]);
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(out[i]));
      else if (std::isinf(expected))
        EXPECT_EQ(out[i], expected);
      else
        EXPECT_NEAR(out[i], expected, 1e-12 * std::abs(expected));
    }
  }
}

TEST(Math, RoundsTiesToEven) {
  expect_op({"round",
             {},
             {f32({6}, {0.5, 1.5, 2.5, -0.5, -2.5, 2.6})},
             {f32({6}, {0, 2, 2, -0.0, -2, 3})}});
}

TEST(Math, RefusesIntegers) {
  EXPECT_FALSE(try_evaluate("exp", {}, {i64({1}, {1})}));
}

}  // namespace
}  // namespace tessera
