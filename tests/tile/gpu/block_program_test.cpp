#include "tessera/tile/gpu/block_program_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/tile/gpu/schedule.h"
#include "tessera/tile/gpu/verify_block_program.h"
#include "tests/tile/passes/pass_check.h"

// Text in, text out: the program of a block (form S) of a kernel.

namespace tessera::tile::gpu {
namespace {

using tessera::testing::parsed_kernel;
using ::testing::HasSubstr;
using ::testing::Not;

std::string program(std::string_view text, const Options& options = {}) {
  const auto made = schedule(parsed_kernel(text), options);
  EXPECT_TRUE(made) << to_string(made.error());
  return made ? to_text((*made)->program) : std::string();
}

void expect_parses_back(const BlockProgram& program) {
  const std::string text = to_text(program);
  const auto parsed = parse_block_program(text);
  ASSERT_TRUE(parsed) << to_string(parsed.error()) << "\n" << text;
  EXPECT_EQ(to_text(*parsed), text);
  EXPECT_EQ(parsed->body.size(), program.body.size());
}

constexpr const char* kRelu =
    R"(kernel product(a: view f16[?, ?], b: view f16[?, 256], c: view f16[?, 256]) {
  row = mul(pid(), 64)
  sum = for (k = 0 to dim(a) {axis = 1} step 32, acc: f32[64, 64] = 0.0) {
    x: f16[64, 32] = vload(a, row, k)
    y: f16[32, 64] = vload(b, k, 0)
    yield(dot(x, y, acc))
  }
  vstore(c, row, 0, cast(max(sum, 0.0)): f16[64, 64])
})";

constexpr const char* kSubtractedMax = R"(kernel row(x: view f16[?, {0}], out: view f16[?, {0}]) {{
  t: f16[1, {0}] = vload(x, pid(), 0)
  m = reduce(t) {{fn = max, axis = 1}}
  vstore(out, pid(), 0, sub(t, broadcast(reshape(m): f16[1, 1]): f16[1, {0}]))
}})";

TEST(BlockProgram, ElementsAreLoadedComputedAndStored) {
  EXPECT_EQ(program(R"(kernel twice(x: view f32[256], out: view f32[256]) {
  t: f32[128] = vload(x, 0)
  vstore(out, 0, add(t, t))
})",
                    {.block_per_program = true}),
            R"(block_program(shared = 0, own_bytes = 0) {
  layout L0 = 1 [0:0, 0:1] [0:2, 0:3, 0:4, 0:5, 0:6]
  compute(op = #0)
  address_view(op = #1, layout = L0, run = 4)
  load_view(op = #1)
  address_view(op = #3, layout = L0, run = 4)
  compute(op = #2, layout = L0)
  barrier_if_overlap(accesses = [#3: #1])
  store_view(op = #3)
}
)");
}

TEST(BlockProgram, APipelinedLoopPrefetchesAndItsMatmulOverlapsWithTheNextIteration) {
  const std::string text = program(kRelu);
  EXPECT_THAT(text, HasSubstr("prefetch_first(loop = "));
  EXPECT_THAT(text, HasSubstr("stages = (count = 4, offset = 0, pipeline = (operands = ["));
  EXPECT_THAT(text, HasSubstr("    prefetch_next(loop = "));
  EXPECT_THAT(text, HasSubstr("completion = next_iteration)"));
  EXPECT_THAT(text, HasSubstr("  wait_matmul(matmuls = ["));
}

TEST(BlockProgram, AnEpilogueIsPartOfItsStore) {
  // A maximum and a cast are computed box by box.
  const std::string text = program(kRelu);
  const auto at = text.find("epilogue = {");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string epilogue = text.substr(at, text.find('}', at) - at);
  EXPECT_EQ(std::ranges::count(epilogue, '('), 2) << epilogue;
}

TEST(BlockProgram, TasksOfAWarpSpecializedBlock) {
  const std::string text = program(kRelu, {.persistent = true, .maps = true});
  EXPECT_THAT(text, HasSubstr("warp_tasks(stages = (count = 4"));
  EXPECT_THAT(text, HasSubstr("producer = {"));
  EXPECT_THAT(text, HasSubstr("    fill_stages()\n"));
  EXPECT_THAT(text, HasSubstr("consumer = {"));
  EXPECT_THAT(text, HasSubstr("      await_stage()\n"));
  EXPECT_THAT(text, HasSubstr("release_stage(loop = "));
  EXPECT_THAT(text, Not(HasSubstr("prefetch_next")));
}

TEST(BlockProgram, RowsHaveAVersionWithoutBranches) {
  const std::string text = program(fmt::format(kSubtractedMax, 4096));
  EXPECT_THAT(text, HasSubstr("versions(accesses = [#"));
  EXPECT_THAT(text, HasSubstr("fast = {"));
  EXPECT_THAT(text, HasSubstr("known = (run = 8"));
  EXPECT_THAT(text, HasSubstr("reduce_in_block(exchanges = ["));
}

TEST(BlockProgram, RowsInPartsArePassesWithACache) {
  const std::string text = program(fmt::format(kSubtractedMax, 65537));
  EXPECT_THAT(text, HasSubstr("row_version(alignment = aligned, body = {"));
  EXPECT_THAT(text, HasSubstr("row_version(alignment = unknown, body = {"));
  EXPECT_THAT(text, HasSubstr("is_filled = true"));
  EXPECT_THAT(text, HasSubstr("reduce_part(op = #"));
}

TEST(BlockProgram, PersistentRowsArePrefetched) {
  const std::string text =
      program(fmt::format(kSubtractedMax, 32768), {.persistent = true, .prefetched_rows = 2});
  EXPECT_THAT(text, HasSubstr("prefetch_program(ahead = 0, is_prologue = true, body = {"));
  EXPECT_THAT(text, HasSubstr("prefetch_program(ahead = 1, is_prologue = true, body = {"));
  EXPECT_THAT(text, HasSubstr("    take_prefetched(op = #"));
}

TEST(BlockProgram, ScratchThatIsReadIsReusedAfterABarrier) {
  // Two slices: the second exchange waits until the first has been read.
  const std::string text = program(R"(kernel slices(x: view f32[64, 64], out: view f32[64, 64]) {
  t: f32[64, 64] = vload(x, 0, 0)
  a: f32[32, 64] = slice(t) {from = [0, 0]}
  b: f32[32, 64] = slice(t) {from = [32, 0]}
  vstore(out, 0, 0, add(a, b))
})");
  const auto first = text.find("move("), barrier = text.find("barrier()"),
             second = text.find("move(", first + 1);
  ASSERT_NE(second, std::string::npos) << text;
  EXPECT_LT(first, barrier);
  EXPECT_LT(barrier, second);
}

TEST(BlockProgram, OfAnyKernelParsesBack) {
  for (const Options& options : {Options{},
                                 {.wgmma = false},
                                 {.persistent = true, .maps = true},
                                 {.block_per_program = true}})
    tessera::testing::for_each_random_kernel(1, 100, {}, [&](const auto& random) {
      const auto made = schedule(random.kernel, options);
      ASSERT_TRUE(made) << to_string(made.error());
      expect_parses_back((*made)->program);
    });
  for (const Options& options : {Options{}, {.persistent = true, .maps = true}}) {
    for (const std::string& text :
         {std::string(kRelu), fmt::format(kSubtractedMax, 64), fmt::format(kSubtractedMax, 32768),
          fmt::format(kSubtractedMax, 65537)}) {
      const auto made = schedule(parsed_kernel(text), options);
      ASSERT_TRUE(made) << to_string(made.error());
      expect_parses_back((*made)->program);
    }
  }
}

TEST(BlockProgram, MistakesInTextAreNamed) {
  const auto message = [](std::string_view text) {
    const auto parsed = parse_block_program(text);
    return parsed ? std::string("no mistake") : parsed.error().message;
  };
  EXPECT_THAT(message("block_program(shared = 0, own_bytes = 0) { jump() }"),
              HasSubstr("no instruction of form S is called 'jump'"));
  EXPECT_THAT(
      message("block_program(shared = 0, own_bytes = 0) { convert(value = %1, from = L7) }"),
      HasSubstr("no layout is called 'L7'"));
  EXPECT_THAT(message("block_program(shared = 0, own_bytes = 0) { unpack(value = 3) }"),
              HasSubstr("expected a number after '%'"));
}

TEST(BlockProgram, IsVerifiedAgainstItsKernel) {
  const Kernel kernel = parsed_kernel("kernel one(x: view f32[4]) { t: f32[4] = vload(x, 0) }");
  const auto message = [&](const std::string& body) {
    const auto program = parse_block_program(
        "block_program(shared = 1024, own_bytes = 0) { layout L0 = 2 [1:0] [0:0] " + body + "}");
    EXPECT_TRUE(program) << to_string(program.error());
    const auto verified = verify(*program, kernel);
    return verified ? std::string() : verified.error().message;
  };
  EXPECT_EQ(message("barrier()"), "");
  EXPECT_EQ(message("compute(op = #99)"), "op: there is no number 99");
  EXPECT_EQ(message("unpack(value = %99)"), "value: there is no number 99");
  EXPECT_EQ(message("yield(values = [%0: L0])"), "values: a layout of 2 axes for value 0");
  EXPECT_EQ(message("convert(value = %0, from = L0, to = L0, through = f32[256] @ 512)"),
            "through: 1024 bytes at 512 of 1024 bytes of shared memory");
}

}  // namespace
}  // namespace tessera::tile::gpu
