#include <cmath>
#include <cstring>

#include "tests/runtime/host/call.h"

namespace tessera::host {
namespace {

Attrs uniform(Ints shape, double low = 0, double high = 1) {
  return {{"shape", std::move(shape)}, {"dtype", std::string("f32")}, {"low", low}, {"high", high}};
}
Attrs normal(double mean, double scale) {
  return {{"mean", mean}, {"scale", scale}};
}

Attrs seeded(Attrs attrs, double seed) {
  attrs.set("seed", seed);
  return attrs;
}

std::vector<double> drawn(const Request& request) {
  const Tensor tensor = results_of(request).front().tensor();
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.count(); ++i) values.push_back(number_at(tensor, i));
  return values;
}

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments(const std::vector<double>& values) {
  Moments out;
  for (const double value : values) out.mean += value / static_cast<double>(values.size());
  for (const double value : values)
    out.deviation += (value - out.mean) * (value - out.mean) / static_cast<double>(values.size());
  out.deviation = std::sqrt(out.deviation);
  return out;
}

TEST(Random, IsTheSameForTheSameSeed) {
  EXPECT_EQ(drawn({"random_uniform", {}, uniform({9})}),
            drawn({"random_uniform", {}, uniform({9})}));
  EXPECT_EQ(drawn({"random_uniform", {}, seeded(uniform({9}), 1.5)}),
            drawn({"random_uniform", {}, seeded(uniform({9}), 1.5)}));
  EXPECT_NE(drawn({"random_uniform", {}, seeded(uniform({9}), 1.5)}),
            drawn({"random_uniform", {}, seeded(uniform({9}), 2.5)}));
}

TEST(Random, UniformNumbersFillTheirInterval) {
  const auto values = drawn({"random_uniform", {}, uniform({100, 100}, -2, 4)});
  for (const double value : values) {
    ASSERT_GE(value, -2);
    ASSERT_LE(value, 4);
  }
  EXPECT_NEAR(moments(values).mean, 1, 0.1);
  EXPECT_NEAR(moments(values).deviation, 6 / std::sqrt(12), 0.1);
}

TEST(Random, NormalNumbersHaveTheirMoments) {
  const Tensor like = floats({10'000}, std::vector<float>(10'000));
  const auto values = drawn({"random_normal_like", {like}, normal(3, 2)});
  EXPECT_NEAR(moments(values).mean, 3, 0.1);
  EXPECT_NEAR(moments(values).deviation, 2, 0.1);
}

TEST(Random, TakesShapeAndDtypeFromItsInput) {
  const Tensor like = numbers(DType::F16, {2, 3}, {0, 0, 0, 0, 0, 0});
  const Tensor same = results_of({"random_uniform_like", {like}, uniform({})}).front().tensor();
  EXPECT_EQ(same.dtype, DType::F32);  // the attribute goes first
  EXPECT_EQ(same.shape, like.shape);
  EXPECT_EQ(results_of({"random_normal_like", {like}, normal(0, 1)}).front().tensor().dtype,
            DType::F16);
}

TEST(Random, RefusesBadInput) {
  Attrs integer = uniform({1});
  integer.set("dtype", std::string("i32"));
  expect_refused({"random_uniform", {}, integer}, "dtype=i32");
  expect_refused({"random_uniform", {}, uniform({-1})}, "a tensor of shape [-1] is impossible");
  expect_too_large({"random_uniform", {}, uniform({1 << 20, 1 << 20})},
                   "1099511627776 elements of 4 bytes");
  expect_refused({"random_normal_like", {scalar(1)}, normal(0, 1)}, "dtype=i64");
}

TEST(Bernoulli, DrawsOnesAsOftenAsAsked) {
  const Tensor chances = floats({10'000}, std::vector<float>(10'000, 0.3f));
  const auto values = drawn({"bernoulli", {chances}, {{"dtype", std::string("bool")}}});
  EXPECT_NEAR(moments(values).mean, 0.3, 0.02);
  expect_result({"bernoulli", {floats({4}, {0, 1, 0, 1})}}, floats({4}, {0, 1, 0, 1}));
}

TEST(Bernoulli, RefusesBadInput) {
  expect_refused({"bernoulli", {floats({1}, {1.5f})}}, "1.5 is no probability");
  expect_refused({"bernoulli", {floats({1}, {std::nanf("")})}}, "nan is no probability");
  expect_refused({"bernoulli", {floats({1}, {1})}, {{"dtype", std::string("string")}}},
                 "dtype=string");
}

Attrs samples(std::int64_t size) {
  return {{"sample_size", size}, {"dtype", std::string("i64")}};
}

TEST(Multinomial, DrawsClassesByTheirProbability) {
  const Tensor logits = floats({2, 3}, {std::log(0.2f), std::log(0.5f), std::log(0.3f),  //
                                        -INFINITY, 1000, -INFINITY});
  const Request request{"multinomial", {logits}, samples(10'000)};
  const auto values = drawn(request);
  std::vector<double> share(3);
  for (std::size_t i = 0; i < 10'000; ++i) share[static_cast<std::size_t>(values[i])] += 1e-4;
  EXPECT_NEAR(share[0], 0.2, 0.02);
  EXPECT_NEAR(share[1], 0.5, 0.02);
  EXPECT_NEAR(share[2], 0.3, 0.02);
  for (std::size_t i = 10'000; i < 20'000; ++i) ASSERT_EQ(values[i], 1);
  EXPECT_EQ(results_of(request).front().tensor().shape, (std::vector<std::int64_t>{2, 10'000}));
}

TEST(Multinomial, RefusesBadInput) {
  expect_refused({"multinomial", {floats({1}, {1})}, samples(1)}, "shape [1]");
  expect_refused({"multinomial", {floats({1, 0}, {})}, samples(1)},
                 "there are no classes to choose from");
  expect_refused({"multinomial", {floats({1, 1}, {1})}, samples(0)}, "sample_size=0");
  expect_refused({"multinomial", {floats({1, 2}, {-INFINITY, -INFINITY})}, samples(1)},
                 "row 0 is no distribution of log-probabilities");
  expect_refused({"multinomial", {floats({1, 2}, {0, std::nanf("")})}, samples(1)},
                 "row 0 is no distribution of log-probabilities");
}

}  // namespace
}  // namespace tessera::host
