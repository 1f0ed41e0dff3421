#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "examples/layer_norm.h"
#include "examples/softmax.h"
#include "tessera/codegen/ptx/gpu_form.h"
#include "tessera/codegen/ptx/ptx.h"
#include "tests/codegen/ptx_expect.h"

// Kernels that read rows, reduce and write them.

namespace tessera::codegen {
namespace {

namespace examples = tile::examples;
using ::testing::HasSubstr;
using ::testing::Not;

TestArguments layer_norm_arguments(DType dtype, std::int64_t rows, std::int64_t columns) {
  return TestArguments(1)
      .view(dtype, {rows, columns})
      .view(dtype, {columns})
      .view(dtype, {columns})
      .view(dtype, {rows, columns})
      .number(DType::F32, 1e-5);
}

TEST(PtxRows, SoftmaxOfRowsOfAnyWidth) {
  for (const std::int64_t n : {1, 3, 7, 64, 127, 1000})
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
      expect_emulated(examples::softmax(dtype, n),
                      TestArguments(1).view(dtype, {2, n}).view(dtype, {2, n}), {2, 1, 1},
                      dtype == DType::F32   ? 1e-6
                      : dtype == DType::F16 ? 1e-3
                                            : 1e-2);
}

TEST(PtxRows, SoftmaxInTwoPasses) {
  for (const std::int64_t n : {1, 100, 256})
    expect_emulated(examples::online_softmax(DType::F32, 64),
                    TestArguments(1).view(DType::F32, {2, n}).view(DType::F32, {2, n}), {2, 1, 1},
                    1e-6);
}

// A loop over blocks of a row behind a pointer, as Triton's layer norm has it.
TEST(PtxRows, DivisorsOfParametersMakeAccessesVectors) {
  const auto kernel = tile::parse_kernel(R"(kernel rows(x: *f32, out: *f32, stride: i32, n: i32) {
    zero: i32 = 0
    step: i32 = 512
    none: f32[512] = 0.0
    row: i64 = pid() {axis = 0}
    wide: i64 = cast(stride)
    first: i64 = mul(row, wide)
    source: *f32 = offset(x, first)
    target: *f32 = offset(out, first)
    extent: i64 = cast(n)
    from: view f32[?] = view(source, extent)
    to: view f32[?] = view(target, extent)
    for (i: i32 = zero to n step step) {
      at: i64 = cast(i)
      tile: f32[512] = vload(from, at)
      twice: f32[512] = add(tile, tile)
      vstore(to, at, twice)
    }
  })");
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  PtxOptions options{.triton_abi = true, .threads = 128};
  EXPECT_THAT(ptx_text(*kernel, options), HasSubstr("ld.global.u32"));
  options.divisors = {16, 16, 16, 16};
  const std::string text = ptx_text(*kernel, options);
  EXPECT_THAT(text, HasSubstr("ld.global.v4"));
  EXPECT_THAT(text, Not(HasSubstr("ld.global.u32")));
  EXPECT_THAT(text, HasSubstr(".maxntid 128"));
  options.divisors = {16, 4, 16, 16};  // stores are not aligned
  EXPECT_THAT(ptx_text(*kernel, options), HasSubstr("st.global.f32"));
}

// Loops over blocks have a version of one iteration, which loads the row once.
TEST(PtxRows, LoopsOverBlocksOfARow) {
  const auto kernel = tile::parse_kernel(R"(kernel centered(x: *f32, out: *f32, n: i32) {
    zero: i32 = 0
    step: i32 = 256
    none: f32[256] = 0.0
    row: i64 = pid() {axis = 0}
    extent: i64 = cast(n)
    first: i64 = mul(row, extent)
    source: *f32 = offset(x, first)
    target: *f32 = offset(out, first)
    from: view f32[?] = view(source, extent)
    to: view f32[?] = view(target, extent)
    total: f32[256] = for (i: i32 = zero to n step step, sum: f32[256] = none) {
      at: i64 = cast(i)
      tile: f32[256] = vload(from, at)
      more: f32[256] = add(sum, tile)
      yield(more)
    }
    all: f32 = reduce(total) {fn = add, axis = 0}
    count: f32 = cast(n)
    mean: f32 = div(all, count)
    means: f32[256] = broadcast(mean)
    for (i: i32 = zero to n step step) {
      at: i64 = cast(i)
      tile: f32[256] = vload(from, at)
      apart: f32[256] = sub(tile, means)
      vstore(to, at, apart)
    }
  })");
  ASSERT_TRUE(kernel) << to_string(kernel.error());
  for (const std::int64_t n : {1, 100, 256, 257, 700})
    expect_emulated(*kernel,
                    TestArguments(1)
                        .pointer(DType::F32, 3 * n)
                        .pointer(DType::F32, 3 * n)
                        .integer(DType::I32, n),
                    {3, 1, 1}, 1e-5);
  const auto form = block_form_of(*kernel, {});
  ASSERT_TRUE(form) << to_string(form.error());
  const auto branch = form->find("\n  if("), loop = form->find("for(op");
  EXPECT_LT(branch, loop);  // its first version has none
}

TEST(PtxRows, ARowInAWarpNeedsNoSharedMemory) {
  const auto kernel = examples::softmax(DType::F16, 512);
  const auto compiled = ptx_of(*kernel, {.persistent = true});
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  EXPECT_EQ(compiled->threads, 128);
  EXPECT_EQ(compiled->programs, 4);  // a warp each
  EXPECT_EQ(compiled->shared_bytes, 0);
  EXPECT_FALSE(compiled->persistent);
  EXPECT_THAT(compiled->text, Not(HasSubstr("bar.sync")));
  EXPECT_THAT(compiled->text, HasSubstr("shfl.sync.bfly"));
  EXPECT_THAT(compiled->text, HasSubstr("ex2.approx"));
}

// Each has its part of the shared memory: results of rows that share a warp are exchanged there.
TEST(PtxRows, WarpsOfABlockExchangeOnTheirOwn) {
  for (const std::int64_t n : {64, 70, 301, 333, 512, 700, 1500}) {
    const tile::Kernel kernel =
        parsed(fmt::format(R"(kernel sums(x: view f16[?, {0}], out: view f16[?]) {{
      t: f32[1, {0}] = cast(vload(x, pid(), 0): f16[1, {0}])
      vstore(out, pid(), cast(reduce(t) {{fn = add, axis = 1}}): f16[1])
    }})",
                           n));
    const auto compiled = ptx_of(kernel, {.persistent = true});
    ASSERT_TRUE(compiled) << to_string(compiled.error());
    if (n <= 512) {
      EXPECT_GE(compiled->threads, 128);
      EXPECT_THAT(compiled->text, Not(HasSubstr("bar.sync")));
    }
    for (const std::int64_t rows : {1, 70})
      expect_emulated(kernel, TestArguments(1).view(DType::F16, {rows, n}).view(DType::F16, {rows}),
                      {rows, 1, 1}, 4e-3, {.persistent = true});
  }
}

// Two blocks are emulated, with several rows each.
TEST(PtxRows, BlocksGoOnWithTheNextRows) {
  const PtxOptions looping = {.persistent = true},
                   ahead_of_warps = {.persistent = true, .prefetched_rows = 1, .coarsening = 1};
  const auto compiled = ptx_of(*examples::layer_norm(DType::F16, 512), ahead_of_warps);
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  EXPECT_TRUE(compiled->persistent);
  EXPECT_EQ(compiled->programs, 4);                    // a warp each
  EXPECT_EQ(compiled->shared_bytes, 4 * 3 * 512 * 2);  // the next row and the parameters of each
  EXPECT_THAT(compiled->text, HasSubstr("cp.async.cg.shared.global"));
  EXPECT_THAT(compiled->text, Not(HasSubstr("bar.sync")));
  EXPECT_TRUE(ptx_of(*examples::softmax(DType::F16, 32768), looping)->persistent);
  EXPECT_FALSE(ptx_of(*examples::softmax(DType::F16, 32768))->persistent);
  struct Case {
    std::int64_t columns, rows;
    int ahead;
  };
  for (const auto& [columns, rows, ahead] :
       {Case{512, 1, 1}, Case{512, 7, 1}, Case{520, 9, 1}, Case{500, 9, 1}, Case{4096, 9, 1},
        Case{512, 29, 2}, Case{520, 1, 3}, Case{4096, 9, 3}}) {
    const PtxOptions some_ahead = {.persistent = true, .prefetched_rows = ahead};
    expect_emulated(examples::layer_norm(DType::F16, columns),
                    layer_norm_arguments(DType::F16, rows, columns), {rows, 1, 1}, 4e-3,
                    some_ahead);
  }
}

// Elements that do not lie side by side are not copied ahead: there is no run of them.
TEST(PtxRows, BlocksGoOnWithRowsThatHaveGaps) {
  const tile::Kernel kernel = parsed(
      R"(kernel gaps(x: view f16[?, 512] by [1024, 2], scale: view f16[512], out: view f32[?]) {
    row = pid()
    t: f16[1, 512] = vload(x, row, 0)
    s: f16[512] = vload(scale, 0)
    products = mul(cast(reshape(t): f16[512]): f32[512], cast(s): f32[512])
    sum: f32[1] = reshape(reduce(products) {fn = add, axis = 0})
    vstore(out, row, sum)
  })");
  const PtxOptions looping = {.persistent = true, .prefetched_rows = 1};
  EXPECT_TRUE(ptx_of(kernel, looping)->persistent);
  expect_emulated(kernel,
                  TestArguments(1)
                      .view(DType::F16, {5, 512}, {1024, 2})
                      .view(DType::F16, {512})
                      .view(DType::F32, {5}),
                  {5, 1, 1}, 1e-3, looping);
}

TEST(PtxRows, BlocksDoNotGoOnWhereProgramsMeet) {
  const auto compiled = ptx_of(parsed(R"(kernel counted(x: view f32[?, 64], total: *f32) {
    t: f32[1, 64] = vload(x, pid(), 0)
    s = reduce(reshape(t): f32[64]) {fn = add, axis = 0}
    old: f32 = atomic(total, s) {fn = add}
  })"),
                               {.persistent = true});
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  EXPECT_FALSE(compiled->persistent);
}

TEST(PtxRows, NormalizesLayers) {
  for (const std::int64_t n : {1, 100, 129})
    expect_emulated(examples::layer_norm(DType::F32, n), layer_norm_arguments(DType::F32, 2, n),
                    {2, 1, 1}, 1e-5);
}

TEST(PtxRows, WarpsMeetOnceForBothSums) {
  const auto compiled = ptx_of(*examples::layer_norm(DType::F16, 1024));
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  const auto count = [&](std::string_view what) {
    int found = 0;
    for (auto at = compiled->text.find(what); at != std::string::npos;
         at = compiled->text.find(what, at + 1))
      ++found;
    return found;
  };
  // Once where all is aligned; elsewhere once more, before a result could replace a parameter.
  EXPECT_EQ(count("bar.sync"), 3) << compiled->text;
  EXPECT_EQ(count("ld.global.nc.v4"), 4);  // of weights and biases
}

// Places that are aligned or not, rows that are there or not, and results that replace their rows.
TEST(PtxRows, RowsOfAnyPlace) {
  constexpr const char* kScaled = R"(kernel scaled(x: view f16[?, {0}] by [?, 1],
                                                   out: view f16[?, {0}] by [?, 1]) {{
    row = pid()
    t: f32[1, {0}] = cast(vload(x, row, 0): f16[1, {0}])
    all: f32[1, 1] = reshape(reduce(mul(t, t)) {{fn = add, axis = 1}})
    vstore(out, row, 0, cast(div(t, broadcast(all): f32[1, {0}])): f16[1, {0}])
  }})";
  for (const std::int64_t columns : {256, 512, 768, 1024, 2500}) {
    for (const std::int64_t gap : {0, 1, 8}) {
      const std::int64_t rows = 3;
      expect_emulated(parsed(fmt::format(kScaled, columns)),
                      TestArguments(1)
                          .view(DType::F16, {rows, columns}, {columns + gap, 1})
                          .view(DType::F16, {rows, columns}, {columns + gap, 1}),
                      {rows + 2, 1, 1}, 1e-3);
    }
  }
}

// What all programs write before they read it is no parameter.
TEST(PtxRows, ReadsWhatTheProgramItselfWrote) {
  expect_emulated(parsed(R"(kernel written(x: view f32[?, 512], w: view f32[512],
                                           out: view f32[?, 512]) {
    row = pid()
    t: f32[1, 512] = vload(x, row, 0)
    fives: f32[512] = 5.0
    vstore(w, 0, fives)
    v: f32[512] = vload(w, 0)
    s: f32[1, 1] = reshape(reduce(t) {fn = max, axis = 1})
    vstore(out, row, 0, add(mul(t, reshape(v): f32[1, 512]), broadcast(s): f32[1, 512]))
  })"),
                  TestArguments(1)
                      .view(DType::F32, {5, 512})
                      .view(DType::F32, {512})
                      .view(DType::F32, {5, 512}),
                  {5, 1, 1}, 1e-5);
}

// Fewer programs than rows too: what no program asked for stays as it was.
TEST(PtxRows, OneProgramTakesTheRowsOfSeveral) {
  for (const int together : {2, 4}) {
    for (const std::int64_t columns : {256, 250, 1032}) {
      for (const std::int64_t rows : {1, 9}) {
        for (const bool loops : {false, true}) {
          SCOPED_TRACE(::testing::Message() << together << " of " << rows << " x " << columns);
          const PtxOptions options = {
              .persistent = loops, .prefetched_rows = loops ? 1 : -1, .coarsening = together};
          expect_emulated(examples::layer_norm(DType::F16, columns),
                          layer_norm_arguments(DType::F16, rows, columns), {rows - rows / 5, 1, 1},
                          4e-3, options);
          expect_emulated(
              examples::softmax(DType::F16, columns),
              TestArguments(1).view(DType::F16, {rows, columns}).view(DType::F16, {rows, columns}),
              {rows, 1, 1}, 1e-3, options);
        }
      }
    }
  }
}

// Parts of 256 elements: rows that end with a part or not, that are aligned or not.
TEST(PtxRows, LongRowsAreReadInParts) {
  const PtxOptions parts = {.bytes_per_thread = 16, .part = 256};
  EXPECT_EQ(ptx_of(*examples::softmax(DType::F16, 1000), parts)->threads, 32);
  EXPECT_EQ(ptx_of(*examples::softmax(DType::F32, 1000), parts)->threads, 64);
  // With nothing kept in shared memory, some parts, and all.
  const PtxOptions some = {.bytes_per_thread = 16, .part = 256, .cached_bytes = 1024},
                   all = {.persistent = true,
                          .bytes_per_thread = 32,
                          .part = 512,
                          .cached_bytes = 1 << 16};
  struct Case {
    std::int64_t rows, n;
    DType dtype;
    PtxOptions options;
  };
  for (const Case& c : {Case{9, 512, DType::F16, parts}, Case{1, 1000, DType::F16, all},
                        Case{5, 1001, DType::F16, some}, Case{9, 1001, DType::BF16, all},
                        Case{2, 1026, DType::F16, all}, Case{5, 1026, DType::F32, some},
                        Case{5, 1000, DType::F32, parts}, Case{9, 1001, DType::F32, all}}) {
    SCOPED_TRACE(::testing::Message() << c.n << ' ' << to_string(c.dtype));
    const double tolerance = c.dtype == DType::F32 ? 1e-5 : c.dtype == DType::F16 ? 4e-3 : 3e-2;
    expect_emulated(examples::softmax(c.dtype, c.n),
                    TestArguments(1).view(c.dtype, {c.rows, c.n}).view(c.dtype, {c.rows, c.n}),
                    {c.rows, 1, 1}, tolerance, c.options);
    expect_emulated(examples::layer_norm(c.dtype, c.n), layer_norm_arguments(c.dtype, c.rows, c.n),
                    {c.rows, 1, 1}, tolerance, c.options);
  }
}

// Results that lie where the row is, before it, behind it, or on its other end.
TEST(PtxRows, PartsOfRowsThatAreWrittenWhereTheyAreRead) {
  constexpr const char* kScaled = R"(kernel scaled(p: *f16) {{
    x: view f16[3, 600] by [1200, 1] = view(offset(p, {0}))
    out: view f16[3, 600] by [1200, 1] = view(offset(p, {1}))
    row = pid()
    t: f32[1, 600] = cast(vload(x, row, 0): f16[1, 600])
    all: f32[1, 1] = reshape(reduce(mul(t, t)) {{fn = add, axis = 1}})
    vstore(out, row, 0, cast(div(t, broadcast(all): f32[1, 600])): f16[1, 600])
  }})";
  for (const auto& [from, to] : {std::pair(0, 0), std::pair(0, 5), std::pair(5, 0), std::pair(8, 0),
                                 std::pair(0, 300), std::pair(300, 0), std::pair(0, 600)}) {
    SCOPED_TRACE(::testing::Message() << from << " to " << to);
    expect_emulated(parsed(fmt::format(kScaled, from, to)),
                    TestArguments(1).pointer(DType::F16, 3600), {3, 1, 1}, 1e-3,
                    {.bytes_per_thread = 16, .part = 256});
  }
}

TEST(PtxRows, RowsThatBeginAnywhereAreCutWhereAccessesAreAligned) {
  const auto found = gpu_form_of(*examples::softmax(DType::F32, 8001), {});
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_THAT(*found, HasSubstr("8001 elements in parts of 2048"));
  for (const DType dtype : {DType::F32, DType::F16})  // of 2 bytes: as a whole
    expect_emulated(examples::softmax(dtype, 3001),
                    TestArguments(1).view(dtype, {9, 3001}).view(dtype, {9, 3001}), {9, 1, 1},
                    dtype == DType::F32 ? 1e-5 : 1e-3);
}

// A view that ends before the row does, and rows that are not there.
TEST(PtxRows, PartsOfRowsThatLeaveTheirViews) {
  const tile::Kernel kernel = parsed(R"(kernel padded(x: view f16[?, ?], out: view f16[?, ?]) {
    row = pid()
    t: f32[1, 600] = cast(vload(x, row, 0) {pad = 2.0}: f16[1, 600])
    all: f32[1, 1] = reshape(reduce(t) {fn = maximum, axis = 1})
    vstore(out, row, 0, cast(add(t, broadcast(all): f32[1, 600])): f16[1, 600])
  })");
  for (const std::int64_t columns : {520, 600, 601, 640, 700})
    expect_emulated(kernel,
                    TestArguments(1).view(DType::F16, {3, columns}).view(DType::F16, {3, columns}),
                    {5, 1, 1}, 1e-3, {.bytes_per_thread = 16, .part = 256});
}

}  // namespace
}  // namespace tessera::codegen
