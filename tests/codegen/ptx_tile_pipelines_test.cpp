#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "tests/codegen/ptx_expect.h"

// Producer warps with a pipeline for each view (tile/gpu/tile_pipelines.h).

namespace tessera::codegen {
namespace {

using ::testing::HasSubstr;

const PtxOptions kPipelines = {.persistent = true, .maps = true};

/// Two matmuls for each tile of keys, the second one tile late.
Expected<tile::Kernel> two_matmuls() {
  return parsed(
      R"(kernel products(q: view f16[?, 64] by [?, 1], k: view f16[?, 64] by [?, 1],
           v: view f16[?, 64] by [?, 1], out: view f32[?, 64] by [?, 1]) block(warps = 8, producers = tma) {
    row = mul(pid(), 128)
    x: f16[128, 64] = vload(q, row, 0)
    k0: f16[128, 64] = vload(k, 0, 0)
    s0 = dot(x, permute(k0) {order = [1, 0]}: f16[64, 128], 0.0: f32[128, 128])
    (o, p) = for (i = 128 to 384 step 128, sum: f32[128, 64] = 0.0, w: f16[128, 128] = cast(s0): f16[128, 128]) {
      keys: f16[128, 64] = vload(k, i, 0)
      s = dot(x, permute(keys) {order = [1, 0]}: f16[64, 128], 0.0: f32[128, 128])
      values: f16[128, 64] = vload(v, sub(i, 128), 0)
      more = dot(w, values, sum)
      yield(more, cast(s): f16[128, 128])
    }
    last: f16[128, 64] = vload(v, 256, 0)
    vstore(out, row, 0, dot(p, last, o))
  })");
}

TestArguments arguments_of(std::int64_t rows, std::int64_t keys, std::int64_t stride) {
  return TestArguments(1)
      .view(DType::F16, {rows, 64}, {stride, 1})
      .view(DType::F16, {keys, 64}, {stride, 1})
      .view(DType::F16, {keys, 64}, {stride, 1})
      .view(DType::F32, {rows, 64}, {stride, 1});
}

TEST(PtxTilePipelines, CopyByTensorMaps) {
  EXPECT_THAT(ptx_text(two_matmuls(), kPipelines), HasSubstr("cp.async.bulk.tensor"));
  expect_emulated(two_matmuls(), arguments_of(640, 384, 64), {5, 1, 1}, 3e-2, kPipelines);
  expect_emulated(two_matmuls(), arguments_of(300, 300, 72), {3, 1, 1}, 3e-2, kPipelines);
}

// Then threads copy, element by element at the edges.
TEST(PtxTilePipelines, CopyRowsThatAreNotAligned) {
  expect_emulated(two_matmuls(), arguments_of(300, 300, 65), {3, 1, 1}, 3e-2, kPipelines);
}

TEST(PtxTilePipelines, ProducersHave64RegistersAndConsumersTheRest) {
  const std::string text = ptx_text(two_matmuls(), kPipelines);
  EXPECT_THAT(text, HasSubstr("setmaxnreg.dec.sync.aligned.u32 64"));
  EXPECT_THAT(text, HasSubstr("setmaxnreg.inc.sync.aligned.u32 216"));
}

// Compilers cannot compute what follows from the thread index before the loop over programs.
TEST(PtxTilePipelines, ThreadIndicesAreRenewedForEachProgram) {
  llvm::LLVMContext context;
  const auto made = ptx_module_of(*two_matmuls(), context, kPipelines);
  ASSERT_TRUE(made) << to_string(made.error());
  const llvm::Function* pin = made->module->getFunction("tessera.thread.pin");
  ASSERT_NE(pin, nullptr);
  EXPECT_EQ(pin->getNumUses(), 2U);  // in producers and in consumers
}

}  // namespace
}  // namespace tessera::codegen
