#include "tessera/tile/gpu/ahead.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/tile/gpu/maps.h"
#include "tessera/tile/gpu/schedule.h"
#include "tests/tile/passes/pass_check.h"

// What loops copy ahead, from where, and each reason why not.

namespace tessera::tile::gpu {
namespace {

using tessera::testing::parsed_kernel;

/// A loop of one product, whose first operand is `x` and whose second one is no load.
struct Loop {
  std::string x = "x: f16[64, 32] = vload(a, row, k)", before = "", params = "", end = "";
  std::string y = "y: f16[32, 64] = vload(b, row, 0)";  // before the loop
};
std::unique_ptr<Scheduled> loop_of(const Loop& of) {
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

const Operation& first_loop(const Scheduled& scheduled) {
  const Kernel& kernel = scheduled.kernel;
  const auto found = std::find_if(kernel.body.ops.begin(), kernel.body.ops.end(),
                                  [&](OpId id) { return kernel.ops[id].code == Code::For; });
  return kernel.ops[*found];
}

/// Why nothing is copied ahead; without what is said of y.
std::string why_not(const Loop& of) {
  const auto scheduled = loop_of(of);
  std::string why = copies_ahead(*scheduled->planned, first_loop(*scheduled), 4).why_not();
  const std::string y = "y: it is made before the loop";
  if (const std::size_t at = why.find(y); at != std::string::npos) why.erase(at, y.size());
  while (why.starts_with("; ")) why.erase(0, 2);
  while (why.ends_with("; ")) why.erase(why.size() - 2);
  return why;
}

TEST(CopiesAhead, AreOfTilesThatProductsAloneRead) {
  EXPECT_EQ(why_not({}), "");
  EXPECT_EQ(why_not({.x = "t: f16[32, 64] = vload(a, row, k)\n x = permute(t) {order = [1, 0]}"}),
            "");
  EXPECT_EQ(why_not({.x = "t: f16[64, 32] = vload(a, row, k)\n x = add(t, t)"}),
            "x: it is computed");
  EXPECT_EQ(why_not({.end = "vstore(a, row, 0, x)"}), "it writes");
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(a, row, k)\n z = reduce(x) {fn = max, axis = 1}\n"
                          "atomic(at, cast(reduce(z) {fn = max, axis = 0}): i32) {fn = add}"}),
            "it writes");
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(a, row, k) {pad = 1.0}"}),
            "x: it is not 0 outside of its view");
  EXPECT_EQ(
      why_not({.x = "x: f16[64, 20] = vload(a, row, k)", .y = "y: f16[20, 64] = vload(b, row, 0)"}),
      "x: its rows are no multiple of 16 bytes");
  EXPECT_EQ(
      why_not({.x = "x: f16[64, 8] = vload(a, row, k)", .y = "y: f16[8, 64] = vload(b, row, 0)"}),
      "x: it has fewer than 16 rows or columns");
}

TEST(CopiesAhead, AreFromViewsThatStayAndHaveRows) {
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(d, row, k)",
                     .params = ", d: view f16[?, ?] by [?, ?]"}),
            "x: no neighbours are known to lie side by side");
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(d, row, k)",
                     .params = ", d: view f16[?, ?] by [1, ?]"}),
            "");
  EXPECT_EQ(why_not({.x = "v: view f16[64, 64] = view(offset(base(a), k))\n"
                          "x: f16[64, 32] = vload(v, 0, 0)"}),
            "x: its view is made in the loop");
}

TEST(CopiesAhead, AreFromPlacesThatAreKnownAhead) {
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(a, add(row, k), mul(k, 3))"}), "");
  EXPECT_EQ(why_not({.x = "j: i32 = load(at)\n x: f16[64, 32] = vload(a, row, cast(j): i64)"}),
            "x: its places are not known ahead");
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(a, div(k, 3), rem(k, n))"}),
            "x: 16 bytes may not fit in every round");
  EXPECT_EQ(why_not({.x = "x: f16[64, 32] = vload(a, div(k, 3), mul(rem(k, n), 8))"}), "");
}

TEST(CopiesAhead, HaveRoomUpToPowersOfTwo) {
  const auto scheduled =
      loop_of({.x = "x: f16[64, 48] = vload(a, row, k)", .y = "y: f16[48, 64] = vload(b, row, 0)"});
  const auto ahead = copies_ahead(*scheduled->planned, first_loop(*scheduled), 4);
  ASSERT_TRUE(ahead) << ahead.why_not();
  EXPECT_EQ(ahead->rings[0].panels.rows, 64);
  EXPECT_EQ(ahead->rings[0].panels.columns, 64);
  EXPECT_EQ(maps_of(*scheduled->planned, *ahead).why_not(),
            "a tile is no power of two: boxes would reach further");
}

TEST(CopiesAhead, OfBytesRunAlongK) {
  const auto rings = [](const std::string& y) {
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
    const auto ahead = copies_ahead(*(*scheduled)->planned, first_loop(**scheduled), 4);
    return ahead ? ahead->rings.size() : 0;
  };
  EXPECT_EQ(rings("t: i8[64, 32] = vload(b, 0, k)\n y = permute(t) {order = [1, 0]}"), 2U);
  EXPECT_EQ(rings("y: i8[32, 64] = vload(b, k, 0)"), 1U);
}

TEST(CopiesAhead, NeedTwoStages) {
  const auto scheduled = loop_of({});
  const Operation& loop = first_loop(*scheduled);
  EXPECT_EQ(copies_ahead(*scheduled->planned, loop, 1).why_not(),
            "there is no room for two stages");
  const auto ahead = copies_ahead(*scheduled->planned, loop, 2);
  ASSERT_TRUE(ahead);
  ASSERT_EQ(ahead->rings.size(), 1u);
  EXPECT_EQ(ahead->rings[0].panels.rows, 64);
  EXPECT_EQ(ahead->rings[0].panels.row_bytes(), 64);
  EXPECT_EQ(ahead->bytes, 4096);
  EXPECT_TRUE(ahead->pending.empty());  // y is in no ring
}

TEST(CourseOf, SaysHowANumberChangesInALoop) {
  const auto scheduled =
      loop_of({.x = "i = add(mul(k, 2), row)\n j = div(k, 2)\n"
                    "l: i32 = load(at)\n"
                    "x: f16[64, 32] = vload(a, add(add(i, j), cast(l): i64), k)"});
  const Operation& loop = first_loop(*scheduled);
  const auto course = [&](const std::string& name) {
    const Kernel& kernel = scheduled->kernel;
    for (ValueId id = 0; id < kernel.values.size(); ++id)
      if (kernel.values[id].name == name &&
          (id == loop.regions[0].params[0] || scheduled->planned->definitions[id].has_value()))
        return course_of(*scheduled->planned, loop, id);
    ADD_FAILURE() << "no " << name;
    return Course::Unknown;
  };
  EXPECT_EQ(course("row"), Course::Fixed);
  EXPECT_EQ(course("k"), Course::Linear);
  EXPECT_EQ(course("i"), Course::Linear);
  EXPECT_EQ(course("j"), Course::Known);
  EXPECT_EQ(course("l"), Course::Unknown);
}

TEST(MapsOf, NeedViewsThatWhoLaunchesKnows) {
  const auto why = [](const Loop& of) {
    const auto scheduled = loop_of(of);
    const auto ahead = copies_ahead(*scheduled->planned, first_loop(*scheduled), 4);
    EXPECT_TRUE(ahead) << ahead.why_not();
    return maps_of(*scheduled->planned, *ahead).why_not();
  };
  EXPECT_EQ(why({}), "");
  const auto made = [](const std::string& view) {
    return Loop{.x = "x: f16[64, 32] = vload(v, 0, k)", .before = view};
  };
  EXPECT_EQ(why(made("v: view f16[128, 64] = view(offset(base(a), 16))")), "");
  EXPECT_EQ(why(made("v: view f16[128, 64] = view(offset(base(a), 3))")),
            "a view is not at multiples of 16 bytes");
  EXPECT_EQ(why(made("v: view f16[128, 64] = view(offset(base(a), row))")),
            "a view is neither an argument nor made of one with all else known");
  EXPECT_EQ(why({.x = "t: f16[1, 1, 1, 1, 64, 32] = vload(d, 0, 0, 0, 0, row, k)\n"
                      "x: f16[64, 32] = reshape(t)",
                 .params = ", d: view f16[?, ?, ?, ?, ?, ?]"}),
            "a tile is no box that the GPU copies");
}

}  // namespace
}  // namespace tessera::tile::gpu
