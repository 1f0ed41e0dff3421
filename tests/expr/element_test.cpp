#include "tessera/expr/element.h"

#include "tessera/expr/text.h"
#include "tessera/support/rng.h"
#include "tests/support/element_check.h"

namespace tessera::algebra {
namespace {

Tensor random_tensor_with_ties(DType dtype, std::vector<std::int64_t> shape, Rng& rng) {
  const std::int64_t count = element_count(shape).value();
  Buffer buffer(static_cast<std::size_t>(count * byte_width(dtype)));
  for (std::int64_t i = 0; i < count; ++i) {
    // Ties and zeros are among the numbers; integers are positions in small tensors.
    const double number = dtype == DType::Bool ? static_cast<double>(rng.below(2))
                          : is_integer(dtype)  ? static_cast<double>(rng.below(3))
                                               : 0.25 * (static_cast<double>(rng.below(17)) - 8);
    store_number(dtype, buffer.data(), i, number);
  }
  return {dtype, std::move(shape), std::move(buffer).freeze()};
}

/// A definition, and the shapes of its operands.
struct ElementCase {
  std::string text;
  std::vector<std::vector<std::int64_t>> shapes;
};

bool expect_as_evaluated(const ElementCase& c) {
  SCOPED_TRACE(c.text);
  const auto definition = parse_definition(c.text);
  EXPECT_TRUE(definition) << to_string(definition.error());
  if (!definition) return false;
  Rng rng(7);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < c.shapes.size(); ++i)
    inputs.push_back(random_tensor_with_ties(definition->inputs[i].dtype, c.shapes[i], rng));
  return testing::expect_elements(*definition, 0, inputs);
}

TEST(Element, IsWhatTheDefinitionEvaluatesTo) {
  const std::vector<ElementCase> cases = {
      {"define(x: f32[#n]) { out: f32[n] = x[n] * x[n] - 2.0 / (x[n] * x[n] + 1.0) }", {{5}}},
      {"define(x: f32[#m, #k], y: f32[#k, #n]) { out: f32[m, n] = sum(k) { x[m, k] * y[k, n] } }",
       {{2, 3}, {3, 4}}},
      {"define(x: f32[#n]) { out: f32[i: #n + 3] = x[i - 2] else 0.0 }", {{4}}},
      {"define(x: f32[#n]) { out: f32[i: #n + 3] = x[i - 2] else 7.5 }", {{4}}},
      {"define(x: f32[#m, #n]) { out: f32[i: #m + 2, j: #n + 2] = x[i - 1, j - 1] else x[0, 0] }",
       {{2, 3}}},
      {"define(x: f32[#m, #n]) { out: f32[(m, n)] = x[m, n] }", {{2, 3}}},
      {"define(x: f32[#n]) { out: f32[i: #n] = x[size(#n) - 1 - i] }", {{4}}},
      {"define(x: f32[#n]) { out: f32[i: 2*#n] = x[floor_div(i, 2)] + f32(mod(i, 2)) }", {{3}}},
      {"define(x: f32[#n], y: f32[#m]) { out: f32[i: #n + #m] = select(i < size(#n), x[min(i, "
       "size(#n) - 1)], y[max(i - size(#n), 0)]) }",
       {{3}, {2}}},
      {"define(x: f32[#n]) { out: f32[i: #n] = sum(j: i + 1) { x[j] } }", {{4}}},
      {"define(x: f32[#n]) { out: f32[i: #n] = max_of(j: i + 1) { x[j] } }", {{4}}},
      {"define(x: f32[#n]) { out: f32[i: #n] = min_of(j: #n) { x[j] + x[i] } }", {{4}}},
      {"define(x: f32[#n]) { out: f32[] = max(max_of(j: #n) { -x[j] }, min(x[0], x[1])) }", {{4}}},
      {"define(x: f32[#n]) { out: f32[] = prod(j: #n) { x[j] + 1.5 } }", {{4}}},
      {"define(x: f32[#n]) { out: bool[] = any_of(j: #n) { x[j] > 1.0 } }", {{4}}},
      {"define(x: f32[#n], i: i64[#m]) { out: f32[m] = x[i[m]] }", {{3}, {5}}},
      {"define(x: f32[#n, #k], i: i64[#m]) { out: f32[m, k] = x[select(i[m] < 0, i[m] + size(#n), "
       "i[m]), k] }",
       {{3, 2}, {4}}},
      {"define(x: f32[#n], y: f32[#n]) { out: bool[n] = x[n] < y[n] }", {{9}, {9}}},
      {"define(x: f32[#n], y: f32[#n]) { out: bool[n] = x[n] <= y[n] && !(x[n] == y[n]) || x[n] > "
       "1.0 }",
       {{9}, {9}}},
      {"define(x: bool[#n], y: bool[#n]) { out: bool[n] = xor(x[n], y[n]) || !x[n] && y[n] }",
       {{9}, {9}}},
      {"define(c: bool[#n], x: f32[#n]) { out: f32[n] = select(c[n], exp(x[n]), tanh(x[n])) }",
       {{9}, {9}}},
      {"define(c: bool[#n], x: f32[#n]) { out: f32[n] = exp(select(c[n], x[n], -inf)) }",
       {{9}, {9}}},
      {"define(x: f32[#n]) { out: f32[i: #n + 2] = exp(x[i - 1] else -inf) }", {{3}}},
      {"define(c: bool[#n], x: f32[#n]) { out: f32[] = max_of(n) { select(c[n], x[n], -inf) } }",
       {{9}, {9}}},
      {"define(x: i64[#n]) { out: i64[n] = (x[n] - 5) / 2 }", {{9}}},
      {"define(x: i64[#n]) { out: i64[n] = floor_div(x[n] - 5, 2) * 10 + mod(x[n] - 5, 2) }",
       {{9}}},
      {"define(x: f32[#n]) { out: i64[n] = i64(x[n]) }", {{9}}},
      {"define(x: f32[#n]) { out: bool[n] = bool(x[n]) }", {{9}}},
      {"define(x: i64[#n]) { out: u8[n] = u8(x[n] - 1) }", {{9}}},
      {"define(x: i64[#n]) { out: i64[n] = x[n] + i64(u8(300)) }", {{9}}},
      {"define(x: f32[#n]) { out: f32[n] = floor(x[n]) + round(x[n]) + abs(x[n]) }", {{9}}},
      {"define(x: f32[#n]) { out: f32[n] = sqrt(x[n] * x[n]) + pow(x[n], 3.0) + pow(2.0, x[n]) }",
       {{9}}},
      {"define(x: f32[#n]) { out: f32[n] = log(exp(x[n]) * exp(2.0)) + log(1.0 + x[n]*x[n]) }",
       {{9}}},
      {"define(x: f32[#n]) { out: f32[n] = sin(-x[n]) + cos(-x[n]) + atan(-x[n]) + erf(-x[n]) }",
       {{9}}},
      {"define(x: f32[#n]) { out: f32[n] = exp(x[n] - max_of(k: #n) { x[k] }) / sum(j: #n) { "
       "exp(x[j]) } }",
       {{4}}},
      {"define(x: f32[#n]) { out: i64[] = fold(k: #n) { from -inf, 0 take x[k], k by max(left.0, "
       "right.0), select(left.0 < right.0, right.1, left.1) }.1 }",
       {{6}}},
      {"define(x: f32[#n]) { out: f32[] = fold(k: #n) { from 0.0 take x[k] by right.0 - left.0 } }",
       {{5}}},
      {"define(x: f32[#n]) { out: i64[i: #n] = i * size(#n) + 1 }", {{4}}},
      {"define(x: f32[#n]) { out: f32[i: #n - 3] = max(max_of(k: i) { 2.0 }, 1.0) }", {{6}}},
  };
  for (const ElementCase& c : cases) {
    EXPECT_TRUE(expect_as_evaluated(c)) << c.text;
  }
}

TEST(Element, WhatIsWrittenForwardHasNone) {
  EXPECT_FALSE(
      expect_as_evaluated({"define(x: f32[#n], i: i64[#m], u: f32[#m]) { out: f32[n] = x[n] "
                           "scatter(m) at [i[m]] add u[m] }",
                           {{3}, {4}, {4}}}));
}

}  // namespace
}  // namespace tessera::algebra
