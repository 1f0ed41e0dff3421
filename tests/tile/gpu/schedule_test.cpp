#include "tessera/tile/gpu/schedule.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/tile/gpu/register_pressure.h"
#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

// Text in, text out: the schedule of a kernel, with reasons.

namespace tessera::tile::gpu {
namespace {

using tessera::testing::anonymous;
using tessera::testing::parsed_kernel;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<ScheduledKernel> scheduled(std::string_view text, const Options& options = {}) {
  auto made = schedule(parsed_kernel(text), options);
  EXPECT_TRUE(made) << to_string(made.error());
  return *std::move(made);
}

std::string decided(std::string_view text, const Options& options = {}) {
  return to_text(*scheduled(text, options));
}

const Options kLooping = {.persistent = true}, kMapping = {.persistent = true, .maps = true};

/// A matmul in a loop; `before` comes before it, `place` is the start of rows of b, `from` what a
/// is loaded from.
struct Product64 {
  std::string before = "", place = "k", to = "dim(a) {axis = 1}", dtype = "f16", after = "";
  int m = 64, n = 64;
};
std::string product(const Product64& of) {
  return fmt::format(
      R"(kernel product(a: view {0}[?, ?], b: view {0}[?, 256], at: *i32, c: view f32[?, 256]) {{
  row = mul(pid(), {1})
  {3}
  sum = for (k = 0 to {5} step 32, acc: f32[{1}, {2}] = 0.0) {{
    x: {0}[{1}, 32] = vload(a, row, k)
    y: {0}[32, {2}] = vload(b, {4}, 0)
    yield(dot(x, y, acc))
  }}
  {6}
  vstore(c, row, 0, sum)
}})",
      of.dtype, of.m, of.n, of.before, of.place, of.to, of.after);
}

constexpr const char* kRow = R"(kernel row(x: view f16[?, {0}], out: view f16[?, {0}]) {{
  t: f16[1, {0}] = vload(x, pid(), 0)
  m = reduce(t) {{fn = max, axis = 1}}
  vstore(out, pid(), 0, sub(t, broadcast(reshape(m): f16[1, 1]): f16[1, {0}]))
}})";

// Operands are in stage buffers: the accumulators are what registers hold.
TEST(GpuSchedule, TwoBlocksShareAnSmWhereTheirTilesLeaveRoom) {
  const Options options{.threads = 256};
  const auto narrow = scheduled(product({.m = 128, .n = 128}), options);
  EXPECT_EQ(register_pressure(*narrow->planned, narrow->mapping.stages), 64);
  EXPECT_EQ(narrow->registers, 128);
  const auto wide = scheduled(product({.m = 128, .n = 256}), options);
  EXPECT_EQ(register_pressure(*wide->planned, wide->mapping.stages), 128);
  EXPECT_EQ(wide->registers, 0);
  const auto alone = scheduled(product({.m = 128, .n = 128}),
                               {.shared_bytes = 99 << 10, .threads = 256});  // room for one block
  EXPECT_EQ(alone->registers, 0);
}

/// Where the first operands of matmuls are.
std::vector<std::string> places_of_factors(const Body& body) {
  std::vector<std::string> places;
  for (const Instruction& instruction : body) {
    if (const auto* loop = std::get_if<ForLoop>(&instruction)) {
      const std::vector<std::string> inner = places_of_factors(loop->body);
      places.insert(places.end(), inner.begin(), inner.end());
    } else if (std::holds_alternative<HoldOperand>(instruction)) {
      places.emplace_back("held");
    } else if (const auto* matmul = std::get_if<Matmul>(&instruction)) {
      using Place = DotOperand::Place;
      places.emplace_back(matmul->a.place == Place::Registers  ? "registers"
                          : matmul->a.place == Place::InBuffer ? "buffer"
                                                               : "copied");
    }
  }
  return places;
}

// What wgmma reads in registers must not be read afterwards, nor in the next iteration.
TEST(GpuSchedule, FactorsThatAreReadAgainAreInSharedMemory) {
  const auto places = [](const char* queries, const char* sum, const Options& options = {}) {
    return places_of_factors(
        scheduled(fmt::format(
                      R"(kernel k(q: view f16[?, 64], k: view f16[?, 64], out: view f32[?, 64]) {{
  x: f16[64, 64] = vload(q, mul(pid(), 64), 0)
  z = exp(x)
  o = for (i = 0 to dim(k) {{axis = 0}} step 64, sum: f32[64, 64] = 0.0) {{
    y: f16[64, 64] = vload(k, i, 0)
    s = dot({}, permute(y) {{order = [1, 0]}}: f16[64, 64], 0.0: f32[64, 64])
    w: f16[64, 64] = cast(exp(s))
    yield(dot(w, y, {}))
  }}
  vstore(out, mul(pid(), 64), 0, o)
}})",
                      queries, sum),
                  options)
            ->program.body);
  };
  using Places = std::vector<std::string>;
  EXPECT_EQ(places("x", "sum"), (Places{"held", "buffer", "registers"}));
  EXPECT_EQ(places("z", "sum"), (Places{"held", "buffer", "registers"}));
  // It is computed before the loop.
  EXPECT_EQ(places("mul(x, z)", "sum"), (Places{"held", "buffer", "registers"}));
  // The weights are read twice.
  EXPECT_EQ(places("x", "add(sum, cast(w): f32[64, 64])"), (Places{"held", "buffer", "copied"}));
  // mma of a warp is complete when it is issued.
  EXPECT_EQ(places("x", "add(sum, cast(w): f32[64, 64])", {.wgmma = false}),
            (Places{"registers", "registers"}));
}

// A tile that is read in a loop is live in all of its iterations; one that is read last makes room.
TEST(GpuSchedule, RegistersAreASumOverLiveTiles) {
  const auto kernel = scheduled(R"(kernel k(a: view f32[1024], out: view f32[1024], n: i64) {
  x: f32[1024] = vload(a, 0)
  y: f32[1024] = exp(x)
  sum = for (i = 0 to n step 1, acc: f32[1024] = 0.0) {
    z: f32[1024] = mul(acc, y)
    yield(add(z, y))
  }
  vstore(out, 0, sum)
})",
                                {.threads = 128});
  EXPECT_EQ(register_pressure(*kernel->planned, 0), 16);  // y, and acc or z
}

// What one of the branches changes is not live beside the change.
TEST(GpuSchedule, BranchesReuseRegisters) {
  const auto kernel = scheduled(R"(kernel k(a: view f32[1024], out: view f32[1024], n: i64) {
  x: f32[1024] = vload(a, 0)
  y: f32[1024] = if (lt(n, 5)) { yield(x) } else { yield(exp(x)) }
  vstore(out, 0, y)
})",
                                {.threads = 128});
  EXPECT_EQ(register_pressure(*kernel->planned, 0), 8);
}

TEST(GpuSchedule, IsTheKernelWithComments) {
  const auto made = scheduled(product({}), kMapping);
  EXPECT_EQ(anonymous(parsed_kernel(to_text(*made))), anonymous(made->kernel));
}

TEST(GpuSchedule, OfAnyKernelParses) {
  tessera::testing::for_each_random_kernel(1, 200, {}, [](const auto& random) {
    const auto made = schedule(random.kernel, kMapping);
    ASSERT_TRUE(made) << to_string(made.error());
    EXPECT_EQ(anonymous(parsed_kernel(to_text(**made))), anonymous((*made)->kernel));
  });
}

TEST(GpuSchedule, DescribesAMatmul) {
  const char* kernel = R"(
    kernel product(a: view f16[?, ?], b: view f16[?, 64], n: i64, c: view f32[?, 64]) {
      row: i64 = mul(pid(), 64)
      sum: f32[64, 64] = for (k: i64 = 0 to n step 32, acc: f32[64, 64] = 0.0) {
        x: f16[64, 32] = vload(a, row, k)
        y: f16[32, 64] = vload(b, k, 0)
        s: f32[64, 64] = dot(x, y, acc)
        yield(s)
      }
      vstore(c, row, 0, sum)
    })";
  EXPECT_EQ(
      decided(kernel, kMapping),
      R"(// a block of 384 threads: two consumer groups of 128 threads with 216 registers each, 128 producer threads with 64, persistent
// 2 tensor maps
// 52224 bytes of shared memory
// L0: registers [1:0 0:3 1:3-5], threads [1:1-2 0:0-2 0:4-5]
// L1: registers [1:0-1 0:3-5], threads [1:2-5 0:0-2]
kernel product(a: view f16[?, ?], b: view f16[?, 64], n: i64, c: view f32[?, 64]) {
  v0: i64 = pid() {axis = 0}
  v1: i64 = 64
  row: i64 = mul(v0, v1)
  v2: i64 = 0
  v3: i64 = 32
  v4: f32[64, 64] = 0.0  // rematerialized
  sum: f32[64, 64] = for (k: i64 = v2 to n step v3, acc: f32[64, 64] = v4) {  // 4 stages of 8192 bytes, filled by TMA; matmul overlaps with the next iteration
    x: f16[64, 32] = vload(a, row, k)  // in stage buffer: 64 rows of 64 bytes
    y: f16[32, 64] = vload(b, k, v2)  // in stage buffer: 32 rows of 128 bytes
    s: f32[64, 64] = dot(x, y, acc)  // L0: wgmma m64n64k16, a in stage buffer, b in stage buffer
    yield(s)
  }
  vstore(c, row, v2, sum)  // L1, up to 16 bytes at a time
}
)");
}

TEST(GpuSchedule, MatmulsUseTheWidestInstructionThatFits) {
  EXPECT_THAT(decided(product({.m = 128, .n = 256})),
              HasSubstr("wgmma m64n256k16, a in stage buffer, b in stage buffer"));
  EXPECT_THAT(decided(product({.m = 32})),
              HasSubstr("mma m16n8k16 (no wgmma: fewer than 64 rows)"));
  EXPECT_THAT(decided(product({.n = 8})), HasSubstr("(no wgmma: fewer than 16 columns"));
  EXPECT_THAT(decided(product({}), {.wgmma = false}),
              HasSubstr("(no wgmma: the GPU has no wgmma)"));
  EXPECT_THAT(decided(product({.dtype = "f32"}), {.tf32 = true}),
              HasSubstr("mma m16n8k8 (no wgmma: not of f16 or bf16)"));
  EXPECT_THAT(decided(product({.dtype = "f32"})), HasSubstr("scalar fma"));
}

TEST(GpuSchedule, LoopsPrefetchWhatOnlyMatmulsRead) {
  EXPECT_THAT(decided(product({})), HasSubstr("4 stages of 8192 bytes, prefetched by all threads"));
  EXPECT_THAT(decided(product({.dtype = "f32"})),
              HasSubstr("no prefetching: it has no tensor-core matmul"));
  EXPECT_THAT(decided(product({}), {.stages = 1}),
              HasSubstr("no prefetching: shared memory has no room for two stages"));
}

TEST(GpuSchedule, WarpSpecializationNeedsALoopBeforeAnyStoreWithKnownAddresses) {
  const auto why = [](const Product64& of, const Options& options = kLooping) {
    const auto made = scheduled(product(of), options);
    return made->warp_specialization ? "" : made->warp_specialization.why_not();
  };
  EXPECT_EQ(why({}), "");
  EXPECT_EQ(why({.before = "first = add(row, 8)", .place = "add(k, first)"}), "");
  EXPECT_EQ(why({}, {}), "blocks are not persistent");
  EXPECT_EQ(why({}, {.persistent = true, .warp_specialization = false}), "disabled");
  EXPECT_EQ(why({.dtype = "f32"}), "no matmul uses wgmma");
  EXPECT_EQ(why({.before = "old: i32 = atomic(at, 1) {fn = add}"}),
            "programs may synchronize with each other");
  EXPECT_EQ(why({.before = "zeros: f32[64, 64] = 0.0\n vstore(c, row, 0, zeros)"}),
            "a store comes before the loop");
  EXPECT_EQ(why({.before = "first: i32 = load(at)", .place = "add(k, cast(first): i64)"}),
            "its addresses depend on more than parameters and program ids");
  EXPECT_EQ(why({.to = "64"}), "");  // two iterations
  EXPECT_EQ(why({.to = "256", .m = 128, .n = 256}), "");
  EXPECT_EQ(why({.to = "256"}), "not profitable for this tile size and number of k-steps");
  EXPECT_EQ(why({}, {.stages = 2, .persistent = true}),
            "no matmul overlaps with the next iteration");
}

TEST(GpuSchedule, TensorMapsNeedViewsThatTheLauncherKnows) {
  EXPECT_THAT(decided(product({}), kMapping), HasSubstr("2 tensor maps"));
  EXPECT_THAT(decided(product({}), kLooping),
              HasSubstr("no tensor maps: the launcher does not support them"));
}

TEST(GpuSchedule, RowsAreDistributedByTheirSize) {
  const auto row = [](int columns, const Options& options = kLooping) {
    return decided(fmt::format(fmt::runtime(kRow), columns), options);
  };
  EXPECT_THAT(row(256), HasSubstr("rows: 64 bytes per thread, 2 programs merged"));
  EXPECT_THAT(row(4096),
              HasSubstr("a block of 256 threads: one program\n// rows: 32 bytes per thread\n"));
  EXPECT_THAT(row(32768),
              HasSubstr(", persistent\n// rows: 64 bytes per thread, 64 registers, 1 prefetched"));
  EXPECT_THAT(row(32768), HasSubstr("up to 16 bytes at a time; prefetched, distance 1"));
  EXPECT_THAT(row(32768, {}), Not(HasSubstr("prefetched")));
}

// A block is started about every cycle, whatever it does.
TEST(GpuSchedule, BlocksOfShortRowsMoveSomeKilobytes) {
  const auto sums = [](int columns) {
    return decided(fmt::format(R"(kernel sums(x: view f16[?, {0}], out: view f16[?]) {{
      t: f32[1, {0}] = cast(vload(x, pid(), 0): f16[1, {0}])
      vstore(out, pid(), cast(reduce(t) {{fn = add, axis = 1}}): f16[1])
    }})",
                               columns),
                   kLooping);
  };
  // Rows lie side by side in a warp.
  EXPECT_THAT(sums(70), HasSubstr("a block of 256 threads: 8 programs, one warp each\n"));
  EXPECT_THAT(sums(70), HasSubstr("8 programs merged"));
  EXPECT_THAT(sums(70), HasSubstr("threads [1:1-3 0:0-1]"));
  EXPECT_THAT(sums(97), HasSubstr("4 programs merged"));
  EXPECT_THAT(sums(97), HasSubstr("threads [1:0-3 0:0]"));
  EXPECT_THAT(sums(301), HasSubstr("a block of 512 threads: 16 programs, one warp each\n"));
  EXPECT_THAT(sums(301), Not(HasSubstr("merged")));
  // A row in a warp or more.
  EXPECT_THAT(sums(512), HasSubstr("threads [1:3-7]"));
  EXPECT_THAT(sums(700), HasSubstr("a block of 64 threads: one program\n"));
  EXPECT_THAT(sums(700), HasSubstr("4 programs merged"));
  EXPECT_THAT(sums(4096), Not(HasSubstr("merged")));
  // Few rows have all multiprocessors.
  const auto few = [](int rows, int columns) {
    return decided(fmt::format(R"(kernel sums(x: view f16[{0}, {1}], out: view f16[{0}]) {{
      t: f32[1, {1}] = cast(vload(x, pid(), 0): f16[1, {1}])
      vstore(out, pid(), cast(reduce(t) {{fn = add, axis = 1}}): f16[1])
    }})",
                               rows, columns),
                   kLooping);
  };
  EXPECT_THAT(few(200, 700), Not(HasSubstr("merged")));
  EXPECT_THAT(few(20000, 700), HasSubstr("4 programs merged"));
  EXPECT_THAT(few(200, 301), HasSubstr("a block of 128 threads: 4 programs, one warp each\n"));
}

TEST(GpuSchedule, LongRowsAreCutIntoParts) {
  const auto row = [](int columns, const char* dtype = "f16", const Options& options = kLooping) {
    std::string text = fmt::format(fmt::runtime(kRow), columns);
    for (std::size_t at = 0; (at = text.find("f16", at)) != std::string::npos; at += 3)
      text.replace(at, 3, dtype);
    return decided(text, options);
  };
  EXPECT_THAT(row(50257), HasSubstr("a block of 512 threads: one program\n"));
  EXPECT_THAT(row(50257), HasSubstr("50257 elements in parts of 8192, 114688 bytes cached"));
  EXPECT_THAT(row(151936), HasSubstr("151936 elements in parts of 8192, 114688 bytes cached"));
  EXPECT_THAT(row(151936, "f16", {.shared_bytes = 99 << 10}), HasSubstr("99328 bytes cached"));
  EXPECT_THAT(row(8001, "f32"), HasSubstr("8001 elements in parts of 2048"));
  EXPECT_THAT(row(8000, "f32"), Not(HasSubstr("parts")));
  EXPECT_THAT(row(8001, "f16"), Not(HasSubstr("parts")));  // elements of 2 bytes, one by one
}

TEST(GpuSchedule, WhatAllProgramsReadIsKnown) {
  const auto scaled = [](int columns, const Options& options = kLooping) {
    return decided(
        fmt::format(
            R"(kernel scaled(x: view f16[?, {0}], w: view f16[{0}], out: view f16[?, {0}]) {{
      t: f16[1, {0}] = vload(x, pid(), 0)
      m: f16[1, 1] = reshape(reduce(t) {{fn = max, axis = 1}})
      v: f16[{0}] = vload(w, 0)
      r: f16[1, {0}] = reshape(v)
      vstore(out, pid(), 0, mul(sub(t, broadcast(m): f16[1, {0}]), r))
    }})",
            columns),
        options);
  };
  EXPECT_THAT(scaled(4096), HasSubstr("rows: 32 bytes per thread, 40 registers\n"));
  EXPECT_THAT(scaled(4096), HasSubstr("at a time; read-only, shared by all programs\n"));
  EXPECT_THAT(scaled(32768, {.persistent = true, .prefetched_rows = 1}),
              HasSubstr("at a time; loaded once for all programs\n"));
}

TEST(GpuSchedule, FewerStagesOrNoWarpSpecializationWhereSharedMemoryIsShort) {
  // 8 KiB a stage, 9 KiB for the store of each of two consumer groups.
  const auto made = [](std::int64_t kib) {
    auto found =
        schedule(parsed_kernel(product({})), {.shared_bytes = kib << 10, .persistent = true});
    EXPECT_TRUE(!found || (*found)->program.shared.bytes <= kib << 10);
    return found;
  };
  EXPECT_EQ((*made(64))->mapping.stages, 4);
  EXPECT_TRUE((*made(64))->mapping.warp_specialized);
  EXPECT_EQ((*made(50))->mapping.stages, 3);
  EXPECT_TRUE((*made(50))->mapping.warp_specialized);
  EXPECT_EQ((*made(40))->warp_specialization.why_not(), "3 stages have no room in shared memory");
  EXPECT_EQ((*made(40))->mapping.stages, 4);
  EXPECT_EQ((*made(20))->mapping.stages, 2);
  EXPECT_EQ((*made(12))->mapping.stages, 0);
  const auto failed = made(4);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().id, "ptx-shared-memory");
}

TEST(GpuSchedule, MoreStagesWhereTwoBlocksHaveRoom) {
  const auto stages = [](std::int64_t kib) {
    return scheduled(product({}), {.shared_bytes = kib << 10, .more_stages = 8, .persistent = true})
        ->mapping.stages;
  };
  EXPECT_EQ(stages(227), 8);
  EXPECT_EQ(stages(150), 7);
  EXPECT_EQ(stages(100), 4);
}

TEST(GpuSchedule, IsAsTheKernelRequestsIt) {
  using Producers = BlockRequest::Producers;
  const auto made = [](const BlockRequest& request, const Options& options, int n = 64) {
    Kernel kernel = parsed_kernel(product({.n = n}));
    kernel.block = request;
    return schedule(kernel, options);
  };
  EXPECT_EQ((*made({.stages = 2}, kMapping))->mapping.stages, 2);
  EXPECT_EQ((*made({.stages = 6}, kMapping))->mapping.stages, 6);
  EXPECT_EQ((*made({.warps = 8}, kMapping))->plan->threads(), 256);
  EXPECT_TRUE((*made({}, kMapping))->mapping.warp_specialized);
  EXPECT_FALSE((*made({.producers = Producers::None}, kMapping))->mapping.warp_specialized);
  const auto async = made({.producers = Producers::Async}, kMapping);
  EXPECT_TRUE((*async)->mapping.warp_specialized);
  EXPECT_EQ((*async)->mapping.maps, 0);
  EXPECT_EQ((*made({.producers = Producers::Tma}, kMapping))->mapping.maps, 2);
  const auto why_not = [&](const BlockRequest& request, const Options& options, int n = 64) {
    const auto found = made(request, options, n);
    EXPECT_FALSE(found);
    if (found) return std::string();
    EXPECT_EQ(found.error().id, "schedule-illegal");
    return found.error().message;
  };
  EXPECT_EQ(why_not({.stages = 6}, {.shared_bytes = 40 << 10}),
            "6 stages do not fit into shared memory");
  EXPECT_EQ(why_not({.warps = 2}, kMapping), "a program has 4 warps, not 2");
  EXPECT_EQ(why_not({.producers = Producers::Async}, {}),
            "there are no producer warps: blocks are not persistent");
  EXPECT_EQ(why_not({.producers = Producers::Tma}, kLooping),
            "producers cannot copy by TMA: the launcher does not support them");
}

TEST(GpuSchedule, ConsumerGroupsHaveMemoryOfTheirOwn) {
  const auto made = scheduled(product({}), kLooping);
  EXPECT_EQ(made->threads(), 2 * 128 + 128);
  const SharedMemoryUse& shared = made->program.shared;
  EXPECT_EQ(shared.own_bytes, 9 << 10);
  EXPECT_EQ(shared.bytes, 4 * 8192 + 1024 + 2 * (9 << 10));
}

TEST(GpuSchedule, OperationsWithoutGpuCodeAreDiagnostics) {
  const auto made =
      schedule(parsed_kernel("kernel talk(n: i64) { print(n) {message = \"n\"} }"), {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().id, "ptx-unsupported");
}

}  // namespace
}  // namespace tessera::tile::gpu
