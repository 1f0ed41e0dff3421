#include "tessera/expr/eval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "tessera/expr/text.h"
#include "tessera/support/cpu_time.h"
#include "tessera/support/rng.h"
#include "tessera/support/tensor.h"
#include "tests/expr/examples.h"

namespace tessera {
namespace {

// --- An independent evaluator: walks the expression anew for every element.
// -----------------------

struct Naive {
  std::map<std::string, const Tensor*> operands;
  const Sizes& sizes;
  std::map<std::string, std::int64_t> at = {};  // positions of axes
  std::vector<double> left = {}, right = {};
  bool failed = false;

  double eval(const Scalar& s) {
    return std::visit([&](const auto& n) { return (*this)(n); }, s.node());
  }
  std::int64_t integer(const Scalar& s) { return static_cast<std::int64_t>(eval(s)); }
  std::int64_t number(const Dim& dim) { return resolved(dim, sizes).constant().value(); }

  double operator()(const node::Constant& n) {
    return n.sort == Sort::Value ? n.number : static_cast<double>(n.integer);
  }
  double operator()(const node::Index& n) { return static_cast<double>(at.at(n.axis)); }
  double operator()(const node::Size& n) { return static_cast<double>(number(n.dim)); }
  double operator()(const node::Read& n) {
    const Tensor& tensor = *operands.at(n.operand);
    std::int64_t position = 0;
    for (std::size_t i = 0; i < n.at.size(); ++i) {
      const std::int64_t index = integer(n.at[i]);
      if (index < 0 || index >= tensor.shape[i]) {
        if (n.otherwise != nullptr) return eval(*n.otherwise);
        failed = true;
        return 0;
      }
      position = position * tensor.shape[i] + index;
    }
    return number_at(tensor, position);
  }
  double operator()(const node::Apply& n) {
    std::vector<double> a;
    bool whole = true;
    for (const Scalar& arg : n.args) {
      a.push_back(eval(arg));
      whole = whole && arg.sort() != Sort::Value;
    }
    switch (n.fn) {
      case Fn::Neg: return -a[0];
      case Fn::Abs: return std::fabs(a[0]);
      case Fn::Exp: return std::exp(a[0]);
      case Fn::Log: return std::log(a[0]);
      case Fn::Sqrt: return std::sqrt(a[0]);
      case Fn::Sin: return std::sin(a[0]);
      case Fn::Cos: return std::cos(a[0]);
      case Fn::Atan: return std::atan(a[0]);
      case Fn::Tanh: return std::tanh(a[0]);
      case Fn::Erf: return std::erf(a[0]);
      case Fn::Floor: return std::floor(a[0]);
      case Fn::Round: return std::nearbyint(a[0]);
      case Fn::Not: return a[0] == 0 ? 1 : 0;
      case Fn::Add: return a[0] + a[1];
      case Fn::Sub: return a[0] - a[1];
      case Fn::Mul: return a[0] * a[1];
      case Fn::Div: return whole ? std::trunc(a[0] / a[1]) : a[0] / a[1];
      case Fn::FloorDiv: return std::floor(a[0] / a[1]);
      case Fn::Mod: return a[0] - std::floor(a[0] / a[1]) * a[1];
      case Fn::Pow: return std::pow(a[0], a[1]);
      case Fn::Max: return std::max(a[0], a[1]);
      case Fn::Min: return std::min(a[0], a[1]);
      case Fn::Equal: return a[0] == a[1] ? 1 : 0;
      case Fn::Less: return a[0] < a[1] ? 1 : 0;
      case Fn::LessEqual: return a[0] <= a[1] ? 1 : 0;
      case Fn::And: return a[0] != 0 && a[1] != 0 ? 1 : 0;
      case Fn::Or: return a[0] != 0 || a[1] != 0 ? 1 : 0;
      case Fn::Xor: return (a[0] != 0) != (a[1] != 0) ? 1 : 0;
      case Fn::ShiftLeft: return a[0] * std::pow(2, a[1]);
      case Fn::ShiftRight: return std::floor(a[0] / std::pow(2, a[1]));
      case Fn::Select: return a[0] != 0 ? a[1] : a[2];
    }
    return 0;
  }
  double operator()(const node::Cast& n) {
    Buffer one(8);
    store_number(n.to, one.data(), 0, eval(*n.arg));
    return number_at(Tensor{n.to, {}, std::move(one).freeze()}, 0);
  }
  double operator()(const node::Partial& n) {
    return (n.side == node::Partial::Side::Left ? left
                                                : right)[static_cast<std::size_t>(n.component)];
  }
  double operator()(const node::Component& n) {
    std::vector<double> sums;
    for (const Scalar& init : n.fold->init) sums.push_back(eval(init));
    run(*n.fold, 0, sums);
    return sums[static_cast<std::size_t>(n.index)];
  }
  void run(const Fold& fold, std::size_t depth, std::vector<double>& sums) {
    if (depth == fold.bounds.size()) {
      std::vector<double> lifted;
      for (const Scalar& lift : fold.lift) lifted.push_back(eval(lift));
      const auto saved = std::pair(left, right);
      left = sums;
      right = lifted;
      std::vector<double> combined;
      for (const Scalar& combine : fold.combine) combined.push_back(eval(combine));
      std::tie(left, right) = saved;
      sums = combined;
      return;
    }
    const std::int64_t extent = integer(fold.bounds[depth].extent);
    for (std::int64_t i = 0; i < extent; ++i) {
      at[fold.bounds[depth].axis] = i;
      run(fold, depth + 1, sums);
    }
  }

  std::vector<double> output(const Output& output) {
    std::vector<Axis> axes;
    for (const MergedAxis& merged : output.axes)
      for (const Axis& part : merged.parts) axes.push_back(part);
    std::vector<double> result;
    const std::function<void(std::size_t)> step = [&](std::size_t depth) {
      if (depth == axes.size()) {
        result.push_back(eval(output.value));
        return;
      }
      for (std::int64_t i = 0; i < number(axes[depth].size()); ++i) {
        at[axes[depth].name] = i;
        step(depth + 1);
      }
    };
    step(0);
    return result;
  }
};

// --- Checks
// ------------------------------------------------------------------------------------------

Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape, Rng& rng) {
  const std::int64_t count = element_count(shape).value();
  Buffer buffer(static_cast<std::size_t>(count * byte_width(dtype)));
  for (std::int64_t i = 0; i < count; ++i)
    store_number(dtype, buffer.data(), i,
                 is_float(dtype) ? 2 * rng.uniform() - 1 : static_cast<double>(rng.below(4)));
  return {dtype, shape, std::move(buffer).freeze()};
}

struct Evaluated {
  Definition definition;
  Sizes sizes;
  std::vector<Tensor> inputs;
  Expected<Done> done = Done{};
  std::vector<double> numbers = {};
};

struct Run {
  int threads = 1;
  std::size_t offset = 0;  // of the operands in memory, in bytes
};

template <class T = double>
Evaluated evaluate(const std::string& text, const std::vector<std::vector<std::int64_t>>& shapes,
                   const Run& run = {}) {
  Evaluated result;
  auto definition = parse_definition(text);
  EXPECT_TRUE(definition) << to_string(definition.error());
  result.definition = *definition;
  std::vector<Shape> dims;
  Rng rng(7);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    dims.emplace_back(shapes[i].begin(), shapes[i].end());
    result.inputs.push_back(random_tensor(definition->inputs[i].dtype, shapes[i], rng));
  }
  result.sizes = *solve_sizes(*definition, dims);
  const auto types = *output_types(*definition, result.sizes);
  std::vector<std::int64_t> shape;
  for (const Dim& dim : types[0].shape) shape.push_back(*dim.constant());
  const std::int64_t count = element_count(shape).value();
  Buffer buffer(static_cast<std::size_t>(count * byte_width(types[0].dtype)));
  std::vector<ConstArray> arrays;
  std::vector<std::vector<std::byte>> moved;
  for (const Tensor& input : result.inputs) {
    const auto bytes = input.bytes.view();
    std::vector<std::byte>& copy = moved.emplace_back(run.offset + bytes.size());
    std::ranges::copy(bytes, copy.begin() + static_cast<std::ptrdiff_t>(run.offset));
    arrays.push_back({input.dtype, copy.data() + run.offset});
  }
  const MutableArray into{types[0].dtype, buffer.data()};
  result.done =
      eval<T>(*definition, result.sizes, arrays, std::span(&into, 1), {.threads = run.threads});
  const Tensor out{types[0].dtype, shape, std::move(buffer).freeze()};
  for (std::int64_t i = 0; i < count; ++i) result.numbers.push_back(number_at(out, i));
  return result;
}

void expect_as_naive(const std::string& text, const std::vector<std::vector<std::int64_t>>& shapes,
                     std::size_t offset = 0) {
  SCOPED_TRACE(text);
  const Evaluated fast = evaluate(text, shapes, {.threads = 2, .offset = offset});
  ASSERT_TRUE(fast.done) << to_string(fast.done.error());
  Naive naive{.operands = {}, .sizes = fast.sizes};
  for (std::size_t i = 0; i < fast.inputs.size(); ++i)
    naive.operands[fast.definition.inputs[i].name] = &fast.inputs[i];
  const std::vector<double> expected = naive.output(fast.definition.outputs[0]);
  ASSERT_FALSE(naive.failed);
  ASSERT_EQ(fast.numbers.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(fast.numbers[i], expected[i], 1e-5 * std::max(1.0, std::fabs(expected[i]))) << i;
}

TEST(Eval, MultipliesMatricesOfAnySize) {
  for (const std::int64_t size : {1, 2, 3, 7, 33, 70})
    expect_as_naive(kMatmul, {{size, size + 1}, {size + 1, size + 2}});
  expect_as_naive(kMatmul, {{1, 100}, {100, 1}});
  expect_as_naive(kMatmul, {{2, 3}, {3, 1030}});
  expect_as_naive(kMatmul, {{3, 0}, {0, 2}});
}

TEST(Eval, MultipliesMatricesInBlocksOfSeveralRows) {
  std::string wide = kMatmul;
  for (std::size_t at = 0; (at = wide.find("f32", at)) != std::string::npos;)
    wide.replace(at, 3, "f64");
  for (const std::string& matmul : {std::string(kMatmul), wide}) {
    // Neither rows nor columns are whole blocks; sums end in steps that are no whole group.
    expect_as_naive(matmul, {{13, 67}, {67, 203}});
    expect_as_naive(matmul, {{9, 64}, {64, 65}});
    expect_as_naive(matmul, {{8, 64}, {64, 64}});
    expect_as_naive(matmul, {{2, 71}, {71, 130}});
    expect_as_naive(matmul, {{1, 71}, {71, 130}});
  }
  const char* const batched =
      "define(a: f32[#b, #m, #k], b: f32[#b, #k, #n]) {"
      "  out: f32[b, m, n] = sum(k) a[b, m, k] * b[b, k, n] }";
  expect_as_naive(batched, {{3, 11, 66}, {3, 66, 77}});
  expect_as_naive(batched, {{3, 11, 66}, {3, 66, 7}});
}

TEST(Eval, AddsShortRowsInOrder) {
  constexpr std::int64_t kRows = 9, kTerms = 19;
  for (const std::int64_t columns : {4, 5, 6, 7, 8, 9, 15, 17}) {
    const Evaluated fast = evaluate<float>(kMatmul, {{kRows, kTerms}, {kTerms, columns}});
    ASSERT_TRUE(fast.done) << to_string(fast.done.error());
    const auto a = fast.inputs[0].as<float>(), b = fast.inputs[1].as<float>();
    for (std::int64_t row = 0; row < kRows; ++row)
      for (std::int64_t column = 0; column < columns; ++column) {
        float sum = 0;
        for (std::int64_t k = 0; k < kTerms; ++k) {
          const float product = a[static_cast<std::size_t>(row * kTerms + k)] *
                                b[static_cast<std::size_t>(k * columns + column)];
          sum += product;
        }
        const auto at = static_cast<std::size_t>(row * columns + column);
        ASSERT_EQ(fast.numbers[at], sum) << columns << " columns, element " << at;
      }
  }
}

TEST(Eval, SumsOverPaddingStridesAndMergedAxes) {
  const char* const conv =
      "define(x: f32[#n, 2*#c, #h, #w], k: f32[2*#f, #c, #r, #s]) {"
      "  out: f32[n, (g: 2, f), y: floor_div(#h + 2 - #r, 2) + 1, z: #w - #s + 3] ="
      "    sum(c, r, s) (x[n, g*size(#c) + c, y*2 + r - 1, z + s - 1] else 0.0) * k[g*size(#f) + "
      "f, c, r, s] }";
  expect_as_naive(conv, {{1, 4, 9, 8}, {6, 2, 3, 3}});
  expect_as_naive(conv, {{2, 2, 5, 40}, {2, 1, 2, 5}});
  expect_as_naive(conv, {{1, 18, 9, 14}, {6, 9, 3, 3}});
  expect_as_naive(conv, {{1, 18, 5, 90}, {18, 9, 3, 3}});
  // Blocks of several rows of one channel, and rows of which a block has a single element.
  expect_as_naive(conv, {{1, 18, 19, 65}, {4, 9, 3, 3}});
  const Evaluated single = evaluate<float>(conv, {{1, 18, 19, 65}, {4, 9, 3, 3}}),
                  twice = evaluate(conv, {{1, 18, 19, 65}, {4, 9, 3, 3}});
  ASSERT_EQ(single.numbers.size(), twice.numbers.size());
  for (std::size_t i = 0; i < single.numbers.size(); ++i)
    ASSERT_NEAR(single.numbers[i], twice.numbers[i], 1e-4) << i;
}

TEST(Eval, SumsInBlocksOfSeveralChannels) {
  const char* const strided =
      "define(x: f32[#n, #c, #h, #w], k: f32[#f, #c, #r, #s]) {"
      "  out: f32[n, f, y: floor_div(#h + 2 - #r, 2) + 1, z: floor_div(#w + 2 - #s, 2) + 1] ="
      "    sum(c, r, s) (x[n, c, y*2 + r - 1, z*2 + s - 1] else 0.0) * k[f, c, r, s] }";
  const char* const unpadded =
      "define(x: f32[#n, #c, #h, #w], k: f32[#f, #c, #r, #s]) {"
      "  out: f32[n, f, y: #h - #r + 1, z: #w - #s + 1] ="
      "    sum(c, r, s) x[n, c, y + r, z + s] * k[f, c, r, s] }";
  expect_as_naive(strided, {{1, 9, 9, 45}, {9, 9, 3, 3}});
  expect_as_naive(strided, {{1, 3, 20, 30}, {5, 3, 5, 5}});
  expect_as_naive(unpadded, {{1, 9, 11, 26}, {6, 9, 3, 3}});
  expect_as_naive(unpadded, {{1, 40, 14, 13}, {10, 40, 1, 1}});
  expect_as_naive(unpadded, {{1, 9, 4, 150}, {4, 9, 2, 2}});
  expect_as_naive(unpadded, {{1, 24, 7, 7}, {9, 24, 3, 3}});
  expect_as_naive(strided, {{1, 24, 14, 14}, {9, 24, 3, 3}});
}

TEST(Eval, MultipliesByATransposedMatrixAndReadsFromAnyAddress) {
  const char* const transposed =
      "define(a: f32[#m, #k], b: f32[#n, #k]) {"
      "  out: f32[m, n] = sum(k) a[m, k] * b[n, k] }";
  for (const std::size_t offset : {0, 1}) {
    expect_as_naive(transposed, {{13, 67}, {83, 67}}, offset);
    expect_as_naive(transposed, {{9, 64}, {10, 64}}, offset);
    expect_as_naive(kMatmul, {{13, 67}, {67, 83}}, offset);
    expect_as_naive(kMatmul, {{5, 3}, {3, 19}}, offset);
  }
}

TEST(Eval, SumsUnderAConditionWithComputedIndices) {
  expect_as_naive(
      "define(x: f32[#c, #h], k: f32[#c, #r]) { out: f32[y: #h*3] = sum(c, r) "
      "select(mod(y - r, 3) == 0, (x[c, floor_div(y - r, 3)] else 0.0) * k[c, r], 0.0) }",
      {{5, 30}, {5, 4}});
}

TEST(Eval, FoldsTuples) {
  expect_as_naive(
      "define(x: f32[#i, #k]) { out: f32[i] = fold(k) { from -inf, 0 take x[i, k], k by "
      "select(left.0 < right.0, right.0, left.0), select(left.0 < right.0, right.1, left.1) }.1 * "
      "1.0 }",
      {{37, 11}});
}

TEST(Eval, ScansWithABoundThatDependsOnTheOuterIndex) {
  expect_as_naive("define(x: f32[#i]) { out: f32[i] = sum(j: i + 1) x[j] }", {{700}});
  expect_as_naive(
      "define(x: f32[#n, #i]) { out: f32[n, i] = max(sum(j: i) x[n, j] * x[n, j], 0.25) }",
      {{3, 41}});
}

TEST(Eval, NestsFolds) {
  expect_as_naive(
      "define(x: f32[#i, #k]) { out: f32[i] = sum(k) exp(x[i, k]) / (sum(m: #k) exp(x[i, m])) }",
      {{13, 9}});
}

TEST(Eval, ReadsThroughDataAndUsesIndicesAsValues) {
  expect_as_naive("define(x: f32[#n, #c], i: i64[#m]) { out: f32[m, c] = x[i[m], c] + 0.5 * c }",
                  {{4, 6}, {200}});
}

TEST(Eval, ComputesIntegersAsIntegers) {
  expect_as_naive(
      "define(x: i32[#n], y: i32[#n]) { out: i64[n] = div(x[n] * 7 - 9, y[n] + 1) * 4 + mod(x[n] - "
      "5, 3) }",
      {{600}, {600}});
}

TEST(Eval, CastsRoundTruncateAndWrap) {
  expect_as_naive("define(x: f32[#n]) { out: f32[n] = f16(x[n] * 3.0) + i8(x[n] * 100.0) }",
                  {{300}});
}

TEST(Eval, ReportsAnIndexOutOfRange) {
  const Evaluated result =
      evaluate("define(x: f32[#n], i: i64[#m]) { out: f32[m] = x[i[m] + 2] }", {{3}, {20}});
  ASSERT_FALSE(result.done);
  EXPECT_EQ(result.done.error().id, "eval-index");
  EXPECT_NE(result.done.error().message.find("axis 0 of x"), std::string::npos);
}

TEST(Eval, DoesNotReadBeyondABoundThatDiffersBetweenElements) {
  // The element i of `x` would be out of range for the last sums if they ran as long as the
  // longest.
  expect_as_naive("define(x: f32[#i]) { out: f32[i] = sum(j: size(#i) - i) x[i + j] }", {{50}});
}

TEST(Eval, LetsNaNWinAMaximum) {
  const double nan = std::nan("");
  const double values[] = {1, nan, -3, nan};
  const auto definition = *parse_definition(
      "define(x: f64[#n, #k]) { out: f64[n] = fold(k) { from -inf take x[n, k] by max(left.0, "
      "right.0) } }");
  const Sizes sizes = *solve_sizes(definition, {{2, 2}});
  double out[2] = {};
  const ConstArray in{DType::F64, reinterpret_cast<const std::byte*>(values)};
  const MutableArray into{DType::F64, reinterpret_cast<std::byte*>(out)};
  ASSERT_TRUE(eval<double>(definition, sizes, std::span(&in, 1), std::span(&into, 1), {}));
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_TRUE(std::isnan(out[1]));
}

TEST(Eval, WritesForwardInOrder) {
  const auto definition = *parse_definition(
      "define(x: f32[#n], i: i64[#m], u: f32[#m]) { out: f32[n] = x[n] scatter(m) at [i[m]] add "
      "u[m] }");
  const Sizes sizes = *solve_sizes(definition, {{3}, {4}, {4}});
  const float x[] = {1, 2, 3}, u[] = {10, 20, 30, 40};
  const std::int64_t i[] = {0, 2, 0, 2};
  float out[3] = {};
  const ConstArray in[] = {{DType::F32, reinterpret_cast<const std::byte*>(x)},
                           {DType::I64, reinterpret_cast<const std::byte*>(i)},
                           {DType::F32, reinterpret_cast<const std::byte*>(u)}};
  const MutableArray into{DType::F32, reinterpret_cast<std::byte*>(out)};
  ASSERT_TRUE(eval<double>(definition, sizes, in, std::span(&into, 1), {}));
  EXPECT_EQ(std::vector<float>(out, out + 3), (std::vector<float>{41, 2, 63}));
}

template <class T>
T small_integer(std::int64_t i) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(i * 7 % 101 - 50);
  else
    return T::of_integer(i * 7 % 101 - 50);
}

/// A product of matrices of small integers in T; `seconds` is the time of the thread.
template <class T>
std::vector<T> matmul_in(std::int64_t m, std::int64_t k, std::int64_t n,
                         double* seconds = nullptr) {
  const auto definition = *parse_definition(kMatmul);
  const Sizes sizes = *solve_sizes(definition, {{m, k}, {k, n}});
  std::vector<T> a, b, out(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m * k; ++i) a.push_back(small_integer<T>(i));
  for (std::int64_t i = 0; i < k * n; ++i) b.push_back(small_integer<T>(i + 13));
  const ConstArray in[] = {{DType::F32, reinterpret_cast<const std::byte*>(a.data()), true},
                           {DType::F32, reinterpret_cast<const std::byte*>(b.data()), true}};
  const MutableArray into{DType::F32, reinterpret_cast<std::byte*>(out.data()), true};
  const CpuStopwatch watch;
  EXPECT_TRUE(eval<T>(definition, sizes, in, std::span(&into, 1), {}));
  if (seconds != nullptr) *seconds = watch.seconds();
  return out;
}

TEST(Eval, AgreesInEveryNumberType) {
  const auto exact = matmul_in<std::int64_t>(9, 20, 11);
  const auto in_double = matmul_in<double>(9, 20, 11);
  const auto in_float = matmul_in<float>(9, 20, 11);
  const auto in_a = matmul_in<FieldA>(9, 20, 11);
  const auto in_b = matmul_in<FieldB>(9, 20, 11);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_EQ(in_double[i], static_cast<double>(exact[i]));
    EXPECT_EQ(in_float[i], static_cast<float>(exact[i]));
    EXPECT_EQ(in_a[i], FieldA::of_integer(exact[i]));
    EXPECT_EQ(in_b[i], FieldB::of_integer(exact[i]));
  }
}

TEST(Field, DividesAndReadsDyadicFractionsExactly) {
  const FieldA three = FieldA::of_integer(3), eighth = FieldA::of_double(0.125);
  EXPECT_EQ(three / three, FieldA::of_integer(1));
  EXPECT_EQ(eighth * FieldA::of_integer(8), FieldA::of_integer(1));
  EXPECT_EQ(FieldB::of_double(-2.5) * FieldB::of_integer(2), FieldB::of_integer(-5));
  EXPECT_EQ(FieldB::of_integer(-1) + FieldB::of_integer(1), FieldB());
}

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// CPU time of the product of two square matrices by a plain loop in T, compiled as this test is.
template <class T>
double plain_seconds(std::size_t n) {
  std::vector<T> a, b, out(n * n);
  for (std::size_t i = 0; i < n * n; ++i) {
    a.push_back(small_integer<T>(static_cast<std::int64_t>(i)));
    b.push_back(small_integer<T>(static_cast<std::int64_t>(i + 13)));
  }
  const CpuStopwatch watch;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j)
        out[i * n + j] = out[i * n + j] + a[i * n + k] * b[k * n + j];
  const double seconds = watch.seconds();
  const std::vector<T> same = matmul_in<T>(
      static_cast<std::int64_t>(n), static_cast<std::int64_t>(n), static_cast<std::int64_t>(n));
  EXPECT_EQ(out[n + 1], same[n + 1]);
  return seconds;
}

TEST(SlowEval, ReachesTheRateThatModelsNeed) {
  double in_double = 0, in_field = 0;
  matmul_in<double>(128, 128, 128, &in_double);
  matmul_in<FieldA>(128, 128, 128, &in_field);
  // A walk over the definition for each element takes tens of times as long as a plain loop.
  EXPECT_LT(in_double, 2 * plain_seconds<double>(128));
  EXPECT_LT(in_field, 2 * plain_seconds<FieldA>(128));
}
#endif

}  // namespace
}  // namespace tessera
