#include "tessera/lower/winograd.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/lower/run_group.h"

namespace tessera::lower {
namespace {

struct Conv {
  std::int64_t images = 1, height = 12, width = 12, channels = 32, filters = 32;
  std::int64_t top = 1, left = 1, rows = 12, columns = 12;
};

/// The convolution, with what is done to its sums; `w[f, c, r, s]` in another order of axes if
/// said.
GroupCase convolution(std::string name, const Conv& c, const std::string& epilogue = "SUM",
                      const std::string& weight = "f, c, r, s") {
  const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  std::map<std::string, std::int64_t> sizes = {
      {"f", c.filters}, {"c", c.channels}, {"r", 3}, {"s", 3}};
  Shape shape;
  std::string operand = "w: f32[";
  for (const char letter : weight) {
    if (letter == ',' || letter == ' ') continue;
    shape.emplace_back(sizes.at({letter}));
    operand += fmt::format("{}{}", shape.size() == 1 ? "" : ", ", sizes.at({letter}));
  }
  const std::string sum = fmt::format(
      "(sum(c: {}, r: 3, s: 3) {{ (a[n, y + r - {}, x + s - {}, c] else 0.0) * w[{}] }})",
      c.channels, c.top, c.left, weight);
  const std::string value = replaced(epilogue, "SUM", sum);
  std::string inputs =
      fmt::format("a: f32[{}, {}, {}, {}], {}]", c.images, c.height, c.width, c.channels, operand);
  std::vector<Operand> operands = {f32("a", {c.images, c.height, c.width, c.channels}),
                                   f32("w", shape)};
  const auto also = [&](const std::string& name, const Shape& shape) {
    if (epilogue.find(name + "[") == std::string::npos) return;
    operands.push_back(f32(name, shape));
    inputs += fmt::format(", {}: f32[", name);
    for (std::size_t i = 0; i < shape.size(); ++i)
      inputs += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i].to_string());
    inputs += "]";
  };
  also("bias", {c.filters});
  also("res", {c.images, c.rows, c.columns, c.filters});
  return {.name = std::move(name),
          .inputs = operands,
          .definitions = {fmt::format("define({}) {{ out: f32[n: {}, y: {}, x: {}, f: {}] = {} }}",
                                      inputs, c.images, c.rows, c.columns, c.filters, value)},
          .weights = {"w"}};
}

Group group_of(const GroupCase& c) {
  return {staged(c.inputs, c.definitions), c.results, c.weights};
}

/// The largest error relative to the root of the mean square of what is right.
double error_of(const GroupCase& c, const GroupCode& code, By by) {
  const Group group = group_of(c);
  const Tensors inputs = random_inputs(c.inputs, 7);
  const Tensors expected = by_definition(group.stages, inputs);
  const auto found = by_group(code, group.stages, inputs, by);
  EXPECT_TRUE(found) << to_string(found.error());
  if (!found) return INFINITY;
  const Tensor &right = expected.at("out"), &mine = found->at("out");
  double worst = 0, squares = 0;
  for (std::int64_t i = 0; i < right.count(); ++i) {
    const double x = number_at(right, i);
    worst = std::max(worst, std::abs(x - number_at(mine, i)));
    squares += x * x;
  }
  return worst / std::sqrt(squares / static_cast<double>(right.count()));
}

/// Computed by a plan of one's own.
void expect_plan_computes(const GroupCase& c, const WinogradSchedule& plan) {
  SCOPED_TRACE(c.name);
  const Group group = group_of(c);
  const auto convolution = convolution3x3(group.stages[0], group.weights);
  ASSERT_TRUE(convolution);
  const auto code = lower_winograd(group.stages[0], *convolution, plan);
  ASSERT_TRUE(code) << to_string(code.error());
  EXPECT_LT(error_of(c, *code, By::Interpreter), 2e-5);
  EXPECT_LT(error_of(c, *code, By::MachineCode), 2e-5);
}

TEST(Winograd, TilesOfFourByFourComputeTheConvolution) {
  expect_plan_computes(
      convolution("WholeTiles",
                  {.height = 8, .width = 8, .channels = 8, .filters = 16, .rows = 8, .columns = 8}),
      {.m = 4, .rows = 2, .columns = 2, .filters = 16, .panel = 16});
}

TEST(Winograd, TilesOfTwoByTwoComputeTheConvolution) {
  expect_plan_computes(
      convolution("WholeTiles",
                  {.height = 8, .width = 8, .channels = 8, .filters = 16, .rows = 8, .columns = 8}),
      {.m = 2, .rows = 2, .columns = 4, .filters = 16, .panel = 8});
}

TEST(Winograd, PartsOfTilesAndOfBlocksAreLeftOut) {
  expect_plan_computes(
      convolution("Odd",
                  {.images = 2,
                   .height = 11,
                   .width = 7,
                   .channels = 7,
                   .filters = 19,
                   .rows = 11,
                   .columns = 7},
                  "max(SUM + bias[f], 0.0)"),
      {.m = 4, .images = 1, .rows = 2, .columns = 1, .filters = 8, .panel = 8, .programs = 2});
}

TEST(Winograd, SeveralImagesMayBeInOneBlock) {
  expect_plan_computes(convolution("Images", {.images = 3,
                                              .height = 5,
                                              .width = 5,
                                              .channels = 8,
                                              .filters = 12,
                                              .rows = 5,
                                              .columns = 5}),
                       {.m = 2, .images = 2, .rows = 3, .columns = 3, .filters = 12, .panel = 12});
}

TEST(Winograd, AnyPaddingIsRight) {
  for (const std::int64_t pad : {0, 2, 5})
    expect_plan_computes(convolution(fmt::format("Pad{}", pad), {.height = 9,
                                                                 .width = 9,
                                                                 .channels = 4,
                                                                 .filters = 8,
                                                                 .top = pad,
                                                                 .left = pad == 2 ? 1 : pad,
                                                                 .rows = 7 + 2 * pad,
                                                                 .columns = 7 + 2 * pad}),
                         {.m = 4, .rows = 1, .columns = 3, .filters = 8, .panel = 8});
}

TEST(Winograd, WeightsMayLieInAnyOrder) {
  for (const std::string order : {"r, s, c, f", "f, r, s, c", "c, f, s, r"})
    expect_plan_computes(
        convolution(order,
                    {.height = 6, .width = 6, .channels = 8, .filters = 8, .rows = 6, .columns = 6},
                    "SUM", order),
        {.m = 4, .rows = 2, .columns = 2, .filters = 8, .panel = 8});
}

TEST(Winograd, WhatFollowsTheSumIsComputedWithIt) {
  expect_plan_computes(convolution("Residual",
                                   {.images = 2,
                                    .height = 9,
                                    .width = 9,
                                    .channels = 8,
                                    .filters = 24,
                                    .rows = 9,
                                    .columns = 9},
                                   "max(SUM * 0.5 + bias[f] + res[n, y, x, f], 0.0)"),
                       {.m = 4, .rows = 3, .columns = 2, .filters = 24, .panel = 24});
}

/// Slices of a volume, 3 x 3 x 3 taps.
GroupCase volume(std::int64_t images, std::int64_t depth, std::int64_t step) {
  const std::int64_t slices = (depth - 1) / step + 1;
  return {
      .name = fmt::format("Volume{}", step),
      .inputs = {f32("a", {images, depth, 7, 9, 8}), f32("w", {16, 8, 3, 3, 3}), f32("bias", {16})},
      .definitions = {fmt::format(
          "define(a: f32[{0}, {1}, 7, 9, 8], w: f32[16, 8, 3, 3, 3], bias: f32[16]) {{ out: "
          "f32[n: {0}, z: {2}, y: 7, x: 9, f: 16] = max(bias[f] + sum(c: 8, t: 3, r: 3, s: 3) {{ "
          "(a[n, {3}*z + t - 1, y + r - 1, x + s - 1, c] else 0.0) * w[f, c, t, r, s] }}, 0.0) "
          "}}",
          images, depth, slices, step)},
      .weights = {"w"}};
}

TEST(Winograd, VolumesAreSummedUpSliceBySlice) {
  expect_plan_computes(volume(1, 4, 1),
                       {.m = 4, .rows = 2, .columns = 3, .filters = 16, .panel = 16});
  expect_plan_computes(volume(2, 5, 2),
                       {.m = 2, .rows = 2, .columns = 5, .filters = 8, .panel = 8, .programs = 2});
  expect_plan_computes(volume(1, 5, 1),
                       {.m = 2, .slices = 2, .rows = 4, .columns = 5, .filters = 16, .panel = 8});
  expect_plan_computes(volume(1, 1, 1),
                       {.m = 2, .rows = 2, .columns = 5, .filters = 8, .panel = 8});
}

TEST(Winograd, TakesLargeConvolutionsOfManyChannels) {
  const GroupCase c = convolution(
      "Many",
      {.height = 21, .width = 19, .channels = 130, .filters = 134, .rows = 21, .columns = 19},
      "max(SUM + bias[f] + res[n, y, x, f], 0.0)");
  machine::Machine machine = machine::host();
  machine.cores = 2;  // with many, a direct convolution keeps more of them busy
  const auto code = lower_winograd(group_of(c), machine, {});
  ASSERT_TRUE(code) << to_string(code.error());
  ASSERT_TRUE(*code);
  EXPECT_EQ((*code)->strategy.substr(0, 8), "winograd");
  EXPECT_LT(error_of(c, **code, By::MachineCode), 2e-5);
  for (const char* name : {"neoverse-v1", "haswell", "sapphirerapids"}) {
    auto other = machine::named(name);
    ASSERT_TRUE(other);
    other->cores = 2;
    const auto taken = lower_winograd(group_of(c), *other, {});
    EXPECT_TRUE(taken && taken->has_value()) << name;
  }
}

TEST(Winograd, LeavesAloneWhatItWouldNotMakeFaster) {
  const Conv small{
      .height = 32, .width = 32, .channels = 3, .filters = 32, .rows = 32, .columns = 32};
  const Conv narrow{
      .height = 2, .width = 2, .channels = 64, .filters = 64, .rows = 2, .columns = 2};
  for (const Conv& conv : {small, narrow}) {
    const auto code =
        lower_winograd(group_of(convolution("Small", conv)), machine::Machine{.cores = 2}, {});
    ASSERT_TRUE(code) << to_string(code.error());
    EXPECT_FALSE(*code);
  }
}

TEST(Winograd, LeavesAloneWhatWouldWaitForItsWeights) {
  // 16 tiles use each of the weights, which are 1.8 times as many; those of 200 channels are few.
  const auto takes = [](std::string_view cpu, std::int64_t pixels, std::int64_t channels) {
    const Conv conv{.height = pixels,
                    .width = pixels,
                    .channels = channels,
                    .filters = channels,
                    .rows = pixels,
                    .columns = pixels};
    const Group group = group_of(convolution("Weights", conv));
    machine::Machine machine = *machine::named(cpu);
    machine.cores = 1;
    const auto found = convolution3x3(group.stages[0], group.weights);
    return found && plan_winograd(*found, machine).has_value();
  };
  EXPECT_FALSE(takes("sapphirerapids", 7, 512));
  EXPECT_TRUE(takes("sapphirerapids", 14, 512));
  EXPECT_TRUE(takes("sapphirerapids", 9, 200));
  EXPECT_TRUE(takes("neoverse-v1", 7, 512));
}

TEST(Winograd, KeepsTheOrderOfAdditionsWhereThatIsAsked) {
  const Conv large{
      .height = 28, .width = 28, .channels = 64, .filters = 64, .rows = 28, .columns = 28};
  const Group group = group_of(convolution("Large", large));
  EXPECT_TRUE(*lower_winograd(group, machine::host(), {}));
  EXPECT_FALSE(*lower_winograd(group, machine::host(), {.exact = true}));
}

TEST(Winograd, OtherConvolutionsAreNotItsKind) {
  const std::vector<std::pair<std::string, std::string>> others = {
      {"a stride", "a[n, 2*y + r, 2*x + s, c] * w[f, c, r, s]"},
      {"a dilation", "a[n, y + 2*r, x + 2*s, c] * w[f, c, r, s]"},
      {"channels first", "a[n, c, y + r, x + s] * w[f, c, r, s]"},
      {"a flipped window", "a[n, y - r + 2, x + s, c] * w[f, c, r, s]"},
      {"an axis that is not summed along", "a[n, y + r, x + s, c] * w[f, f, r, s]"},
  };
  for (const auto& [what, product] : others) {
    const auto stages =
        staged({f32("a", {1, 16, 16, 16}), f32("w", {16, 16, 3, 3})},
               {fmt::format("define(a: f32[1, 16, 16, 16], w: f32[16, 16, 3, 3]) {{ "
                            "out: f32[n: 1, y: 6, x: 6, f: 16] = sum(c: 14, r: 3, "
                            "s: 3) {{ {} }} }}",
                            product)});
    EXPECT_FALSE(convolution3x3(stages[0], {"w"})) << what;
  }
}

TEST(Winograd, AWeightThatIsNotKnownIsNotItsKind) {
  const Group group = group_of(convolution("Known", {}));
  EXPECT_TRUE(convolution3x3(group.stages[0], {"w"}));
  EXPECT_FALSE(convolution3x3(group.stages[0], {}));
}

}  // namespace
}  // namespace tessera::lower
