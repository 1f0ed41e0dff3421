#include "tessera/tile/gpu/schedule.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/tile/passes/simplify.h"
#include "tests/tile/passes/pass_check.h"

// Text in, text out: what is decided of a kernel, and why not.

namespace tessera::tile::gpu {
namespace {

using tessera::testing::anonymous;
using tessera::testing::parsed_kernel;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<Scheduled> scheduled(std::string_view text, const Options& options = {}) {
  auto made = schedule(parsed_kernel(text), options);
  EXPECT_TRUE(made) << to_string(made.error());
  return *std::move(made);
}

std::string decided(std::string_view text, const Options& options = {}) {
  return to_text(*scheduled(text, options));
}

const Options kLooping = {.loops = true}, kMapping = {.loops = true, .maps = true};

/// A product in a loop; `before` stands before it, `place` says where rows of b begin, `from` what
/// a is loaded from.
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

TEST(GpuSchedule, SaysAllOfAProduct) {
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
      R"(// a block of 384 threads: two teams of 128 compute with 216 registers each, 128 copy with 64, then further ones
// 2 tensor maps
// L0: registers [1:0 0:3 1:3-5], threads [1:1-2 0:0-2 0:4-5]
// L1: registers [1:0-1 0:3-5], threads [1:2-5 0:0-2]
kernel product(a: view f16[?, ?], b: view f16[?, 64], n: i64, c: view f32[?, 64]) {
  v0: i64 = pid() {axis = 0}
  v1: i64 = 64
  row: i64 = mul(v0, v1)
  v2: i64 = 0
  v3: i64 = 32
  v4: f32[64, 64] = 0.0  // made where it is used
  sum: f32[64, 64] = for (k: i64 = v2 to n step v3, acc: f32[64, 64] = v4) {  // 4 stages of 8192 bytes, filled by tensor maps; its product goes on into the next round
    x: f16[64, 32] = vload(a, row, k)  // in the ring: 64 rows of 64 bytes
    y: f16[32, 64] = vload(b, k, v2)  // in the ring: 32 rows of 128 bytes
    s: f32[64, 64] = dot(x, y, acc)  // L0: wgmma m64n64k16 of the ring and the ring
    yield(s)
  }
  vstore(c, row, v2, sum)  // L1, up to 16 bytes at a time
}
)");
}

TEST(GpuSchedule, ProductsAreByTheWidestInstructionThatFits) {
  EXPECT_THAT(decided(product({.m = 128, .n = 256})),
              HasSubstr("wgmma m64n256k16 of the ring and the ring"));
  EXPECT_THAT(decided(product({.m = 32})),
              HasSubstr("mma m16n8k16 (no wgmma: fewer than 64 rows)"));
  EXPECT_THAT(decided(product({.n = 8})), HasSubstr("(no wgmma: fewer than 16 columns"));
  EXPECT_THAT(decided(product({}), {.warpgroups = false}),
              HasSubstr("(no wgmma: the GPU has no wgmma)"));
  EXPECT_THAT(decided(product({.dtype = "f32"}), {.tf32 = true}),
              HasSubstr("mma m16n8k8 (no wgmma: not of f16 or bf16)"));
  EXPECT_THAT(decided(product({.dtype = "f32"})),
              HasSubstr("multiplications and additions of threads"));
}

TEST(GpuSchedule, LoopsCopyAheadWhatOnlyProductsRead) {
  EXPECT_THAT(decided(product({})),
              HasSubstr("4 stages of 8192 bytes, copied ahead by all threads"));
  EXPECT_THAT(decided(product({.dtype = "f32"})),
              HasSubstr("nothing is copied ahead: it has no product by tensor cores"));
  EXPECT_THAT(decided(product({}), {.stages = 1}),
              HasSubstr("nothing is copied ahead: there is no room for two stages"));
}

TEST(GpuSchedule, RolesNeedALoopBeforeAnyWriteWhosePlacesAreKnown) {
  const auto why = [](const Product64& of, const Options& options = kLooping) {
    const auto made = scheduled(product(of), options);
    return made->roles ? "" : made->roles.why_not();
  };
  EXPECT_EQ(why({}), "");
  EXPECT_EQ(why({.before = "first = add(row, 8)", .place = "add(k, first)"}), "");
  EXPECT_EQ(why({}, {}), "blocks do not go on with further programs");
  EXPECT_EQ(why({}, {.loops = true, .roles = false}), "none are wanted");
  EXPECT_EQ(why({.dtype = "f32"}), "no product is by warpgroups");
  EXPECT_EQ(why({.before = "old: i32 = atomic(at, 1) {fn = add}"}),
            "programs may wait for each other");
  EXPECT_EQ(why({.before = "zeros: f32[64, 64] = 0.0\n vstore(c, row, 0, zeros)"}),
            "a write comes before the loop");
  EXPECT_EQ(why({.before = "first: i32 = load(at)", .place = "add(k, cast(first): i64)"}),
            "where it reads does not follow from arguments and the grid alone");
  EXPECT_EQ(why({.to = "64"}), "");  // two rounds
  EXPECT_EQ(why({.to = "256", .m = 128, .n = 256}), "");
  EXPECT_EQ(why({.to = "256"}), "they would not pay for tiles and rounds like these");
  EXPECT_EQ(why({}, {.stages = 2, .loops = true}), "no product goes on into the next round");
}

TEST(GpuSchedule, MapsNeedViewsThatWhoLaunchesKnows) {
  EXPECT_THAT(decided(product({}), kMapping), HasSubstr("2 tensor maps"));
  EXPECT_THAT(decided(product({}), kLooping), HasSubstr("no tensor maps: who launches makes none"));
}

TEST(GpuSchedule, RowsAreSpreadByTheirSize) {
  const auto row = [](int columns, const Options& options = kLooping) {
    return decided(fmt::format(fmt::runtime(kRow), columns), options);
  };
  EXPECT_THAT(row(256), HasSubstr("rows: 64 bytes a thread, 2 programs together"));
  EXPECT_THAT(row(4096),
              HasSubstr("a block of 256 threads: one program\n// rows: 32 bytes a thread\n"));
  EXPECT_THAT(row(32768),
              HasSubstr(", then further ones\n// rows: 64 bytes a thread, 64 registers, 1 ahead"));
  EXPECT_THAT(row(32768), HasSubstr("up to 16 bytes at a time; copied 1 ahead"));
  EXPECT_THAT(row(32768, {}), Not(HasSubstr("ahead")));
}

TEST(GpuSchedule, LongRowsAreCutIntoParts) {
  const auto row = [](int columns, const Options& options = kLooping) {
    return decided(fmt::format(fmt::runtime(kRow), columns), options);
  };
  EXPECT_THAT(row(50257), HasSubstr("a block of 512 threads: one program\n"));
  EXPECT_THAT(row(50257), HasSubstr("50257 elements in parts of 8192, 114688 bytes kept"));
  EXPECT_THAT(row(151936), HasSubstr("151936 elements in parts of 32768, 229376 bytes kept"));
  EXPECT_THAT(row(151936, {.shared_bytes = 99 << 10}), HasSubstr("99328 bytes kept"));
  EXPECT_THAT(row(8001), HasSubstr("8001 elements in parts of 2048"));
  EXPECT_THAT(row(8000), Not(HasSubstr("parts")));
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
  EXPECT_THAT(scaled(4096), HasSubstr("rows: 32 bytes a thread, 40 registers\n"));
  EXPECT_THAT(scaled(4096), HasSubstr("at a time; the same for all programs\n"));
  EXPECT_THAT(scaled(32768, {.loops = true, .rows_ahead = 1}),
              HasSubstr("at a time; copied once for all programs\n"));
}

TEST(GpuSchedule, FewerStagesOrNoRolesWhereSharedMemoryIsShort) {
  const Options options = {.shared_bytes = 40 << 10, .loops = true};
  const auto made = scheduled(product({}), options);  // 8 KiB a stage
  const auto fits = [&](std::int64_t others) {
    return *fit(*made, options, {.bytes = 8192 * made->shape.stages + others});
  };
  EXPECT_TRUE(fits(8192));
  EXPECT_EQ(made->shape.stages, 4);
  EXPECT_FALSE(fits(8193));
  EXPECT_EQ(made->shape.stages, 3);
  EXPECT_TRUE(fits(8193));
  EXPECT_EQ(made->shared_bytes, 3 * 8192 + 8193);
  EXPECT_FALSE(fits(16385));
  EXPECT_EQ(made->roles.why_not(), "3 stages have no room in shared memory");
  EXPECT_EQ(made->shape.stages, 4);
  EXPECT_FALSE(fits(16385));
  EXPECT_EQ(made->shape.stages, 2);
  EXPECT_FALSE(fits(24577));
  EXPECT_EQ(made->shape.stages, 0);
  const auto failed = fit(*made, options, {.bytes = (40 << 10) + 1});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().id, "ptx-shared-memory");
}

TEST(GpuSchedule, MoreStagesWhereTwoBlocksHaveRoom) {
  const Options options = {.shared_bytes = 100 << 10, .more_stages = 8, .loops = true};
  const auto made = scheduled(product({}), options);
  EXPECT_EQ(made->shape.stages, 8);
  EXPECT_FALSE(*fit(*made, options, {.bytes = 64 << 10}));
  EXPECT_EQ(made->shape.stages, 6);
  EXPECT_TRUE(*fit(*made, options, {.bytes = 48 << 10}));
}

TEST(GpuSchedule, TeamsHaveMemoryOfTheirOwn) {
  const auto made = scheduled(product({}), kLooping);
  EXPECT_EQ(made->threads(), 2 * 128 + 128);
  const Taken taken{.bytes = 50000, .own_bytes = 4096};
  EXPECT_FALSE(*fit(*made, kLooping, taken));
  EXPECT_EQ(made->shape.own_bytes, 4096);
  EXPECT_TRUE(*fit(*made, kLooping, taken));
}

}  // namespace
}  // namespace tessera::tile::gpu
