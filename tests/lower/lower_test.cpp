#include "tessera/lower/lower.h"

#include <gtest/gtest.h>

#include "tests/lower/run_stages.h"

namespace tessera::lower {
namespace {

struct DefinitionCase {
  std::string name;
  std::vector<Operand> inputs;
  std::string definition;
};

Operand operand(std::string name, Shape shape, DType dtype = DType::F32) {
  return {std::move(name), dtype, std::move(shape)};
}

const std::string kMatmul =
    "define(a: f32[#i, #k], b: f32[#k, #j]) { out: f32[i, j] = "
    "sum(k) a[i, k] * b[k, j] }";
const std::string kSoftmax =
    "define(x: f32[#i, #j]) { out: f32[i, j] = exp(x[i, j] - max_of(k: #j) x[i, k]) / "
    "sum(k: #j) { exp(x[i, k] - max_of(l: #j) x[i, l]) } }";

std::vector<DefinitionCase> definition_cases() {
  return {
      {"Elementwise",
       {operand("x", {5, 7, 33}), operand("y", {33})},
       "define(x: f32[#i, #j, #k], y: f32[#k]) { out: f32[i, j, k] = max(x[i, j, k] * 2.0 + y[k], "
       "0.0) }"},
      {"Transpose",
       {operand("x", {70, 90})},
       "define(x: f32[#i, #j]) { out: f32[j, i] = x[i, j] }"},
      {"OneNumber", {operand("x", {})}, "define(x: f32[]) { out: f32[] = exp(x[]) }"},
      {"MatmulOfOddSizes", {operand("a", {37, 129}), operand("b", {129, 61})}, kMatmul},
      {"MatmulOfAPrimeSum", {operand("a", {8, 521}), operand("b", {521, 16})}, kMatmul},
      {"MatrixTimesVector",
       {operand("a", {50, 300}), operand("x", {300})},
       "define(a: f32[#i, #k], x: f32[#k]) { out: f32[i] = sum(k) a[i, k] * x[k] }"},
      {"MatmulOfBatches",
       {operand("a", {3, 20, 24}), operand("b", {3, 24, 30})},
       "define(a: f32[#n, #i, #k], b: f32[#n, #k, #j]) { out: f32[n, i, j] = sum(k) a[n, i, k] * "
       "b[n, k, j] }"},
      {"ConvolutionWithPadsAndStrides",
       {operand("x", {2, 8, 11, 13}), operand("w", {12, 8, 3, 3}), operand("b", {12})},
       "define(x: f32[#n, #c, #h, #v], w: f32[#f, #c, #r, #s], b: f32[#f]) { out: f32[n, f, y: 6, "
       "z: 7] = sum(c, r, s) { (x[n, c, 2*y + r - 1, 2*z + s - 1] else 0.0) * w[f, c, r, s] } + "
       "b[f] }"},
      {"ConvolutionInGroups",
       {operand("x", {1, 6, 9, 9}), operand("w", {6, 1, 3, 3})},
       "define(x: f32[#n, 6, #h, #v], w: f32[6, 1, #r, #s]) { out: f32[n, (g: 6, f: 1), y: 7, z: "
       "7] = sum(r, s) x[n, g, y + r, z + s] * w[g + f, 0, r, s] }"},
      {"LargestOfWindows",
       {operand("x", {3, 17, 17})},
       "define(x: f32[#c, #h, #v]) { out: f32[c, y: 8, z: 8] = max_of(r: 3, s: 3) (x[c, 2*y + r - "
       "1, 2*z + s - 1] else -inf) }"},
      {"MeanOverTheLastAxes",
       {operand("x", {9, 13, 13})},
       "define(x: f32[#c, #h, #v]) { out: f32[c] = (sum(h, v) x[c, h, v]) / 169.0 }"},
      {"SumOverTheFirstAxis",
       {operand("x", {100, 30})},
       "define(x: f32[#i, #j]) { out: f32[j] = sum(i) x[i, j] }"},
      {"SumOfAll",
       {operand("x", {10, 1000})},
       "define(x: f32[#i, #j]) { out: f32[] = sum(i, j) x[i, j] }"},
      {"SoftmaxInOneStage", {operand("x", {9, 130})}, kSoftmax},
      {"RunningSum",
       {operand("x", {40})},
       "define(x: f32[#i]) { out: f32[i] = sum(j: i + 1) x[j] }"},
      {"IndexOfTheLargest",
       {operand("x", {7, 50})},
       "define(x: f32[#i, #j]) { out: i64[i] = fold(j) { from -inf, 0 take x[i, j], j by "
       "max(left.0, right.0), select(left.0 < right.0, right.1, left.1) }.1 }"},
      {"Gather",
       {operand("x", {7, 20}), operand("at", {15}, DType::I32)},
       "define(x: f32[#i, #j], at: i32[#k]) { out: f32[k, j] = x[at[k], j] }"},
      {"Reshape",
       {operand("x", {6, 10})},
       "define(x: f32[6, 10]) { out: f32[i: 4, j: 15] = x[floor_div(i*15 + j, 10), mod(i*15 + j, "
       "10)] }"},
      {"IntegersWrap",
       {operand("x", {33}, DType::I8), operand("y", {33}, DType::I8)},
       "define(x: i8[#i], y: i8[#i]) { out: i8[i] = i8(x[i] * 50 + floor_div(x[i] - 9, 4) - "
       "mod(y[i] - 5, 3)) }"},
      {"Halves",
       {operand("x", {65}, DType::F16), operand("y", {65}, DType::BF16)},
       "define(x: f16[#i], y: bf16[#i]) { out: f16[i] = f16(x[i] * y[i]) }"},
      {"DoublesStayDoubles",
       {operand("x", {65}, DType::F64)},
       "define(x: f64[#i]) { out: f64[i] = x[i] * 1.00000000001 }"},
      {"NothingToSum",
       {operand("x", {5, 0})},
       "define(x: f32[#i, #j]) { out: f32[i] = 1.0 + sum(j) x[i, j] }"},
      {"TruthValues",
       {operand("x", {40}), operand("c", {40}, DType::Bool)},
       "define(x: f32[#i], c: bool[#i]) { out: bool[i] = c[i] && x[i] < 0.5 || !c[i] }"},
  };
}

class LowerCase : public ::testing::TestWithParam<DefinitionCase> {};

TEST_P(LowerCase, ComputesWhatTheDefinitionSays) {
  const DefinitionCase& c = GetParam();
  const auto schedule =
      default_schedule(staged(c.inputs, {c.definition}), machine::Machine{.cores = 2});
  ASSERT_TRUE(schedule) << to_string(schedule.error());
  const double tolerance = c.name == "DoublesStayDoubles" ? 1e-12
                           : c.name == "Halves"           ? 2e-3
                                                          : 1e-4;
  expect_computes(*schedule, c.inputs, By::Interpreter, tolerance);
  expect_computes(*schedule, c.inputs, By::MachineCode, tolerance);
}

INSTANTIATE_TEST_SUITE_P(Lower, LowerCase, ::testing::ValuesIn(definition_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Lower, SaysWhyAForwardWriteIsNotLowered) {
  const auto schedule = default_schedule(
      staged({operand("x", {4}), operand("at", {4}, DType::I64)},
             {"define(x: f32[#i], at: i64[#i]) { out: f32[j: 9] = 0.0 scatter(i) at [at[i]] add "
              "x[i] }"}),
      machine::Machine{});
  ASSERT_TRUE(schedule) << to_string(schedule.error());
  const auto kernels = lower(*schedule);
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().id, "lower-unsupported");
}

TEST(Lower, SaysWhyAFoldOverDataIsNotLowered) {
  const auto schedule =
      default_schedule(staged({operand("x", {4}), operand("n", {1}, DType::I64)},
                              {"define(x: f32[#i], n: i64[1]) { out: f32[] = sum(j: n[0]) x[j] }"}),
                       machine::Machine{});
  ASSERT_TRUE(schedule) << to_string(schedule.error());
  const auto kernels = lower(*schedule);
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().id, "lower-unsupported");
}

TEST(Lower, AMatmulBecomesADot) {
  const auto schedule = default_schedule(
      staged({operand("a", {64, 64}), operand("b", {64, 64})}, {kMatmul}), machine::Machine{});
  ASSERT_TRUE(schedule) << to_string(schedule.error());
  const auto kernels = lower(*schedule);
  ASSERT_TRUE(kernels) << to_string(kernels.error());
  int dots = 0;
  const tile::Kernel& kernel = kernels->front().kernel;
  tile::for_each_op(kernel, kernel.body,
                    [&](tile::OpId id) { dots += kernel.ops[id].code == tile::Code::Dot; });
  EXPECT_EQ(dots, 1);
}

}  // namespace
}  // namespace tessera::lower
