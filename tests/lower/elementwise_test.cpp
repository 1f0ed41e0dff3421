#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lower/run_group.h"

namespace tessera::lower {
namespace {

/// A depthwise convolution with bias and a ceiling, channels last.
struct Depthwise {
  std::int64_t c = 8, h = 9, w = 9, k = 3, stride = 1, pad = 1, dilation = 1, batch = 1;
};

GroupCase depthwise(const Depthwise& d) {
  const auto positions = [&](std::int64_t size) {
    return (size + 2 * d.pad - d.dilation * (d.k - 1) - 1) / d.stride + 1;
  };
  const auto at = [&](const char* out, const char* tap) {
    return fmt::format("{}*{} + {}*{} - {}", d.stride, out, d.dilation, tap, d.pad);
  };
  return {
      .name =
          fmt::format("c{} {}x{} k{} s{} p{} d{}", d.c, d.h, d.w, d.k, d.stride, d.pad, d.dilation),
      .inputs = {f32("x", {d.batch, d.h, d.w, d.c}), f32("w", {d.c, d.k, d.k}), f32("b", {d.c})},
      .definitions = {fmt::format(
          "define(x: f32[#n, #h, #v, #c], w: f32[#c, #r, #s], b: f32[#c]) {{ out: f32[n, y: "
          "{}, z: {}, c] = min(sum(r, s) {{ (x[n, {}, {}, c] else 0.0) * w[c, r, s] }} + b[c], "
          "3.0) }}",
          positions(d.h), positions(d.w), at("y", "r"), at("z", "s"))},
      .weights = {"w", "b"}};
}

std::vector<Depthwise> depthwise_shapes() {
  return {Depthwise{},
          Depthwise{.c = 512, .h = 5, .w = 6},
          Depthwise{.c = 512, .h = 5, .w = 6, .k = 1, .pad = 0},
          Depthwise{.c = 600, .h = 7, .w = 7},
          Depthwise{.c = 5, .h = 7, .w = 12},
          Depthwise{.c = 3},
          Depthwise{.c = 1},
          Depthwise{.c = 20, .h = 17, .w = 19, .stride = 2},
          Depthwise{.c = 16, .h = 14, .w = 14, .k = 5, .pad = 2},
          Depthwise{.c = 12, .h = 15, .w = 11, .k = 5, .stride = 2, .pad = 2},
          Depthwise{.c = 8, .h = 7, .w = 7, .k = 7, .pad = 3},
          Depthwise{.c = 8, .h = 21, .w = 23, .pad = 2, .dilation = 2},
          Depthwise{.c = 8, .h = 9, .w = 40, .pad = 0, .batch = 2},
          Depthwise{.c = 8, .h = 3, .w = 3, .k = 5, .pad = 4},
          Depthwise{.c = 4, .h = 12, .w = 12, .k = 11, .pad = 5},
          Depthwise{.c = 10, .h = 5, .w = 23},
          Depthwise{.c = 7, .h = 19, .w = 37, .stride = 2}};
}

TEST(Elements, ComputesDepthwiseConvolutionsOfManyShapes) {
  for (const Depthwise& d : depthwise_shapes()) expect_group(depthwise(d), lower_elementwise);
}

int stores_of(const tile::Kernel& kernel) {
  int stores = 0;
  tile::for_each_op(kernel, kernel.body, [&](tile::OpId id) {
    stores += kernel.ops[id].code == tile::Code::Vstore ? 1 : 0;
  });
  return stores;
}

int loops_of(const tile::Kernel& kernel) {
  int loops = 0;
  tile::for_each_op(kernel, kernel.body, [&](tile::OpId id) {
    loops += kernel.ops[id].code == tile::Code::For ? 1 : 0;
  });
  return loops;
}

TEST(Elements, ComputesNeighboursTogetherOnThreadBlocks) {
  for (const Depthwise& d : depthwise_shapes())
    for (const std::int64_t neighbours : {1, 2, 3, 4, 8}) {
      const GroupCase c = depthwise(d);
      SCOPED_TRACE(fmt::format("{} neighbours {}", c.name, neighbours));
      const tile::Stages stages = staged(c.inputs, c.definitions);
      const auto schedule = default_schedule(stages, machine::cuda(), {.neighbours = neighbours});
      ASSERT_TRUE(schedule) << to_string(schedule.error());
      auto kernels = lower(*schedule);
      ASSERT_TRUE(kernels) << to_string(kernels.error());
      const std::int64_t positions = numbers_of(stages[0].output.shape())[2];
      if (d.k > 1 && d.c > 1) {
        EXPECT_EQ(stores_of(kernels->front().kernel), std::min(neighbours, positions));
      }
      GroupCode code;
      code.kernels = *std::move(kernels);
      const Tensors inputs = random_inputs(c.inputs, 7);
      const auto found = by_group(code, stages, inputs, By::Interpreter);
      ASSERT_TRUE(found) << to_string(found.error());
      testing::expect_near(found->at("out"), by_definition(stages, inputs).at("out"), 1e-4);
    }
}

TEST(Elements, DepthwiseWeightsArePackedAlongTheVectors) {
  const auto code = expect_group(depthwise({}), lower_elementwise);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->kernels.size(), 1U);
  ASSERT_EQ(code->packings.size(), 1U);
  EXPECT_EQ(code->packings[0].weight, "w");
  EXPECT_EQ(numbers_of(code->packings[0].definition.outputs[0].shape()),
            (std::vector<std::int64_t>{3, 3, 8}));
}

TEST(Elements, FewChannelsAreConvolvedDirectlyToo) {
  for (const std::int64_t channels : {4, 6, 8, 12})
    EXPECT_EQ(expect_group(depthwise({.c = channels}), lower_elementwise)->strategy, "direct conv")
        << channels;
}

TEST(Elements, LargeWindowsAreConvolvedRowByRow) {
  for (const std::int64_t k : {9, 13, 31}) {
    const auto code =
        expect_group(depthwise({.c = 16, .h = 33, .w = 34, .k = k}), lower_elementwise, 1e-3);
    ASSERT_TRUE(code);
    EXPECT_EQ(code->strategy, "direct conv") << k;
    // One row of the window is unrolled, for several neighbours; rows are a loop.
    EXPECT_EQ(loops_of(code->kernels[0].kernel), 2) << k;
    EXPECT_GE(stores_of(code->kernels[0].kernel), 4) << k;
  }
}

TEST(Elements, ShortRowsOfATransposeAreTakenWithAllThatLiesAcross) {
  const auto schedule = [](std::int64_t taps) {
    const auto code =
        expect_group({"transpose",
                      {f32("x", {40, taps, 64})},
                      {"define(x: f32[#f, #r, #c]) { out: f32[f, c, r] = x[f, r, c] }"}},
                     lower_elementwise);
    return code ? to_text(code->schedule.value()) : "";
  };
  EXPECT_THAT(schedule(9), ::testing::HasSubstr("vectorize(out/c)"));
  EXPECT_THAT(schedule(48), ::testing::HasSubstr("vectorize(out/c.i)"));
}

TEST(Elements, RowsThatAnIndexSelectsAreReadAsTheyLie) {
  const auto schedule = [](const GroupCase& c) {
    const auto code = expect_group(c, lower_elementwise);
    return code ? to_text(code->schedule.value()) : "";
  };
  // A reflected border: rows of 40 elements, several of them by a program.
  const GroupCase reflected{
      "reflected",
      {f32("x", {3, 21, 40})},
      {"define(x: f32[#c, #h, #w]) { out: f32[c, y: 25, w] = x[c, 20 - abs(20 - mod(y - 2, 40)), "
       "w] }"}};
  const std::string rows = schedule(reflected);
  EXPECT_THAT(rows, ::testing::HasSubstr("vectorize(out/w)"));
  EXPECT_THAT(rows, ::testing::Not(::testing::HasSubstr("vectorize(out/y")));
  EXPECT_THAT(rows, ::testing::Not(::testing::HasSubstr("parallel(out/y)")));
  // A last axis that is reflected, or short, is not read as rows of memory.
  const GroupCase across{
      "across",
      {f32("x", {50, 21})},
      {"define(x: f32[#c, #w]) { out: f32[c, y: 25] = x[c, 20 - abs(20 - mod(y - 2, 40))] }"}};
  EXPECT_THAT(schedule(across), ::testing::HasSubstr("vectorize(out/y)"));
  const GroupCase narrow{
      "narrow",
      {f32("x", {3, 21, 2})},
      {"define(x: f32[#c, #h, #w]) { out: f32[c, y: 25, w] = x[c, 20 - abs(20 - mod(y - 2, 40)), "
       "w] }"}};
  EXPECT_THAT(schedule(narrow), ::testing::HasSubstr("vectorize(out/y)"));
}

TEST(Elements, RemaindersOfWhatIsJustBeyondTheModulusAreRight) {
  for (const auto& [size, first] : {std::pair{25, 2}, {21, 21}, {42, 0}, {63, 21}, {64, 22}})
    expect_group({fmt::format("wrapped {} from -{}", size, first),
                  {f32("x", {3, 21})},
                  {fmt::format("define(x: f32[#c, #w]) {{ out: f32[c, y: {}] = x[c, mod(y - {}, "
                               "21)] }}",
                               size, first)}},
                 lower_elementwise);
}

TEST(Elements, PositionsOfMaximaHaveRowsAsLanes) {
  const auto code = expect_group(
      {"first of the largest",
       {f32("x", {64, 300})},
       {"define(x: f32[#n, #c]) { out: i64[n] = fold(c) { from -inf, -1 take x[n, c], c by "
        "max(left.0, right.0), select(left.0 < right.0, right.1, left.1) }.1 }"}},
      lower_elementwise);
  ASSERT_TRUE(code);
  EXPECT_THAT(to_text(code->schedule.value()), ::testing::HasSubstr("vectorize(out/n.i)"));
}

/// Elements of a row that a program of a depthwise convolution computes side by side, where so many
/// additions follow it.
int neighbours(int additions) {
  GroupCase group = depthwise({.c = 16, .h = 14, .w = 14});
  for (int i = 0; i < additions; ++i)
    group.definitions[0].replace(group.definitions[0].find("+ b[c]"), 6, "+ 0.125 + b[c]");
  const auto code = expect_group(group, lower_elementwise);
  EXPECT_EQ(code->strategy, "direct conv");
  return stores_of(code->kernels[0].kernel);
}

TEST(Elements, LongCodeIsWrittenOutForFewNeighbours) {
  EXPECT_EQ(neighbours(0), 14);
  EXPECT_EQ(neighbours(60), 3);
}

TEST(Elements, SumsAlongMemoryAreNoWindows) {
  const auto code = expect_group({"sums",
                                  {f32("x", {120, 40, 1, 1})},
                                  {"define(x: f32[#f, #c, 1, 1]) { out: f32[f] = sum(c) x[f, c, "
                                   "0, 0] }"}},
                                 lower_elementwise);
  EXPECT_EQ(code->strategy, "elementwise");
}

TEST(Elements, ComputesPools) {
  for (const auto& [channels, size] : {std::pair(8, 11), {3, 8}, {13, 21}}) {
    const std::string x = "define(x: f32[#n, #h, #v, #c]) ";
    const int out = (size + 2 - 3) / 2 + 1;
    const std::vector<Operand> inputs = {f32("x", {2, size, size, channels})};
    expect_group({"max",
                  inputs,
                  {fmt::format("{}{{ out: f32[n, y: {}, z: {}, c] = max_of(r: 3, s: 3) (x[n, 2*y + "
                               "r - 1, 2*z + s - 1, c] else -inf) }}",
                               x, out, out)}},
                 lower_elementwise);
    expect_group({"average",
                  inputs,
                  {fmt::format("{}{{ out: f32[n, y: {}, z: {}, c] = (sum(r: 3, s: 3) (x[n, 2*y + r "
                               "- 1, 2*z + s - 1, c] else 0.0)) / 9.0 }}",
                               x, out, out)}},
                 lower_elementwise);
    expect_group({"global", inputs, {x + "{ out: f32[n, c] = (sum(h, v) x[n, h, v, c]) / 100.0 }"}},
                 lower_elementwise);
    expect_group({"one number", inputs, {x + "{ out: f32[] = sum(n, h, v, c) x[n, h, v, c] }"}},
                 lower_elementwise, 1e-2);
  }
}

}  // namespace
}  // namespace tessera::lower
