#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "examples/matmul.h"
#include "tests/codegen/ptx_expect.h"

// Epilogues: elementwise operations between a matmul and its store.

namespace tessera::codegen {
namespace {

namespace examples = tile::examples;
using examples::Activation;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kTogether = 4;

/// Longest run of an instruction, with up to `between` others between two.
int most_in_a_row(const std::string& text, const std::string& instruction, int between = 0) {
  std::istringstream lines(text);
  int most = 0, now = 0, others = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool is = line.find(instruction) != std::string::npos;
    others = is ? 0 : others + 1;
    now = is ? now + 1 : others > between ? 0 : now;
    most = std::max(most, now);
  }
  return most;
}

TEST(PtxEpilogue, ChainsAreInterleaved) {
  const std::string text =
      ptx_text(examples::matmul_bias(DType::BF16, {128, 128, 64}, Activation::Gelu),
               {.precision = Precision::Fast, .persistent = true});
  EXPECT_GE(most_in_a_row(text, "ex2.approx", 1), kTogether);
  EXPECT_THAT(text, HasSubstr("cvt.rn.bf16x2.f32"));
  // Predicates would serialize the chains.
  EXPECT_THAT(text, Not(HasSubstr("selp.f32")));
}

TEST(PtxEpilogue, AFewRegistersAreConvertedAndStoredBeforeTheNext) {
  const std::string text = ptx_text(
      examples::matmul_bias(DType::F16, {128, 128, 64}, Activation::Relu), {.persistent = true});
  EXPECT_THAT(text, HasSubstr("cvt.rn.f16x2.f32"));
  EXPECT_LE(most_in_a_row(text, "cvt.rn.f16x2.f32"), kTogether);
}

/// c and d are epilogues of one matmul that share a part; `between` comes before their stores.
tile::Kernel two_results(const std::string& between) {
  return parsed(R"(kernel two(a: view f16[?, ?], b: view f16[?, 64], c: view f16[?, 64],
                              d: view f32[?, 64]) {
    row = mul(pid(), 64)
    sum = for (k = 0 to dim(a) {axis = 1} step 32, acc: f32[64, 64] = 0.0) {
      x: f16[64, 32] = vload(a, row, k)
      y: f16[32, 64] = vload(b, k, 0)
      yield(dot(x, y, acc))
    }
    both = mul(sum, 0.5)
    left = exp(neg(mul(both, both)))
    right = add(both, left)
    narrow: f16[64, 64] = cast(left)
)" + between + R"(
    vstore(c, row, 0, narrow)
    vstore(d, row, 0, tanh(right))
  })");
}

void expect_two_results(const tile::Kernel& kernel) {
  for (const bool loops : {false, true})
    expect_emulated(kernel,
                    TestArguments(1)
                        .view(DType::F16, {150, 64})
                        .view(DType::F16, {64, 64})
                        .view(DType::F16, {150, 64})
                        .view(DType::F32, {150, 64}),
                    {3, 1, 1}, 4e-3, {.persistent = loops});
}

TEST(PtxEpilogue, StoresMayShareAPart) {
  expect_two_results(two_results(""));
}

TEST(PtxEpilogue, ALoopMayComeBeforeTheStore) {
  expect_two_results(two_results(R"(
    count = for (i = 0 to 3 step 1, n: f32[64, 64] = 0.0) { yield(add(n, 1.0)) }
    vstore(d, row, 0, count)
)"));
}

TEST(PtxEpilogue, ActivationsAreThoseOfTheInterpreter) {
  const std::int64_t m = 128, n = 128, k = 32;
  for (const Activation activation :
       {Activation::Identity, Activation::Relu, Activation::Gelu, Activation::Silu})
    for (const auto& [dtype, precision] :
         {std::pair(DType::F16, Precision::Exact), std::pair(DType::BF16, Precision::Fast)})
      expect_emulated(examples::matmul_bias(dtype, {64, 128, 32}, activation),
                      TestArguments(1)
                          .view(dtype, {m, k})
                          .view(dtype, {k, n})
                          .view(dtype, {n})
                          .view(dtype, {m, n}),
                      {2, 1, 1}, dtype == DType::F16 ? 4e-3 : 3e-2,
                      {.precision = precision, .persistent = true});
}

}  // namespace
}  // namespace tessera::codegen
