#include "tessera/codegen/ptx/gpu_form.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "examples/attention.h"
#include "examples/layer_norm.h"
#include "examples/matmul.h"
#include "tessera/tile/gpu/block_program_text.h"

namespace tessera::codegen {
namespace {

namespace examples = tile::examples;
using ::testing::HasSubstr;

TEST(GpuForm, SaysWhatSharedMemoryAllowed) {
  const auto kernel = examples::matmul(DType::BF16, DType::BF16, {128, 256, 64});
  for (const PtxOptions& options :
       {PtxOptions{}, {.target = PtxTarget::Sm80}, {.more_stages = 8, .persistent = true}}) {
    const auto form = gpu_form_of(*kernel, options);
    const auto compiled = ptx_of(*kernel, options);
    ASSERT_TRUE(form) << to_string(form.error());
    ASSERT_TRUE(compiled) << to_string(compiled.error());
    EXPECT_THAT(*form, HasSubstr(fmt::format("a block of {} threads", compiled->threads)));
    EXPECT_THAT(*form, HasSubstr(fmt::format("{} bytes of shared memory", compiled->shared_bytes)));
  }
  // 48 KiB a stage: two fit into the 99 of an older GPU, beside nothing else.
  EXPECT_THAT(*gpu_form_of(*kernel), HasSubstr("4 stages of 49152 bytes"));
  EXPECT_THAT(*gpu_form_of(*kernel, {.target = PtxTarget::Sm80}),
              HasSubstr("2 stages of 49152 bytes"));
}

TEST(GpuForm, ProductsOfAttentionReadRegisters) {
  const auto form = gpu_form_of(*examples::attention(
      DType::F16, 64, {128, 64, examples::Scores::Rows}, examples::Mask::None));
  ASSERT_TRUE(form) << to_string(form.error());
  EXPECT_THAT(*form, HasSubstr("wgmma m64n64k16, a in registers, b in stage buffer"));
}

TEST(GpuForm, TheProgramOfABlockFollowsItsKernelAndParsesBack) {
  const auto attention = examples::attention(DType::F16, 64, {128, 64, examples::Scores::Rows},
                                             examples::Mask::Causal);
  const auto matmul = examples::matmul(DType::F16, DType::F16, {128, 256, 64});
  const auto rows = examples::layer_norm(DType::F16, 1024);
  for (const auto& kernel : {attention, matmul, rows}) {
    ASSERT_TRUE(kernel) << to_string(kernel.error());
    for (const PtxOptions& options :
         {PtxOptions{}, {.target = PtxTarget::Sm80}, {.persistent = true, .maps = true}}) {
      const auto form = block_form_of(*kernel, options);
      ASSERT_TRUE(form) << to_string(form.error());
      const auto at = form->find("block_program(");
      ASSERT_NE(at, std::string::npos);
      EXPECT_EQ(form->find("kernel "), 0U);
      const auto program = tile::gpu::parse_block_program(form->substr(at));
      ASSERT_TRUE(program) << to_string(program.error());
      EXPECT_EQ(tile::gpu::to_text(*program), form->substr(at));
      EXPECT_EQ(program->shared.bytes, ptx_of(*kernel, options)->shared_bytes);
    }
  }
}

// The matmul of the previous iteration has read the stage that the copies overwrite only when that
// of this one is issued; all other stages are in flight meanwhile.
TEST(GpuForm, CopiesOfALaterIterationFollowTheMatmulThatOverlaps) {
  const auto form = block_form_of(*examples::matmul(DType::F16, DType::F16, {128, 128, 64}), {});
  ASSERT_TRUE(form) << to_string(form.error());
  const auto loop = form->find("for(op"), await = form->find("await_copies(", loop),
             matmul = form->find("matmul(", loop), barrier = form->find("barrier()", matmul),
             prefetch = form->find("prefetch_next(", loop);
  ASSERT_NE(prefetch, std::string::npos);
  EXPECT_LT(await, matmul);
  EXPECT_LT(matmul, barrier);
  EXPECT_LT(barrier, prefetch);
}

}  // namespace
}  // namespace tessera::codegen
