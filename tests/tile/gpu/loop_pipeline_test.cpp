#include "tessera/tile/gpu/loop_pipeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/tile/gpu/schedule.h"
#include "tessera/tile/gpu/tensor_maps.h"
#include "tests/tile/passes/pass_check.h"

// Which operands of loops are prefetched, and each reason why not.

namespace tessera::tile::gpu {
namespace {

using tessera::testing::parsed_kernel;

/// A loop of one matmul, whose first operand is `x` and whose second one is no load.
struct Loop {
  std::string x = "x: f16[64, 32] = vload(a, row, k)", before = "", params = "", end = "";
  std::string y = "y: f16[32, 64] = vload(b, row, 0)";  // before the loop
};
std::unique_ptr<ScheduledKernel> loop_of(const Loop& of) {
  const std::string text = fmt::format(
      R"(kernel k(a: view f16[?, ?], b: view f16[?, 64], c: view f32[?, 64], at: *i32, n: i64{}) {{
  row = mul(pid(), 64)
  {}
  {}
  sum = for (k = 0 to n step 32, acc: f32[64, 64] = 0.0) {{
    {}
    s = dot(x, y, acc)
    {}
    yield(s)
  }}
  vstore(c, row, 0, sum)
}})",
      of.params, of.before, of.y, of.x, of.end);
  auto made = schedule(parsed_kernel(text), {});
  EXPECT_TRUE(made) << to_string(made.error());
  return *std::move(made);
}

const Operation& first_loop(const ScheduledKernel& scheduled) {
  const Kernel& kernel = scheduled.kernel;
  const auto found = std::find_if(kernel.body.ops.begin(), kernel.body.ops.end(),
                                  [&](OpId id) { return kernel.ops[id].code == Code::For; });
  return kernel.ops[*found];
}

/// Why nothing is prefetched, without the reason for y.
std::string why_not(const Loop& of) {
  const auto scheduled = loop_of(of);
  std::string why = pipeline_of(*scheduled->planned, first_loop(*scheduled), 4).why_not();
  const std::string y = "y: it is computed before the loop";
  if (const std::size_t at = why.find(y); at != std::string::npos) why.erase(at, y.size());
  while (why.starts_with("; ")) why.erase(0, 2);
  while (why.ends_with("; ")) why.erase(why.size() - 2);
  return why;
}

TEST(LoopPipeline, PrefetchesTilesThatOnlyMatmulsRead) {
  EXPECT_EQ(why_not({}), "");
  EXPECT_EQ(why_not({.x = "t: f16[32, 64] = vload(a, row, k)\n x = permute(t) {order = [1, 0]}"}),
            "");
  EXPECT_EQ(why_not({.x = "t: f16[64, 32] = vload(a, row, k)\n x = add(t, t)"}),
            "x: it is computed");
  EXPECT_EQ(why_not({.end = "vstore(a, row, 0, x)"}), "it stores to memory");
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(a, row, k)\n z = reduce(x) {fn = max, axis = 1}\n"
                          "atomic(at, cast(reduce(z) {fn = max, axis = 0}): i32) {fn = add}"}),
            "it stores to memory");
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(a, row, k) {pad = 1.0}"}),
            "x: its padding value is not 0");
  EXPECT_EQ(
      why_not({.x = "x: f16[64, 20] = vload(a, row, k)", .y = "y: f16[20, 64] = vload(b, row, 0)"}),
      "x: its rows are not a multiple of 16 bytes");
  EXPECT_EQ(
      why_not({.x = "x: f16[64, 8] = vload(a, row, k)", .y = "y: f16[8, 64] = vload(b, row, 0)"}),
      "x: it has fewer than 16 rows or columns");
}

TEST(LoopPipeline, NeedsLoopInvariantViewsWithContiguousRows) {
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(d, row, k)",
                     .params = ", d: view f16[?, ?] by [?, ?]"}),
            "x: no axis is known to be contiguous");
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(d, row, k)",
                     .params = ", d: view f16[?, ?] by [1, ?]"}),
            "");
  EXPECT_EQ(why_not({.x = "v: view f16[64, 64] = view(offset(base(a), mul(k, k)))\n"
                          "x: f16[64, 32] = vload(v, 0, 0)"}),
            "x: its view is defined in the loop");
  // One that advances is hoisted.
  EXPECT_EQ(why_not({.x = "v: view f16[64, 64] = view(offset(base(a), k))\n"
                          "x: f16[64, 32] = vload(v, 0, 0)"}),
            "");
}

TEST(LoopPipeline, NeedsAddressesThatAreKnownInAdvance) {
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(a, add(row, k), mul(k, 3))"}), "");
  EXPECT_EQ(why_not({.x = "j: i32 = load(at)\n x: f16[64, 32] = vload(a, row, cast(j): i64)"}),
            "x: its addresses are not known in advance");
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(a, div(k, 3), rem(k, n))"}),
            "x: 16-byte accesses may be unaligned in some iterations");
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(a, div(k, 3), mul(rem(k, n), 8))"}), "");
}

/// Tensor maps copy whole panels: wgmma reads 16 columns at a time.
TEST(LoopPipeline, PadsExtentsToPowersOfTwo) {
  for (const auto& [columns, why] :
       {std::pair(48, ""), {40, "the extents of a tile are not powers of two"}}) {
    const auto scheduled =
        loop_of({.x = fmt::format("x: f16[64, {}] = vload(a, row, k)", columns),
                 .y = fmt::format("y: f16[{}, 64] = vload(b, row, 0)", columns)});
    const auto pipeline = pipeline_of(*scheduled->planned, first_loop(*scheduled), 4);
    ASSERT_TRUE(pipeline) << pipeline.why_not();
    EXPECT_EQ(pipeline->operands[0].panels.rows, 64);
    EXPECT_EQ(pipeline->operands[0].panels.columns, 64);
    EXPECT_EQ(tensor_maps_of(*scheduled->planned, *pipeline).why_not(), why);
  }
}

TEST(LoopPipeline, NeedsEightBitOperandsContiguousAlongK) {
  const auto operands = [](const std::string& y) {
    const auto scheduled =
        schedule(parsed_kernel(fmt::format(
                     R"(kernel k(a: view i8[?, ?], b: view i8[?, ?], c: view i32[?, ?], n: i64) {{
  sum = for (k = 0 to n step 32, acc: i32[64, 64] = 0) {{
    x: i8[64, 32] = vload(a, 0, k)
    {}
    yield(dot(x, y, acc))
  }}
  vstore(c, 0, 0, sum)
}})",
                     y)),
                 {});
    EXPECT_TRUE(scheduled) << to_string(scheduled.error());
    const auto pipeline = pipeline_of(*(*scheduled)->planned, first_loop(**scheduled), 4);
    return pipeline ? pipeline->operands.size() : 0;
  };
  EXPECT_EQ(operands("t: i8[64, 32] = vload(b, 0, k)\n y = permute(t) {order = [1, 0]}"), 2U);
  EXPECT_EQ(operands("y: i8[32, 64] = vload(b, k, 0)"), 1U);
}

TEST(LoopPipeline, NeedsTwoStages) {
  const auto scheduled = loop_of({});
  const Operation& loop = first_loop(*scheduled);
  EXPECT_EQ(pipeline_of(*scheduled->planned, loop, 1).why_not(),
            "shared memory has no room for two stages");
  const auto pipeline = pipeline_of(*scheduled->planned, loop, 2);
  ASSERT_TRUE(pipeline);
  ASSERT_EQ(pipeline->operands.size(), 1u);
  EXPECT_EQ(pipeline->operands[0].panels.rows, 64);
  EXPECT_EQ(pipeline->operands[0].panels.row_bytes(), 64);
  EXPECT_EQ(pipeline->bytes, 4096);
  EXPECT_TRUE(pipeline->pending.empty());  // y is not staged
}

TEST(LoopDependence, ClassifiesScalarsOfALoop) {
  const auto scheduled =
      loop_of({.x = "i = add(mul(k, 2), row)\n j = div(k, 2)\n"
                    "l: i32 = load(at)\n"
                    "x: f16[64, 32] = vload(a, add(add(i, j), cast(l): i64), k)"});
  const Operation& loop = first_loop(*scheduled);
  const auto dependence = [&](const std::string& name) {
    const Kernel& kernel = scheduled->kernel;
    for (ValueId id = 0; id < kernel.values.size(); ++id)
      if (kernel.values[id].name == name &&
          (id == loop.regions[0].params[0] || scheduled->planned->definitions[id].has_value()))
        return loop_dependence(*scheduled->planned, loop, id);
    ADD_FAILURE() << "no " << name;
    return LoopDependence::Unknown;
  };
  EXPECT_EQ(dependence("row"), LoopDependence::Fixed);
  EXPECT_EQ(dependence("k"), LoopDependence::Linear);
  EXPECT_EQ(dependence("i"), LoopDependence::Linear);
  EXPECT_EQ(dependence("j"), LoopDependence::Known);
  EXPECT_EQ(dependence("l"), LoopDependence::Unknown);
}

TEST(TensorMapsOf, NeedViewsThatTheLauncherKnows) {
  const auto why = [](const Loop& of) {
    const auto scheduled = loop_of(of);
    const auto pipeline = pipeline_of(*scheduled->planned, first_loop(*scheduled), 4);
    EXPECT_TRUE(pipeline) << pipeline.why_not();
    return tensor_maps_of(*scheduled->planned, *pipeline).why_not();
  };
  EXPECT_EQ(why({}), "");
  const auto made = [](const std::string& view) {
    return Loop{.x = "x: f16[64, 32] = vload(v, 0, k)", .before = view};
  };
  EXPECT_EQ(why(made("v: view f16[128, 64] = view(offset(base(a), 16))")), "");
  EXPECT_EQ(why(made("v: view f16[128, 64] = view(offset(base(a), 3))")),
            "a view is not aligned to 16 bytes");
  EXPECT_EQ(why(made("v: view f16[128, 64] = view(offset(base(a), row))")),
            "a view is neither a parameter nor made of one with static extents and strides");
  EXPECT_EQ(why({.x = "t: f16[1, 1, 1, 1, 64, 32] = vload(d, 0, 0, 0, 0, row, k)\n"
                      "x: f16[64, 32] = reshape(t)",
                 .params = ", d: view f16[?, ?, ?, ?, ?, ?]"}),
            "a tile is not a box that TMA supports");
}

}  // namespace
}  // namespace tessera::tile::gpu
