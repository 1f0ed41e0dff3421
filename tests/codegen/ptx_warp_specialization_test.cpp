#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "examples/attention.h"
#include "examples/matmul.h"
#include "tests/codegen/ptx_expect.h"

namespace tessera::codegen {
namespace {

namespace examples = tile::examples;
using ::testing::HasSubstr;
using ::testing::Not;

const PtxOptions kLooping = {.persistent = true}, kMapping = {.persistent = true, .maps = true};
/// The second operand is known to be written by no grid.
PtxOptions with_constants(PtxOptions options) {
  options.programmatic_launch = true;
  options.constants = {false, true, false};
  return options;
}

TEST(PtxWarpSpecialization, ProducerThreadsCopyForConsumers) {
  const auto kernel = examples::matmul(DType::BF16, DType::BF16, {128, 256, 64});
  const auto compiled = ptx_of(*kernel, kLooping);
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  EXPECT_TRUE(compiled->persistent);
  EXPECT_EQ(compiled->threads, 256 + 128);
  EXPECT_THAT(compiled->text, HasSubstr("setmaxnreg.dec.sync.aligned.u32 64"));
  EXPECT_THAT(compiled->text, HasSubstr("setmaxnreg.inc.sync.aligned.u32 216"));
  EXPECT_THAT(compiled->text, HasSubstr("cp.async.mbarrier.arrive.noinc.shared.b64"));
  EXPECT_THAT(compiled->text, HasSubstr("mbarrier.try_wait.parity.shared::cta.b64"));
  EXPECT_THAT(compiled->text, Not(HasSubstr("cp.async.wait_group")));
  EXPECT_THAT(compiled->text, Not(HasSubstr(".local")));
  // Not where the launcher starts one block per program.
  EXPECT_EQ(ptx_of(*kernel)->threads, 256);
  EXPECT_EQ(ptx_of(*kernel, {.persistent = true, .warp_specialization = false})->threads, 256);
}

TEST(PtxWarpSpecialization, AppliesToOneLoopOfMatmulsBeforeAnyStore) {
  const auto roles = [](const tile::Kernel& kernel) {
    return ptx_text(kernel, kLooping).find("mbarrier") != std::string::npos;
  };
  const char* text =
      R"(kernel product(a: view f16[?, ?], b: view f16[?, 64], at: *i32, c: view f32[?, 64]) {{
    row = mul(pid(), 64)
    {}
    sum = for (k = 0 to dim(a) {{axis = 1}} step 32, acc: f32[64, 64] = 0.0) {{
      x: f16[64, 32] = vload(a, row, k)
      y: f16[32, 64] = vload(b, {}, 0)
      yield(dot(x, y, acc))
    }}
    vstore(c, row, 0, sum)
  }})";
  const auto with = [&](const char* before, const char* place) {
    return roles(parsed(fmt::format(fmt::runtime(text), before, place)));
  };
  EXPECT_TRUE(with("", "k"));
  EXPECT_TRUE(with("first = add(row, 8)", "add(k, first)"));
  // The address is loaded from memory, which producers do not do.
  EXPECT_FALSE(with("first: i32 = load(at)", "add(k, cast(first): i64)"));
  EXPECT_FALSE(with("zeros: f32[64, 64] = 0.0\n vstore(c, row, 0, zeros)", "k"));
  EXPECT_FALSE(with("old: i32 = atomic(at, 1) {fn = add}", "k"));
  // Tiles of 64 rows and columns are small.
  const auto rounds = [&](int count) {
    std::string once = fmt::format(fmt::runtime(text), "", "k");
    once.replace(once.find("dim(a) {axis = 1}"), 17, std::to_string(32 * count));
    return roles(parsed(once));
  };
  EXPECT_TRUE(rounds(2));
}

TEST(SlowPtxWarpSpecialization, MultiplyMatricesOfAnyShape) {
  for (const MatmulCase& c : {
           MatmulCase{
               DType::F16, DType::F16, 192, 128, 256, {64, 64, 32}},  // three programs a block
           MatmulCase{DType::BF16, DType::F32, 128, 256, 160, {128, 256, 32}},  // two warpgroups
           MatmulCase{DType::F16, DType::F32, 72, 200, 136, {64, 128, 64}},  // some out of bounds
           MatmulCase{DType::F16, DType::F16, 65, 67, 69, {64, 64, 32}},     // element by element
           MatmulCase{
               DType::F16, DType::F16, 100, 104, 24, {64, 64, 32}},  // fewer iterations than stages
           MatmulCase{DType::F16, DType::F32, 64, 64, 0, {64, 64, 32}},  // none
       }) {
    EXPECT_THAT(ptx_text(c.kernel(), kLooping), HasSubstr("mbarrier"));
    for (const PtxOptions& options : {kLooping, kMapping}) {
      expect_multiplied(c, options);
      expect_multiplied(c, with_constants(options));
    }
  }
}

TEST(PtxWarpSpecialization, TmaCopiesBoxesOfViewsThatAreParameters) {
  const auto kernel = examples::matmul(DType::BF16, DType::BF16, {128, 256, 64});
  const auto compiled = ptx_of(*kernel, kMapping);
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  using runtime::cuda::TensorMap;
  // Words of a view of two axes: its base, two extents, two strides.
  EXPECT_EQ(compiled->maps,
            (std::vector<TensorMap>{{.word = 0, .column = 1, .width = 2, .box = {128, 64}},
                                    {.word = 5, .column = 1, .width = 2, .box = {64, 64}}}));
  EXPECT_THAT(compiled->text, HasSubstr("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier"));
  EXPECT_THAT(compiled->text, HasSubstr(".param .align 64 .b8"));
  EXPECT_THAT(compiled->text, Not(HasSubstr(".local")));
  // The launcher does not know a view at a pointer.
  EXPECT_TRUE(ptx_of(*examples::matmul_pointers(DType::F16, {64, 64, 32}), kMapping)->maps.empty());
}

TEST(PtxWarpSpecialization, TensorMapsAreEncodedWhereTheHardwareSupportsThem) {
  const runtime::cuda::TensorMap map = {.word = 1, .column = 1, .width = 2, .box = {64, 32}};
  const auto made = [&](std::uint64_t base, std::uint64_t rows, std::uint64_t columns,
                        std::uint64_t stride) {
    const std::vector<std::uint64_t> words = {7, base, rows, columns, stride, 1};
    const auto shape = shape_of(map, words);
    return shape && shape->base == base &&
           shape->extents == std::vector<std::uint64_t>{columns, rows} &&
           shape->strides == std::vector<std::uint64_t>{2 * stride} &&
           shape->box == std::vector<std::uint32_t>{32, 64};
  };
  EXPECT_TRUE(made(4096, 100, 72, 72));
  EXPECT_FALSE(made(4096 + 8, 100, 72, 72));
  EXPECT_FALSE(made(4096, 100, 72, 76));
  EXPECT_FALSE(made(4096, 100, 72, 0));
  EXPECT_FALSE(made(4096, 0, 72, 72));
  EXPECT_FALSE(made(4096, std::uint64_t{1} << 31, 72, 72));
}

TEST(PtxWarpSpecialization, ConsumerGroupsSkipTheIterationsOfEachOther) {
  const tile::Kernel kernel =
      parsed(R"(kernel growing(a: view f16[?, ?], b: view f16[?, 64], c: view f32[?, 64]) {
    row = mul(pid(), 64)
    sum = for (k = 0 to mul(pid(), 32) step 32, acc: f32[64, 64] = 0.0) {
      x: f16[64, 32] = vload(a, row, k)
      y: f16[32, 64] = vload(b, k, 0)
      yield(dot(x, y, acc))
    }
    vstore(c, row, 0, sum)
  })");
  EXPECT_EQ(ptx_of(kernel, kMapping)->threads, 2 * 128 + 128);
  for (const int stages : {3, 8})
    for (const bool maps : {false, true})
      expect_emulated(kernel,
                      TestArguments(1)
                          .view(DType::F16, {13 * 64, 12 * 32})
                          .view(DType::F16, {12 * 32, 64})
                          .view(DType::F32, {13 * 64, 64}),
                      {13, 1, 1}, 5e-5, {.stages = stages, .persistent = true, .maps = maps});
}

TEST(PtxWarpSpecialization, BoxesOfMoreAxesMayStartBeforeTheirView) {
  const tile::Kernel kernel = parsed(
      R"(kernel boxes(a: view f16[?, ?, ?] by [?, ?, 1], b: view f16[?, 64], c: view f32[?, 64]) {
    row = sub(mul(pid(), 3), 5)
    sum = for (k = 0 to dim(a) {axis = 2} step 32, acc: f32[64, 64] = 0.0) {
      x: f16[2, 32, 32] = vload(a, pid(), row, sub(k, 8))
      y: f16[32, 64] = vload(b, k, 0)
      yield(dot(reshape(x): f16[64, 32], y, acc))
    }
    vstore(c, mul(pid(), 64), 0, sum)
  })");
  EXPECT_EQ(ptx_of(kernel, kMapping)->maps[0].box, (std::vector<std::int64_t>{2, 32, 32}));
  // A stride of 0 has no tensor map: 16 bytes are copied at a time.
  for (const std::int64_t stride : {80, 0})
    expect_emulated(kernel,
                    TestArguments(1)
                        .view(DType::F16, {3, 30, 80}, {30 * 80, stride, 1})
                        .view(DType::F16, {80, 64})
                        .view(DType::F32, {3 * 64, 64}),
                    {3, 1, 1}, 5e-5, kMapping);
}

TEST(PtxWarpSpecialization, ViewsThatAKernelMakesOfItsParametersHaveTensorMaps) {
  // Overlapping rows at an offset from the start of an argument.
  const tile::Kernel kernel =
      parsed(R"(kernel pieces(a: view f16[64, 16], b: view f16[?, 64, 64], c: view f32[?, 64]) {
    pieces: view f16[20, 3, 64] by [32, 16, 1] = view(offset(base(a), 16))
    row = mul(pid(), 8)
    sum = for (k = 0 to dim(b) {axis = 0} step 1, acc: f32[64, 64] = 0.0) {
      x: f16[64, 1, 64] = vload(pieces, row, k, 0)
      y: f16[1, 64, 64] = vload(b, k, 0, 0)
      yield(dot(reshape(x): f16[64, 64], reshape(y): f16[64, 64], acc))
    }
    vstore(c, mul(pid(), 64), 0, sum)
  })");
  const auto compiled = ptx_of(kernel, kMapping);
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  ASSERT_EQ(compiled->maps.size(), 2u);
  EXPECT_EQ(compiled->maps[0], (runtime::cuda::TensorMap{.word = 0,
                                                         .column = 2,
                                                         .width = 2,
                                                         .box = {64, 1, 64},
                                                         .offset = 16,
                                                         .extents = {20, 3, 64},
                                                         .strides = {32, 16, 1}}));
  expect_emulated(kernel,
                  TestArguments(1)
                      .view(DType::F16, {64, 16})
                      .view(DType::F16, {3, 64, 64})
                      .view(DType::F32, {3 * 64, 64}),
                  {3, 1, 1}, 5e-5, kMapping);
}

TEST(PtxWarpSpecialization, RunsEpilogues) {
  const std::int64_t m = 128, n = 192, k = 64;
  for (const std::int64_t columns : {n, n - 5}) {
    expect_emulated(examples::matmul_bias(DType::F16, {64, 64, 32}, examples::Activation::Gelu),
                    TestArguments(1)
                        .view(DType::F16, {m, k})
                        .view(DType::F16, {k, columns})
                        .view(DType::F16, {columns})
                        .view(DType::F16, {m, columns}),
                    {examples::matmul_programs(m, columns, {64, 64, 32}), 1, 1}, 4e-3, kLooping);
  }
}

}  // namespace
}  // namespace tessera::codegen
