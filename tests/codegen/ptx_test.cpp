#include "tessera/codegen/ptx/ptx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "examples/attention.h"
#include "examples/conv.h"
#include "examples/dropout.h"
#include "examples/histogram.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "examples/vector_add.h"
#include "tessera/codegen/compile.h"
#include "tessera/tile/gpu/block_program_text.h"
#include "tessera/tile/gpu/schedule.h"
#include "tessera/tile/interp.h"
#include "tests/codegen/ptx_expect.h"
#include "tests/tile/random_kernel.h"

namespace tessera::codegen {
namespace {

namespace examples = tile::examples;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Ptx, AddsVectorsOfAnyLength) {
  for (const std::int64_t n : {0, 1, 3, 7, 64, 257})
    for (const DType dtype : {DType::F32, DType::F16, DType::I8})
      expect_emulated(
          examples::vector_add(dtype, 128),
          TestArguments(1).pointer(dtype, n).pointer(dtype, n).pointer(dtype, n).integer(DType::I64,
                                                                                         n),
          {tile::cdiv(n, 128), 1, 1}, 0);
}

TEST(Ptx, FirstKernelsMayBeCompiledByManyThreadsAtOnce) {
  const auto kernel = examples::vector_add(DType::F32, 1024);
  std::array<std::string, 16> texts;
  {
    std::vector<std::jthread> threads;
    for (std::string& text : texts) threads.emplace_back([&] { text = ptx_text(kernel); });
  }
  EXPECT_THAT(texts, ::testing::Each(texts.front()));
  EXPECT_THAT(texts.front(), HasSubstr(".target sm_90a"));
}

TEST(Ptx, IsTheSameBeforeAndAfterCodeForAProcessor) {
  const auto product = examples::matmul(DType::BF16, DType::BF16, {128, 128, 64});
  const auto rows = examples::layer_norm(DType::F16, 4096);
  const PtxOptions options = {.persistent = true, .maps = true};
  const std::string before[] = {ptx_text(product, options), ptx_text(rows, options)};
  ASSERT_TRUE(compile(*examples::vector_add(DType::F32, 64)));
  EXPECT_EQ(ptx_text(product, options), before[0]);
  EXPECT_EQ(ptx_text(rows, options), before[1]);
}

TEST(Ptx, ReadsAndWrites16BytesAtOnce) {
  const std::string text = ptx_text(examples::vector_add(DType::F32, 1024));
  EXPECT_THAT(text, HasSubstr(".target sm_90a"));
  EXPECT_THAT(text, HasSubstr("ld.global.v4"));
  EXPECT_THAT(text, HasSubstr("st.global.v4"));
  // Threads read and write the same places, unless arguments overlap in another way.
  const std::size_t barrier = text.find("bar.sync");
  ASSERT_NE(barrier, std::string::npos);
  EXPECT_EQ(text.find("bar.sync", barrier + 1), std::string::npos);
  EXPECT_THAT(text, ContainsRegex("@!%p[0-9]+ bra[^;]*;[[:space:]]*bra.uni[^;]*;[^;]*bar.sync"));
  EXPECT_THAT(ptx_text(examples::vector_add(DType::F16, 1024)), HasSubstr("ld.global.v4"));
}

TEST(Ptx, ErfIsThatOfTheInterpreter) {
  const tile::Kernel kernel = parsed(R"(kernel erfs(x: view f32[?], out: view f32[?]) {
    at = mul(pid(), 256)
    t: f32[256] = vload(x, at)
    vstore(out, at, erf(mul(t, 1.5)))
  })");
  expect_emulated(kernel, TestArguments(1).view(DType::F32, {2048}).view(DType::F32, {2048}),
                  {8, 1, 1}, 2e-7);
}

/// The distance of two numbers of f32 that have the same sign, in ulp.
double ulps_between(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (std::signbit(a) != std::signbit(b)) return std::numeric_limits<double>::infinity();
  return std::fabs(static_cast<double>(std::bit_cast<std::uint32_t>(a)) -
                   static_cast<double>(std::bit_cast<std::uint32_t>(b)));
}

/// What a kernel makes of one number.
float emulated(const tile::Kernel& kernel, double x, Precision precision) {
  std::vector<std::vector<std::byte>> memory;
  const TestArguments arguments = TestArguments(1).number(DType::F32, x).view(DType::F32, {32});
  const auto done =
      emulate(kernel, arguments.copy(memory), {1, 1, 1}, {.ptx = {.precision = precision}});
  EXPECT_TRUE(done) << to_string(done.error());
  float found = 0;
  std::memcpy(&found, memory[0].data(), sizeof found);
  return found;
}

TEST(Ptx, FunctionsByTheGpusOwnUnitAreCloseToTrueOnes) {
  struct Function {
    const char* name;
    double (*truth)(double);
    double exact, fast;  // ulp, besides what the GPU's unit is off
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Function& function :
       {Function{"exp", [](double x) { return std::exp(x); }, 2, 2},
        Function{"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 2, 4},
        Function{"tanh", [](double x) { return std::tanh(x); }, 2, 3},
        Function{"erf", [](double x) { return std::erf(x); }, 2, 2}}) {
    const tile::Kernel kernel = parsed(fmt::format(R"(kernel f(x: f32, out: view f32[?]) {{
      all: f32[32] = broadcast({}(x))
      vstore(out, 0, all)
    }})",
                                                   function.name));
    for (const auto& [precision, ulps] :
         {std::pair(Precision::Exact, function.exact), std::pair(Precision::Fast, function.fast)})
      for (const double x : {kInfinity, -kInfinity, std::nan(""), 3e38, -3e38, 88.722, 88.73, -87.0,
                             0.0, -0.0, 0.6, -0.6, 1e-7, -1e-7, 0.3, -8.3303385, 5.5, -16.6, 1.7}) {
        SCOPED_TRACE(
            fmt::format("{} of {}, precision {}", function.name, x, static_cast<int>(precision)));
        const auto truth = static_cast<float>(function.truth(static_cast<float>(x)));
        EXPECT_LE(ulps_between(emulated(kernel, x, precision), truth), ulps);
      }
  }
}

TEST(Ptx, OnePlusErfIsThatOfTheInterpreter) {
  const tile::Kernel kernel = parsed(R"(kernel erfs(x: view f32[?], out: view f32[?]) {
    at = mul(pid(), 256)
    t: f32[256] = vload(x, at)
    vstore(out, at, add(erf(mul(t, 3.0)), 1.0))
  })");
  expect_emulated(kernel, TestArguments(1).view(DType::F32, {2048}).view(DType::F32, {2048}),
                  {8, 1, 1}, 2e-7, {.precision = Precision::Fast});
}

TEST(Ptx, GeluIsThatOfTheInterpreterHoweverItIsSpelled) {
  for (const char* spelled :
       {"mul(mul(x, 0.5), add(erf(mul(x, 0.7071067811865476)), 1.0))",
        "mul(mul(x, add(1.0, erf(div(x, 1.4142135623730951)))), 0.5)", "mul(add(erf(x), 1.0), x)",
        "mul(mul(x, -0.5), add(erf(mul(x, 0.7)), 1.0))",
        "mul(mul(x, 0.5), add(erf(mul(x, 40.0)), 1.0))",
        "mul(mul(x, 0.5), add(erf(mul(x, -0.7)), 1.0))"}) {
    SCOPED_TRACE(spelled);
    const auto text = [&](const char* x) {
      return parsed(fmt::format(R"(kernel f({}, out: view f32[?]) {{
        {}
        vstore(out, 0, {})
      }})",
                                x[0] == 'v' ? "in: view f32[?]" : "in: f32",
                                x[0] == 'v' ? "t: f32[1024] = vload(in, 0)\n x = mul(t, 4.0)"
                                            : "x: f32[32] = broadcast(in)",
                                spelled));
    };
    expect_emulated(text("view"),
                    TestArguments(1).view(DType::F32, {1024}).view(DType::F32, {1024}), {1, 1, 1},
                    1e-6);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const double x : {kInfinity, -kInfinity, std::nan(""), 3e38, -3e38, 0.0})
      expect_emulated(text("number"), TestArguments(1).number(DType::F32, x).view(DType::F32, {32}),
                      {1, 1, 1}, 1e-6, {.precision = Precision::Fast});
  }
}

TEST(Ptx, SmallProgramsShareABlock) {
  // Five rows in two blocks; the last has warps without a row.
  expect_emulated(
      parsed(R"(kernel rows(x: view f32[?, 64], out: view f32[?, 64], count: view i64[?]) {
    row = pid()
    t: f32[1, 64] = vload(x, row, 0)
    s = reduce(t) {fn = add, axis = 1}
    vstore(out, row, 0, sub(t, broadcast(reshape(s): f32[1, 1]): f32[1, 64]))
    n: i64[1] = reshape(npid())
    vstore(count, row, n)
  })"),
      TestArguments(1).view(DType::F32, {5, 64}).view(DType::F32, {5, 64}).view(DType::I64, {5}),
      {5, 1, 1}, 1e-5);
}

TEST(Ptx, MultipliesMatricesOfAnyShape) {
  for (const MatmulCase& c : {
           MatmulCase{DType::F16, DType::F32, 64, 64, 64, {32, 32, 32}},
           MatmulCase{DType::F16, DType::F16, 64, 128, 256, {64, 128, 64}},
           MatmulCase{
               DType::F16, DType::F32, 33, 65, 127, {32, 32, 32}},  // no copy ahead: odd strides
           MatmulCase{
               DType::F16, DType::F32, 40, 72, 104, {32, 64, 32}},  // ahead, some out of bounds
           MatmulCase{DType::BF16, DType::F32, 70, 24, 80, {64, 16, 32}},
           MatmulCase{DType::BF16, DType::BF16, 7, 3, 5, {16, 8, 16}},
           MatmulCase{DType::I8, DType::I32, 48, 40, 96, {32, 32, 32}},
           MatmulCase{DType::I8, DType::I32, 17, 9, 33, {16, 16, 64}},
           MatmulCase{DType::F32, DType::F32, 33, 17, 21, {16, 16, 16}},
           MatmulCase{DType::F64, DType::F64, 9, 9, 9, {8, 8, 8}},
           MatmulCase{
               DType::F16, DType::F32, 5, 6, 7, {3, 5, 7}},  // tiles that are no power of two
           MatmulCase{
               DType::F16, DType::F32, 32, 16, 512, {32, 16, 256}},  // a loop along k in a product
       }) {
    expect_multiplied(c);
    expect_multiplied(c, {.programmatic_launch = true, .constants = {false, true, false}});
  }
}

TEST(Ptx, MultipliesByMatrixInstructionsAndCopiesAhead) {
  const std::string text = ptx_text(examples::matmul(DType::F16, DType::F16, {128, 128, 32}),
                                    {.target = PtxTarget::Sm80});
  EXPECT_THAT(text, HasSubstr(".target sm_80"));
  EXPECT_THAT(text, HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"));
  EXPECT_THAT(text, HasSubstr("ldmatrix.sync.aligned.m8n8.x4.shared.b16"));
  EXPECT_THAT(text, HasSubstr("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"));
  EXPECT_THAT(text, HasSubstr("cp.async.cg.shared.global"));
  EXPECT_THAT(text, HasSubstr("cp.async.wait_group"));
  EXPECT_THAT(ptx_text(examples::matmul(DType::BF16, DType::F32, {32, 32, 32})),
              HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"));
  EXPECT_THAT(ptx_text(examples::matmul(DType::I8, DType::I32, {32, 32, 32})),
              HasSubstr("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"));
  EXPECT_THAT(ptx_text(examples::matmul(DType::F32, DType::F32, {32, 32, 32})),
              Not(HasSubstr("mma.sync")));
}

// Factors are rounded to 10 bits after the point, by choice.
TEST(Ptx, MultipliesSingleNumbersByTensorCoresWhereTheyMayBeRounded) {
  const PtxOptions rounded{.tf32 = true};
  EXPECT_THAT(ptx_text(examples::matmul(DType::F32, DType::F32, {32, 32, 32}), rounded),
              HasSubstr("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"));
  struct Shape {
    std::int64_t m, n, k;
    examples::MatmulTiles tiles;
  };
  for (const auto& [m, n, k, tiles] :
       {Shape{64, 64, 64, {32, 32, 32}}, Shape{128, 128, 96, {64, 64, 32}},
        Shape{40, 72, 104, {32, 64, 32}},  // some out of bounds
        Shape{33, 65, 127, {32, 32, 16}},  // odd strides
        Shape{7, 3, 5, {16, 8, 16}}, Shape{5, 6, 7, {3, 5, 7}}, Shape{32, 16, 512, {32, 16, 256}}})
    expect_multiplied({DType::F32, DType::F32, m, n, k, tiles}, rounded, 3e-2);
  // Either of them column by column.
  for (const char* loop : {"x: f32[32, 16] = vload(a, 0, k)  y: f32[32, 16] = vload(b, 0, k)  "
                           "yield(dot(x, permute(y) {order = [1, 0]}, acc))",
                           "x: f32[16, 32] = vload(a, k, 0)  y: f32[16, 32] = vload(b, k, 0)  "
                           "yield(dot(permute(x) {order = [1, 0]}, y, acc))"}) {
    SCOPED_TRACE(loop);
    expect_emulated(parsed(fmt::format("kernel turned(a: view f32[32, ?], b: view f32[32, ?], "
                                       "c: view f32[32, 32]) {{ sum = for (k = 0 to 32 step 16, "
                                       "acc: f32[32, 32] = 0.0) {{ {} }} vstore(c, 0, 0, sum) }}",
                                       loop)),
                    TestArguments(1)
                        .view(DType::F32, {32, 32})
                        .view(DType::F32, {32, 32})
                        .view(DType::F32, {32, 32}),
                    {1, 1, 1}, 3e-2, rounded);
  }
}

TEST(SlowPtx, WarpgroupsMultiplyMatricesOfAnyShape) {
  for (const MatmulCase& c : {
           MatmulCase{DType::F16, DType::F16, 64, 64, 256, {64, 64, 64}},  // panels of 128 bytes
           MatmulCase{
               DType::BF16, DType::F32, 128, 128, 160, {128, 128, 32}},   // of 64, two warpgroups
           MatmulCase{DType::F16, DType::F32, 64, 32, 48, {64, 32, 16}},  // of 32
           MatmulCase{DType::F16, DType::F32, 72, 200, 136, {64, 128, 64}},  // some out of bounds
           MatmulCase{DType::F16, DType::F32, 65, 67, 69, {64, 64, 32}},     // no copies ahead
           MatmulCase{
               DType::BF16, DType::F32, 256, 32, 64, {256, 32, 32}},  // 64 rows again and again
           MatmulCase{DType::F16, DType::F32, 64, 64, 256, {64, 64, 128}},  // two panels along k
       }) {
    EXPECT_THAT(ptx_text(c.kernel()), HasSubstr("wgmma.mma_async.sync.aligned.m64n"));
    expect_multiplied(c);
  }
}

// A · B with either of them read with its axes exchanged.
TEST(Ptx, WarpgroupsReadOperandsThatLieColumnByColumn) {
  for (const char* text : {
           R"(kernel turned(a: view f16[64, ?], b: view f16[64, ?], c: view f32[64, 64]) {
                sum = for (k = 0 to dim(a) {axis = 1} step 32, acc: f32[64, 64] = 0.0) {
                  x: f16[64, 32] = vload(a, 0, k)
                  y: f16[64, 32] = vload(b, 0, k)
                  yield(dot(x, permute(y) {order = [1, 0]}, acc))
                }
                vstore(c, 0, 0, sum)
              })",
           R"(kernel turned(a: view f16[64, ?], b: view f16[64, ?], c: view f32[64, 64]) {
                sum = for (k = 0 to 64 step 32, acc: f32[64, 64] = 0.0) {
                  x: f16[32, 64] = vload(a, k, 0)
                  y: f16[32, 64] = vload(b, k, 0)
                  yield(dot(permute(x) {order = [1, 0]}, y, acc))
                }
                vstore(c, 0, 0, sum)
              })",
       }) {
    const tile::Kernel kernel = parsed(text);
    EXPECT_THAT(ptx_text(kernel), HasSubstr("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"));
    expect_emulated(kernel,
                    TestArguments(1)
                        .view(DType::F16, {64, 96})
                        .view(DType::F16, {64, 96})
                        .view(DType::F32, {64, 64}),
                    {1, 1, 1}, 5e-5);
  }
}

TEST(Ptx, ProductsGoOnWhileTheNextRoundBegins) {
  const std::string text = ptx_text(examples::matmul(DType::F16, DType::F16, {128, 128, 64}));
  EXPECT_THAT(text, HasSubstr("wgmma.wait_group.sync.aligned 1;"));
  EXPECT_THAT(text, HasSubstr("fence.proxy.async.shared::cta;"));
  // The sums of scores are read in the same round.
  EXPECT_THAT(ptx_text(examples::attention(DType::F16, 64, {64, 64}, examples::Mask::None)),
              Not(HasSubstr("wgmma.wait_group.sync.aligned 1;")));
}

// 512 threads have 128 registers each, which the accumulators of 64 x 256 elements would fill.
TEST(Ptx, AccumulatorsOfAnInstructionLeaveRegisters) {
  const std::string text = ptx_text(examples::matmul(DType::F16, DType::F16, {256, 256, 64}));
  EXPECT_THAT(text, Not(HasSubstr("wgmma.mma_async")));
  EXPECT_THAT(text, HasSubstr("mma.sync"));
}

TEST(Ptx, MultipliesThroughPointersAndWithAnEpilogue) {
  const std::int64_t m = 40, n = 24, k = 50;
  expect_emulated(examples::matmul_pointers(DType::F16, {32, 32, 32}),
                  TestArguments(1)
                      .pointer(DType::F16, m * k)
                      .pointer(DType::F16, k * n)
                      .pointer(DType::F16, m * n)
                      .integer(DType::I64, m)
                      .integer(DType::I64, n)
                      .integer(DType::I64, k)
                      .integer(DType::I64, k)
                      .integer(DType::I64, 1)
                      .integer(DType::I64, n)
                      .integer(DType::I64, 1)
                      .integer(DType::I64, n)
                      .integer(DType::I64, 1),
                  {2, 1, 1}, 4e-3);
  expect_emulated(examples::matmul_bias(DType::F16, {32, 32, 32}, examples::Activation::Gelu),
                  TestArguments(1)
                      .view(DType::F16, {m, k})
                      .view(DType::F16, {k, n})
                      .view(DType::F16, {n})
                      .view(DType::F16, {m, n}),
                  {2, 1, 1}, 4e-3);
}

TEST(SlowPtx, AttendsByWarpgroups) {
  const auto kernel = examples::attention(DType::BF16, 64, {64, 64}, examples::Mask::Causal);
  EXPECT_THAT(ptx_text(kernel), HasSubstr("wgmma.mma_async"));
  expect_emulated(kernel,
                  TestArguments(1)
                      .view(DType::BF16, {1, 100, 64})
                      .view(DType::BF16, {1, 100, 64})
                      .view(DType::BF16, {1, 100, 64})
                      .view(DType::BF16, {1, 100, 64}),
                  {2, 1, 1}, 4e-2);
}

// Tiles of 128 rows and keys: two warpgroups, of which one multiplies while the other one computes.
TEST(SlowPtx, WarpgroupsOfAttentionAlternate) {
  for (const auto& [dtype, mask, width, length] :
       {std::tuple(DType::F16, examples::Mask::None, 64, 128),
        {DType::F16, examples::Mask::None, 64, 520},
        {DType::BF16, examples::Mask::Causal, 64, 300},
        {DType::F16, examples::Mask::Causal, 80, 260}}) {
    const auto kernel = examples::attention(dtype, width, {128, 128, examples::Scores::Rows}, mask);
    ASSERT_TRUE(kernel);
    const auto scheduled = tile::gpu::schedule(*kernel, {});
    ASSERT_TRUE(scheduled);
    EXPECT_THAT(to_text((*scheduled)->program), HasSubstr("of_warpgroup"));
    TestArguments arguments(1);
    for (int i = 0; i < 4; ++i) arguments.view(dtype, {1, length, width});
    expect_emulated(kernel, arguments, {(length + 127) / 128, 1, 1},
                    dtype == DType::F16 ? 4e-3 : 4e-2);
  }
}

TEST(SlowPtx, AttendsByRowsOfScores) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    for (const examples::Mask mask : {examples::Mask::None, examples::Mask::Causal}) {
      const auto kernel = examples::attention(dtype, 32, {64, 32, examples::Scores::Rows}, mask);
      EXPECT_THAT(ptx_text(kernel), HasSubstr("wgmma.wait_group.sync.aligned 0"));
      expect_emulated(kernel,
                      TestArguments(1)
                          .view(dtype, {1, 140, 32})
                          .view(dtype, {1, 140, 32})
                          .view(dtype, {1, 140, 32})
                          .view(dtype, {1, 140, 32}),
                      {3, 1, 1}, dtype == DType::F16 ? 4e-3 : 4e-2);
    }
  }
}

// Which tap a round takes is a quotient by a number that the kernel is given.
TEST(SlowPtx, CopiesAheadFromPlacesThatAreInNoLine) {
  constexpr std::int64_t kRows = 64, kColumns = 32, kSums = 16;
  const auto kernel =
      tile::kernel("places",
                   {tile::view("a", DType::F16, {tile::kDynamic, tile::kDynamic, tile::kDynamic}),
                    tile::view("b", DType::F16, {tile::kDynamic, tile::kDynamic, tile::kDynamic}),
                    tile::view("out", DType::F32, {tile::kDynamic, tile::kDynamic}),
                    tile::number("blocks", DType::I64)},
                   [&](const tile::View& a, const tile::View& b, const tile::View& out,
                       const tile::Val& blocks) {
                     const tile::Val row = tile::program_id(0) * kRows;
                     tile::Val sum = tile::zeros({kRows, kColumns}, DType::F32);
                     for (const tile::Val step : tile::range(0, blocks * 3, 1)) {
                       const tile::Val tap = step / blocks, at = step % blocks * kSums;
                       const tile::Val left = a.load({tap, row - tap, at}, {1, kRows, kSums});
                       const tile::Val right = b.load({tap, at, 0}, {1, kSums, kColumns});
                       sum = tile::dot(tile::reshape(left, {kRows, kSums}),
                                       tile::reshape(right, {kSums, kColumns}), sum);
                     }
                     out.store({row, 0}, sum);
                   });
  for (const std::int64_t sums : {48, 40, 33})
    expect_emulated(kernel,
                    TestArguments(1)
                        .view(DType::F16, {3, 100, sums})
                        .view(DType::F16, {3, sums, 24})
                        .view(DType::F32, {100, 24})
                        .integer(DType::I64, tile::cdiv(sums, kSums)),
                    {2, 1, 1}, 1e-2);
}

TEST(SlowPtx, ConvolvesBoxesOfPixels) {
  struct Shape {
    std::int64_t window, stride, channels, filters;
  };
  for (const auto& [window, stride, channels, filters] :
       {Shape{3, 1, 32, 40}, Shape{3, 1, 24, 40}, Shape{3, 1, 3, 40}, Shape{3, 2, 32, 64},
        Shape{3, 2, 24, 40}, Shape{3, 2, 3, 40}, Shape{1, 1, 64, 64}, Shape{1, 2, 40, 40}}) {
    const tile::Extents out = {2, 5, 6, filters};
    const examples::ConvTiles tiles = {2, 4, 8, 32, 16};
    const examples::ConvWindow how = {window, window, stride, window / 2, channels, filters};
    const auto kernel = examples::conv(DType::F16, how, tiles, examples::AfterConv::BiasRelu);
    EXPECT_EQ(ptx_text(kernel).find("cp.async.cg.shared.global") != std::string::npos,
              channels % 8 == 0);
    expect_emulated(kernel,
                    TestArguments(1)
                        .view(DType::F16, examples::conv_image(out, how, tiles))
                        .view(DType::F16, {window * window, channels, filters})
                        .view(DType::F16, {filters})
                        .view(DType::F16, out),
                    {examples::conv_programs(out, tiles), 1, 1}, 1e-2);
  }
}

TEST(Ptx, Attends) {
  for (const examples::Mask mask : {examples::Mask::None, examples::Mask::Causal})
    for (const std::int64_t length : {32, 50})
      expect_emulated(examples::attention(DType::F16, 32, {32, 32}, mask),
                      TestArguments(1)
                          .view(DType::F16, {1, length, 32})
                          .view(DType::F16, {1, length, 32})
                          .view(DType::F16, {1, length, 32})
                          .view(DType::F16, {1, length, 32}),
                      {tile::cdiv(length, 32), 1, 1}, 4e-3);
}

TEST(Ptx, CountsAndDrops) {
  expect_emulated(examples::histogram(128),
                  TestArguments(1)
                      .pointer(DType::I32, 300)
                      .pointer(DType::I32, 50)
                      .integer(DType::I64, 300)
                      .integer(DType::I64, 50),
                  {3, 1, 1}, 0);
  expect_emulated(examples::dropout(DType::F32, 128),
                  TestArguments(1)
                      .pointer(DType::F32, 300)
                      .pointer(DType::F32, 300)
                      .integer(DType::I64, 300)
                      .number(DType::F32, 0.3)
                      .integer(DType::I64, 7),
                  {3, 1, 1}, 1e-6);
}

void expect_emulated_as_interpreted(const testing::RandomKernel& random) {
  testing::Memory expected = random.memory, found = random.memory;
  const auto interpreted = tile::interpret(random.kernel, random.arguments(expected), random.grid);
  ASSERT_TRUE(interpreted) << to_string(interpreted.error());
  const auto emulated =
      emulate(random.kernel, random.arguments(found), random.grid, {.ptx = {.persistent = true}});
  ASSERT_TRUE(emulated) << to_string(emulated.error());
  EXPECT_EQ(testing::difference(random, expected, found, 0), "");
}

TEST(Ptx, RunsRandomKernelsAsTheInterpreterDoes) {
  testing::for_each_random_kernel(1, 20, {}, expect_emulated_as_interpreted);
}

TEST(SlowPtx, RunsRandomKernelsAsTheInterpreterDoes) {
  testing::for_each_random_kernel(500, 300, {.steps = 40}, expect_emulated_as_interpreted);
}

TEST(Ptx, SaysThatATileIsTooLarge) {
  const auto compiled = ptx_of(parsed(R"(kernel large(out: view f32[?]) {
    x: f32[1048576] = const() {value = 1}
    vstore(out, 0, x)
  })"));
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().id, "ptx-tile-too-large");
}

TEST(Ptx, SaysThatItCannotPrint) {
  const auto compiled = ptx_of(parsed(R"(kernel talk() {
    row: i64 = pid() {axis = 0}
    print(row) {message = "row"}
  })"));
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().id, "ptx-unsupported");
}

}  // namespace
}  // namespace tessera::codegen
