#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/lower/run_group.h"

namespace tessera::lower {
namespace {

using Sizes3 = std::array<std::int64_t, 3>;

/// The definitions with `@` as the axis of x[a, b, c] that is folded and `%` as the other two.
std::vector<std::string> along(int axis, std::vector<std::string> definitions) {
  const std::string names = "abc";
  const std::string folded(1, names[static_cast<std::size_t>(axis)]);
  std::string others;
  for (const char c : names)
    if (c != folded[0]) others += (others.empty() ? "" : ", ") + std::string(1, c);
  std::string sizes = others;
  for (std::size_t i = 0; i < sizes.size(); i += 4) sizes.insert(i, "#");
  for (std::string& text : definitions)
    for (const auto& [mark, by] : {std::pair("#%", sizes), {"%", others}, {"@", folded}})
      for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark))
        text.replace(at, std::string_view(mark).size(), by);
  return definitions;
}

const std::string kX = "x: f32[#a, #b, #c]";

GroupCase softmax(const Sizes3& s, int axis) {
  return {.name = fmt::format("softmax {}x{}x{} along {}", s[0], s[1], s[2], axis),
          .inputs = {f32("x", {s[0], s[1], s[2]})},
          .definitions = along(
              axis, {"define(" + kX + ") { m: f32[%] = max_of(@) x[a, b, c] }",
                     "define(" + kX + ", m: f32[#%]) { s: f32[%] = sum(@) exp(x[a, b, c] - m[%]) }",
                     "define(" + kX +
                         ", m: f32[#%], s: f32[#%]) { out: f32[a, b, c] = exp(x[a, b, "
                         "c] - m[%]) / s[%] }"})};
}

/// With a residual that is kept as well, and scale and shift along the folded axis.
GroupCase layer_norm(const Sizes3& s, int axis) {
  const std::int64_t n = s[static_cast<std::size_t>(axis)];
  const std::string sum = "define(" + kX +
                          ", y: f32[#a, #b, #c]) { r: f32[a, b, c] = x[a, b, c] + "
                          "y[a, b, c] }";
  return {
      .name = fmt::format("layer norm {}x{}x{} along {}", s[0], s[1], s[2], axis),
      .inputs = {f32("x", {s[0], s[1], s[2]}), f32("y", {s[0], s[1], s[2]}), f32("g", {n}),
                 f32("h", {n})},
      .definitions = along(
          axis,
          {sum,
           fmt::format("define(r: f32[#a, #b, #c]) {{ m: f32[%] = (sum(@) r[a, b, c]) / {}.0 }}",
                       n),
           fmt::format("define(r: f32[#a, #b, #c], m: f32[#%]) {{ v: f32[%] = (sum(@) {{ (r[a, "
                       "b, c] - m[%]) * (r[a, b, c] - m[%]) }}) / {}.0 }}",
                       n),
           "define(r: f32[#a, #b, #c], m: f32[#%], v: f32[#%], g: f32[#@], h: f32[#@]) { out: "
           "f32[a, b, c] = max((r[a, b, c] - m[%]) / sqrt(v[%] + 0.001) * g[@] + h[@], 0.0) }"}),
      .results = {"r", "out"}};
}

TEST(Rows, SoftmaxAlongEveryAxis) {
  for (const Sizes3& sizes : {Sizes3{3, 5, 49}, {2, 33, 7}, {16, 4, 130}})
    for (int axis = 0; axis < 3; ++axis) {
      const auto code = expect_group(softmax(sizes, axis), lower_rows);
      ASSERT_TRUE(code);
      EXPECT_EQ(code->kernels.size(), 1U);
      EXPECT_EQ(code->kernels[0].arguments, (std::vector<std::string>{"x", "out"}));
    }
}

TEST(Rows, LayerNormAlongEveryAxisWithTheSumKept) {
  for (const Sizes3& sizes : {Sizes3{3, 5, 49}, {2, 33, 8}, {2, 21, 96}})
    for (int axis = 0; axis < 3; ++axis) {
      const auto code = expect_group(layer_norm(sizes, axis), lower_rows);
      ASSERT_TRUE(code);
      EXPECT_EQ(code->kernels.size(), 1U);
    }
}

TEST(Rows, NormOfAnImageChannelsLast) {
  const std::string x = "x: f32[#n, #y, #z, #c]", m = "m: f32[#n, #c]", v = "v: f32[#n, #c]";
  for (const auto& [size, channels] : {std::pair(7, 24), {9, 5}}) {
    const double count = size * size;
    const auto code = expect_group(
        {"instance norm",
         {f32("x", {2, size, size, channels})},
         {fmt::format("define({}) {{ m: f32[n, c] = (sum(y, z) x[n, y, z, c]) / {} }}", x,
                      count + 0.5),
          fmt::format("define({}, {}) {{ v: f32[n, c] = (sum(y, z) {{ (x[n, y, z, c] - m[n, c]) * "
                      "(x[n, y, z, c] - m[n, c]) }}) / {} }}",
                      x, m, count + 0.5),
          fmt::format("define({}, {}, {}) {{ out: f32[n, y, z, c] = (x[n, y, z, c] - m[n, c]) / "
                      "sqrt(v[n, c] + 0.001) }}",
                      x, m, v)}},
        lower_rows);
    ASSERT_TRUE(code);
    EXPECT_EQ(code->kernels.size(), 1U);
  }
}

TEST(Rows, TilesOfColumnsOnACpuAreWholeLines) {
  // 196 columns are 13 tiles of 16, not 14 of 14; 50 are 4 of 16, not 5 of 10.
  for (const std::int64_t columns : {196, 50, 20}) {
    const auto code = expect_group(softmax({1, 768, columns}, 1), lower_rows);
    ASSERT_TRUE(code);
    EXPECT_EQ(code->strategy, "rows 768x16") << columns;
  }
}

TEST(Rows, PoolAndGate) {
  expect_group(
      {"squeeze",
       {f32("x", {2, 6, 6, 20})},
       {"define(x: f32[#n, #y, #z, #c]) { p: f32[n, c] = (sum(y, z) x[n, y, z, c]) / 36.0 "
        "}",
        "define(x: f32[#n, #y, #z, #c], p: f32[#n, #c]) { out: f32[n, y, z, c] = x[n, y, z, "
        "c] / (1.0 + exp(-p[n, c])) }"},
       {"p", "out"}},
      lower_rows);
}

TEST(Rows, OneStageThatFoldsAndSpeaksAgain) {
  const auto code = expect_group(
      {"softmax in one",
       {f32("x", {9, 61})},
       {"define(x: f32[#i, #j]) { out: f32[i, j] = exp(x[i, j] - max_of(k: #j) x[i, k]) / sum(k: "
        "#j) { exp(x[i, k] - max_of(l: #j) x[i, l]) } }"}},
      lower_rows);
  EXPECT_TRUE(code);
}

TEST(Rows, ANumberOfAWholeVector) {
  expect_group({"less the least",
                {f32("x", {3})},
                {"define(x: f32[#i]) { least: f32[] = min_of(i) x[i] }",
                 "define(x: f32[#i], least: f32[]) { out: f32[i] = x[i] - least[] }"}},
               lower_rows);
}

TEST(Rows, TheLargestAndItsPlace) {
  expect_group({"argmax and share",
                {f32("x", {7, 50})},
                {"define(x: f32[#i, #j]) { at: i64[i] = fold(j) { from -inf, 0 take x[i, j], j by "
                 "max(left.0, right.0), select(left.0 < right.0, right.1, left.1) }.1 }",
                 "define(x: f32[#i, #j], at: i64[#i]) { out: f32[i, j] = select(at[i] < 20, x[i, "
                 "j], 0.0) }"},
                {"at", "out"}},
               lower_rows);
}

// Roundings between the operations of a graph, but not those that a quantization would show.
TEST(Rows, RoundOnceWhereNumbersAreReals) {
  const auto roundings = [](const char* result, const GroupOptions& options) {
    Group group{.results = {"out"}};
    group.stages = staged(
        {{"x", DType::F16, {8, 64}}},
        {"define(x: f16[#a, #b]) { m: f16[a] = max_of(b) x[a, b] }",
         fmt::format("define(x: f16[#a, #b], m: f16[#a]) {{ out: f16[a, b] = {} }}", result)});
    const auto code = lower_rows(group, machine::host(), options);
    EXPECT_TRUE(code && *code);
    if (!code || !*code) return 0;
    const tile::Kernel& kernel = (*code)->kernels[0].kernel;
    int casts = 0;
    tile::for_each_op(kernel, kernel.body, [&](tile::OpId id) {
      const tile::Operation& op = kernel.ops[id];
      casts += op.code == tile::Code::Cast && kernel.type(op.out[0]).dtype == DType::F16 ? 1 : 0;
    });
    return casts;
  };
  const char* scaled = "f16(f16(x[a, b] - m[a]) * 0.3)";
  EXPECT_LT(roundings(scaled, {}), roundings(scaled, {.exact = true}));
  const char* quantized = "round(f16(f16(x[a, b] - m[a]) * 30.0))";
  EXPECT_EQ(roundings(quantized, {}), roundings(quantized, {.exact = true}));
}

TEST(Rows, LeavesProductsOfMatricesAndPlainSumsToOthers) {
  EXPECT_FALSE(expect_group(
      {"matmul and sum",
       {f32("x", {40, 50}), f32("y", {50, 60})},
       {"define(x: f32[#i, #k], y: f32[#k, #j]) { s: f32[i, j] = sum(k) x[i, k] * y[k, j] }",
        "define(s: f32[#i, #j]) { out: f32[i] = sum(j) s[i, j] }"}},
      lower_rows));
  EXPECT_FALSE(expect_group(
      {"sum", {f32("x", {40, 50})}, {"define(x: f32[#i, #j]) { out: f32[i] = sum(j) x[i, j] }"}},
      lower_rows));
  EXPECT_FALSE(
      expect_group({"transposed",
                    {f32("x", {40, 40})},
                    {"define(x: f32[#i, #j]) { s: f32[i] = sum(j) x[i, j] }",
                     "define(x: f32[#i, #j], s: f32[#i]) { out: f32[i, j] = x[i, j] * s[j] }"}},
                   lower_rows));
  EXPECT_FALSE(expect_group(
      {"the sum of another row",
       {f32("x", {40, 50})},
       {"define(x: f32[#i, #j]) { s: f32[i] = sum(j) x[i, j] }",
        "define(x: f32[#i, #j], s: f32[#i]) { out: f32[i, j] = x[i, j] * s[i] + s[39 - i] }"}},
      lower_rows));
}

}  // namespace
}  // namespace tessera::lower
