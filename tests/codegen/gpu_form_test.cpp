#include "tessera/codegen/ptx/gpu_form.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "examples/attention.h"
#include "examples/matmul.h"

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

}  // namespace
}  // namespace tessera::codegen
