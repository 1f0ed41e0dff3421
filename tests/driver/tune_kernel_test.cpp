#include "tessera/driver/tune_kernel.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "tessera/runtime/cuda/session.h"
#include "tessera/tile/text.h"
#include "tests/support/command.h"

namespace tessera {
namespace {

constexpr std::string_view kAdd =
    "kernel add(x: view f32[?], out: view f32[?], BLOCK: const = 64) {\n"
    "  at = mul(pid(), BLOCK)\n"
    "  a: f32[BLOCK] = vload(x, at)\n"
    "  vstore(out, at, add(a, 1.0))\n}\n";

KernelText add_text(const std::string& text = std::string(kAdd)) {
  return {.text = text,
          .file = "add.tile",
          .arguments = {"x=f32[1000]", "out=f32[1000]"},
          .grid = "ceil_div(out.0, BLOCK)"};
}

KernelData data_of(const KernelText& source) {
  const auto kernel = tile::parse_kernel(source.text);
  auto data = make_kernel_data(*kernel, {.arguments = source.arguments});
  EXPECT_TRUE(data) << data.error().message;
  return *std::move(data);
}

TEST(KernelSpace, HasPowersOfTwoAroundTheDefaultWithTheirGrids) {
  const KernelText source = add_text();
  const auto task = kernel_task(source, data_of(source), machine::host());
  ASSERT_TRUE(task) << task.error().message;
  std::set<std::int64_t> blocks;
  for (const KernelVariant& variant : task->variants) {
    const std::int64_t block = variant.constants[0].value;
    blocks.insert(block);
    EXPECT_EQ(variant.grid[0], (1000 + block - 1) / block);
  }
  EXPECT_EQ(blocks, (std::set<std::int64_t>{4, 8, 16, 32, 64, 128, 256, 512, 1024}));
  EXPECT_EQ(task->variants[task->usual].constants[0].value, 64);
}

TEST(KernelSpace, OfAGpuHasTilesThatFillItsRegisters) {
  const std::string text =
      "kernel k(B: const = 8192, x: view f32[?], out: view f32[?]) {\n"
      "  a: f32[B] = vload(x, mul(pid(), B))\n"
      "  vstore(out, mul(pid(), B), a)\n}\n";
  KernelText source = add_text(text);
  source.grid = "ceil_div(out.0, B)";
  machine::Machine small = machine::host();
  small.l2 = 64 << 10;
  const auto largest = [&](const machine::Machine& machine) {
    std::int64_t most = 0;
    const auto task = kernel_task(source, data_of(source), machine);
    EXPECT_TRUE(task);
    for (const KernelVariant& variant : task->variants)
      most = std::max(most, variant.constants[0].value);
    return most;
  };
  EXPECT_EQ(largest(small), 16384);
  EXPECT_EQ(largest(machine::cuda()), 65536);
}

TEST(TuneKernel, OnAGpuThatIsNotThereMeasuresNothing) {
  if (runtime::cuda::this_gpu()) GTEST_SKIP() << "there is one";
  const auto tuned = tune_kernel(add_text(), {.machine = machine::cuda(), .tune = {.seconds = 1}});
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->result.end, tune::TuneResult::End::Exhausted);
  EXPECT_TRUE(tuned->outcome().trials.empty());
  EXPECT_FALSE(tuned->outcome().chosen);
}

TEST(KernelSpace, LeavesOutWhatIsGivenAndWhatIsIllFormed) {
  const std::string text =
      "kernel k(R: const = 4, B: const = 64, x: view f32[?], out: view f32[?]) {\n"
      "  a: f32[B] = vload(x, mul(pid(), B))\n"
      "  b: f32[R, 16] = reshape(a)\n"
      "  c: f32[B] = reshape(b)\n"
      "  vstore(out, mul(pid(), B), c)\n}\n";
  KernelText source = add_text(text);
  source.grid = "ceil_div(out.0, B)";
  const auto task = kernel_task(source, data_of(source), machine::host());
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_GT(task->variants.size(), 3u);
  for (const KernelVariant& variant : task->variants)  // 16 R = B
    EXPECT_EQ(16 * variant.constants[0].value, variant.constants[1].value);
  source.arguments.push_back("R=4");
  EXPECT_EQ(kernel_task(source, data_of(source), machine::host())->variants.size(), 1u);
  source.arguments.push_back("B=64");
  const auto none = kernel_task(source, data_of(source), machine::host());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().id, "kernel-constants");
}

TEST(KernelSpace, ConstantsParseBack) {
  const std::vector<tile::Constant> constants = {{"BM", 64}, {"two words", 3}};
  const auto again = parse_constants(constants_text(constants));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, constants);
  EXPECT_FALSE(parse_constants("constants BM="));
  EXPECT_FALSE(parse_constants("loops BM=4"));
}

TEST(KernelGrid, CountsMayUseArguments) {
  const auto kernel =
      tile::parse_kernel("kernel k(x: view f32[?, 8], n: i64, s: f32, B: const = 16) {}");
  ASSERT_TRUE(kernel);
  const auto data =
      make_kernel_data(*kernel, {.arguments = {"x=f32[100,8]", "n=7", "s=2.5", "B=16"}});
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(*parse_grid("ceil_div(x.0, B), n * 2, x.1", *kernel, *data), (tile::Grid{7, 14, 8}));
  for (const char* bad : {"", "s", "m", "x.2", "-1", "1,2,3,4", "floor_div(1, 0)", "1;2", "n n"})
    EXPECT_FALSE(parse_grid(bad, *kernel, *data)) << bad;
}

TEST(TuneKernel, MeasuresEveryVariantAndContinues) {
  const testing::TemporaryFolder folder;
  const TuneKernelOptions options{.tune = {.most_trials = 100},
                                  .store = folder.path() / "store.sqlite"};
  const auto tuned = tune_kernel(add_text(), options);
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->result.end, tune::TuneResult::End::Exhausted);
  EXPECT_EQ(tuned->outcome().trials.size(), 8u);
  EXPECT_EQ(tuned->outcome().failed, 0u);
  const auto again = tune_kernel(add_text(), options);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->outcome().known, 8u);
  EXPECT_TRUE(again->outcome().trials.empty());
  const auto constants = tuned_constants(add_text(), machine::host(), 1, options.store);
  ASSERT_TRUE(constants);
  EXPECT_EQ(!constants->empty(), again->outcome().chosen.has_value());
  if (!constants->empty()) {
    EXPECT_EQ(*constants, again->best().constants);
  }
}

TEST(TuneKernel, VariantsThatComputeSomethingElseAreNotCandidates) {
  // The result depends on the constant, and one that is too small leaves elements out.
  const std::string adds_it =
      "kernel add(x: view f32[?], out: view f32[?], BLOCK: const = 64) {\n"
      "  at = mul(pid(), BLOCK)\n"
      "  a: f32[BLOCK] = vload(x, at)\n"
      "  vstore(out, at, add(a, BLOCK))\n}\n";
  const auto tuned = tune_kernel(add_text(adds_it), {.tune = {.most_trials = 100}});
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->outcome().failed, 8u);
  EXPECT_FALSE(tuned->outcome().chosen);
  KernelText fixed_grid = add_text();
  fixed_grid.grid = "16";
  const auto covered = tune_kernel(fixed_grid, {.tune = {.most_trials = 100}});
  ASSERT_TRUE(covered) << covered.error().message;
  EXPECT_EQ(covered->outcome().failed, 4u);  // blocks below 64
}

TEST(TuneKernel, AccessesOutOfBoundsCostTheCandidate) {
  // Larger blocks reach beyond the memory of the pointer: debug mode refuses them.
  const std::string pointers =
      "kernel add(x: *f32, out: *f32, BLOCK: const = 64) {\n"
      "  lane: i64[BLOCK] = iota()\n"
      "  i = add(mul(pid(), BLOCK), lane)\n"
      "  store(offset(out, i), add(load(offset(x, i)), 1.0))\n}\n";
  KernelText source = add_text(pointers);
  source.arguments = {"x=f32[1024]", "out=f32[1024]"};
  source.grid = "16";
  const auto tuned = tune_kernel(source, {.tune = {.most_trials = 100}});
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->outcome().failed, 8u);
  EXPECT_FALSE(tuned->outcome().chosen);
}

TEST(TuneKernel, KernelsThatReadWhatTheyWriteAreTimedOnFreshMemory) {
  const std::string accumulates =
      "kernel add(x: view f32[?], out: view f32[?], BLOCK: const = 64) {\n"
      "  at = mul(pid(), BLOCK)\n"
      "  a: f32[BLOCK] = vload(x, at)\n"
      "  b: f32[BLOCK] = vload(out, at)\n"
      "  vstore(out, at, add(a, b))\n}\n";
  const auto tuned = tune_kernel(add_text(accumulates), {.tune = {.most_trials = 100}});
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->outcome().failed, 0u);
}

}  // namespace
}  // namespace tessera
