#include "tessera/program/compile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "tessera/engine/engine.h"
#include "tessera/interp/interp.h"
#include "tessera/passes/pipeline.h"
#include "tessera/program/canonical.h"
#include "tessera/program/lowerings.h"
#include "tessera/runtime/session.h"
#include "tessera/support/rng.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera::program {
namespace {

using testing::parsed;

std::vector<Datum> data_of(const std::vector<Tensor>& tensors) {
  return {tensors.begin(), tensors.end()};
}

/// A graph, compiled and run, computes what the interpreter computes of another.
CompileReport expect_same(const Graph& reference, const Graph& graph,
                          const std::vector<Tensor>& inputs, const CompileOptions& options,
                          double tolerance) {
  const auto expected = interp::run(reference, data_of(inputs), {});
  if (!expected) return {};  // a random graph may ask for what no input has
  const auto compiled = compile(graph, options);
  EXPECT_TRUE(compiled) << to_string(compiled.error());
  if (!compiled) return {};
  const auto loaded = runtime::LoadedProgram::load(compiled->program);
  EXPECT_TRUE(loaded) << to_string(loaded.error());
  if (!loaded) return {};
  std::vector<std::vector<Datum>> found;
  for (const int threads : {1, 2}) {
    auto session =
        runtime::Session::create(*loaded, {.threads = threads, .host = engine::interpreter_host()});
    EXPECT_TRUE(session) << to_string(session.error());
    if (!session) return {};
    auto outputs = (*session)->run(data_of(inputs));
    EXPECT_TRUE(outputs) << to_string(outputs.error());
    if (!outputs) return {};
    found.push_back(*std::move(outputs));
  }
  for (std::size_t i = 0; i < expected->size(); ++i) {
    const Tensor &one = found[0][i].tensor(), &two = found[1][i].tensor();
    testing::expect_near(one, (*expected)[i].tensor(), tolerance);
    EXPECT_TRUE(std::ranges::equal(one.bytes.view(), two.bytes.view()))
        << "two threads compute other bits than one";
  }
  return compiled->report;
}

CompileReport expect_same(const Graph& graph, const std::vector<Tensor>& inputs) {
  return expect_same(graph, graph, inputs, {}, 2e-5);
}

TEST(Compile, AConvolutionWithWhatFollows) {
  const CompileReport report = expect_same(
      parsed("graph(x: f32[2, 9, 9, 9], w: f32[13, 9, 3, 3], b: f32[13], r: f32[2, 13, 9, 9]) { "
             "a = conv(x, w, b) {pads=[1, 1, 1, 1]}  return relu(add(a, r)) }"),
      {testing::random_f32({2, 9, 9, 9}, 1), testing::random_f32({13, 9, 3, 3}, 2),
       testing::random_f32({13}, 3), testing::random_f32({2, 13, 9, 9}, 4)});
  EXPECT_TRUE(report.interpreted.empty());
}

TEST(Compile, ConvolutionsWithFewFilters) {
  for (const auto& [filters, size] : {std::pair(1, 20), {1, 5}, {2, 33}, {3, 20}, {4, 17}})
    for (const char* attributes :
         {"{pads=[1, 1, 1, 1]}", "{pads=[2, 0, 1, 2], strides=[2, 1], dilations=[1, 2]}"}) {
      SCOPED_TRACE(fmt::format("{} filters, {} pixels, {}", filters, size, attributes));
      const auto report = expect_same(
          parsed(fmt::format("graph(x: f32[2, 6, {1}, {1}], w: f32[{0}, 6, 3, 3], b: f32[{0}]) {{ "
                             "y = relu(conv(relu(x), w, b) {2})  return y, reduce_max(y) }}",
                             filters, size, attributes)),
          {testing::random_f32({2, 6, size, size}, 1), testing::random_f32({filters, 6, 3, 3}, 2),
           testing::random_f32({filters}, 3)});
      EXPECT_TRUE(report.interpreted.empty());
    }
}

/// Shape of a convolution whose weights have a gradient.
struct FilterCase {
  std::int64_t images = 1, channels = 1, filters = 1, group = 1, size = 1, window = 1;
  const char* attributes = "";  // strides, dilations and pads
  std::int64_t positions = 1;
};

CompileReport expect_filter_gradient(const FilterCase& c) {
  SCOPED_TRACE(fmt::format("{} images of {} channels, {} filters, {} groups, window {}, {}",
                           c.images, c.channels, c.filters, c.group, c.window, c.attributes));
  return expect_same(
      parsed(fmt::format("graph(x: f32[{0}, {1}, {4}, {4}], dy: f32[{0}, {2}, {7}, {7}]) {{ "
                         "return conv_weight_gradient(relu(x), dy) "
                         "{{kernel_shape=[{5}, {5}], group={3}{6}}} }}",
                         c.images, c.channels, c.filters, c.group, c.size, c.window, c.attributes,
                         c.positions)),
      {testing::random_f32({c.images, c.channels, c.size, c.size}, 1),
       testing::random_f32({c.images, c.filters, c.positions, c.positions}, 2)});
}

TEST(Compile, GradientsOfFilters) {
  const char* const same = ", pads=[1, 1, 1, 1]";
  for (const FilterCase& c :
       std::vector<FilterCase>{{2, 24, 40, 1, 12, 3, same, 12},
                               {1, 3, 32, 1, 15, 7, ", pads=[3, 3, 3, 3], strides=[2, 2]", 8},
                               {4, 16, 20, 1, 9, 1, "", 9},
                               {3, 24, 36, 4, 9, 3, ", pads=[0, 1, 2, 1]", 9},
                               {2, 6, 6, 6, 11, 3, same, 11}}) {
    const CompileReport report = expect_filter_gradient(c);
    EXPECT_TRUE(report.interpreted.empty());
  }
}

TEST(Compile, GradientsOfDepthwiseFilters) {
  for (const FilterCase& c :
       std::vector<FilterCase>{{2, 48, 48, 48, 12, 3, ", pads=[1, 1, 1, 1]", 12},
                               {1, 40, 40, 40, 13, 3, ", pads=[1, 1, 1, 1], strides=[2, 2]", 7},
                               {3, 19, 19, 19, 11, 5, ", pads=[2, 1, 2, 3]", 11},
                               {2, 32, 32, 32, 16, 7, ", pads=[3, 3, 3, 3]", 16},
                               {2, 33, 33, 33, 14, 3, ", pads=[2, 2, 2, 2], dilations=[2, 2]", 14},
                               {2, 100, 100, 100, 9, 2, "", 8}}) {
    const CompileReport report = expect_filter_gradient(c);
    EXPECT_TRUE(std::ranges::any_of(report.steps, [](const CompileReport::Step& step) {
      return step.strategy == "direct conv" && step.what.ends_with("conv_weight_gradient");
    }));
  }
  // With several filters of a channel.
  expect_filter_gradient({2, 16, 32, 16, 10, 3, ", pads=[1, 1, 1, 1]", 10});
}

TEST(Compile, ReductionsOfTensorsThatLieInDifferentLayouts) {
  // The convolution and what it reads are channels last, g is row-major as it comes.
  const Graph graph = parsed(
      "graph(x: f32[2, 16, 9, 9], w: f32[16, 16, 3, 3], g: f32[2, 16, 9, 9]) { "
      "y = conv(x, w) {pads=[1, 1, 1, 1]}  a = mul(y, g)  b = mul(a, relu(y)) "
      "return reduce_sum(b, [0, 2, 3]), reduce_sum(a, [0, 2, 3]) }");
  const CompileReport report =
      expect_same(graph, graph,
                  {testing::random_f32({2, 16, 9, 9}, 1), testing::random_f32({16, 16, 3, 3}, 2),
                   testing::random_f32({2, 16, 9, 9}, 3)},
                  {}, 2e-4);
  EXPECT_EQ(std::ranges::count(report.steps, "reorder", &CompileReport::Step::what), 3)
      << "of x and w, for the convolution, and of g, for the reduction";
}

TEST(Compile, SumsOfPartsOfChannelsLieAsTheImages) {
  // As in ResNeSt: channels are last in memory, before and after the sum.
  const CompileReport report =
      expect_same(parsed("graph(x: f32[1, 8, 7, 5], w: f32[24, 8, 3, 3]) { "
                         "c = relu(conv(x, w) {pads=[1, 1, 1, 1]})  "
                         "s = reduce_sum(reshape(c, [1, 2, 12, 7, 5]), [1]) {keepdims=0}  "
                         "return reduce_max(s, [2, 3]) }"),
                  {testing::random_f32({1, 8, 7, 5}, 1), testing::random_f32({24, 8, 3, 3}, 2)});
  const auto step = std::ranges::find(report.steps, "reduce_sum", &CompileReport::Step::what);
  ASSERT_NE(step, report.steps.end());
  ASSERT_TRUE(step->group && step->group->group);
  EXPECT_EQ(step->group->group->group.stages[0].output.shape(), (Shape{1, 7, 5, 12}));
}

TEST(Compile, NeutralElementsMayComeFirst) {
  const Tensor n = Tensor::of<std::int64_t>(DType::I64, {2, 1}, std::vector<std::int64_t>{3, 5});
  // The constant is the first operand of what is then a view, alone and within a group.
  expect_same(parsed("graph(n: i64[2, 1]) { z = const i64[] [0]  return add(z, n) }"), {n});
  expect_same(parsed("graph(n: i64[2, 1]) { z = const i64[1] [1]  return mul(z, n) }"), {n});
  expect_same(parsed("graph(n: i64[2, 1]) { z = const i64[1, 1] [0]  q = add(z, n)  "
                     "c = const i64[1, 3] [0, 4, 6]  return less(q, c) }"),
              {n});
  expect_same(parsed("graph(n: i64[2, 1]) { z = const i64[1, 1, 1] [0]  q = add(z, n)  "
                     "return transpose(q) {perm=[2, 1, 0]} }"),
              {n});
}

TEST(Compile, TransposedConvolutionsWithUnequalStrides) {
  for (const auto& [strides, y] : {std::pair<std::string, std::string>{"3, 1, 3", "15, 7, 9"},
                                   {"2, 1, 2", "11, 7, 7"},
                                   {"3, 1, 2", "15, 7, 7"},
                                   {"1, 3, 2", "7, 15, 7"},
                                   {"2, 3, 1", "11, 15, 5"}}) {
    SCOPED_TRACE(strides);
    const std::string text = fmt::format(
        "graph(x: f32[1, 2, 5, 5, 3], w: f32[2, 1, 3, 3, 3]) {{ "
        "y: f32[1, 1, {}] = conv_transpose(x, w) {{strides=[{}]}}  return y }}",
        y, strides);
    expect_same(parsed(text),
                {testing::random_f32({1, 2, 5, 5, 3}, 1), testing::random_f32({2, 1, 3, 3, 3}, 2)});
  }
}

/// Indices of any sign, some of them the same.
Tensor some_indices(const std::vector<std::int64_t>& shape, std::int64_t below,
                    std::uint64_t seed) {
  Rng rng(seed);
  std::vector<std::int64_t> all(static_cast<std::size_t>(*element_count(shape)));
  for (std::int64_t& one : all)
    one = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(2 * below))) - below;
  return Tensor::of<std::int64_t>(DType::I64, shape, all);
}

TEST(Compile, ScattersWithoutAnInterpreter) {
  for (const char* reduction : {"none", "add", "mul", "max", "min"})
    for (const std::int64_t columns : {1, 7, 300}) {
      const Tensor x = testing::random_f32({9, columns}, 1),
                   updates = testing::random_f32({20, columns}, 2);
      const CompileReport rows = expect_same(
          parsed(fmt::format("graph(x: f32[9, {0}], i: i64[20, {0}], u: f32[20, {0}]) {{ return "
                             "relu(scatter_elements(neg(x), i, u) {{reduction=\"{1}\"}}) }}",
                             columns, reduction)),
          {x, some_indices({20, columns}, 9, 3), updates});
      EXPECT_TRUE(rows.interpreted.empty());
      const CompileReport slices = expect_same(
          parsed(fmt::format("graph(x: f32[9, {0}], i: i64[20, 1], u: f32[20, {0}]) {{ return "
                             "scatter_nd(x, i, transpose(transpose(u))) {{reduction=\"{1}\"}} }}",
                             columns, reduction)),
          {x, some_indices({20, 1}, 9, 4), updates});
      EXPECT_TRUE(slices.interpreted.empty());
    }
  const CompileReport along = expect_same(
      parsed("graph(x: f32[5, 8], i: i64[5, 4], u: f32[5, 4]) { return scatter_elements(x, i, u) "
             "{axis=1, reduction=\"add\"} }"),
      {testing::random_f32({5, 8}, 1), some_indices({5, 4}, 8, 3), testing::random_f32({5, 4}, 2)});
  EXPECT_TRUE(along.interpreted.empty());
  const CompileReport points = expect_same(
      parsed("graph(x: f32[1, 3, 4, 5], i: i64[2, 6, 4], u: f32[2, 6], k: f32[3, 3, 1, 1]) { c = "
             "conv(x, k)  return conv(scatter_nd(c, i, u), k) }"),
      {testing::random_f32({1, 3, 4, 5}, 1), some_indices({2, 6, 4}, 1, 3),
       testing::random_f32({2, 6}, 2), testing::random_f32({3, 3, 1, 1}, 5)});
  EXPECT_TRUE(points.interpreted.empty());
  const CompileReport none = expect_same(
      parsed("graph(x: f32[5], i: i64[0], u: f32[0]) { return scatter_elements(x, i, u) }"),
      {testing::random_f32({5}, 1), some_indices({0}, 5, 3), testing::random_f32({0}, 2)});
  EXPECT_TRUE(none.interpreted.empty());
}

TEST(Compile, AttentionOverHeads) {
  const CompileReport report = expect_same(
      parsed("graph(x: f32[2, 7, 24], w: f32[24, 24], m: f32[7, 7]) { "
             "h = reshape(matmul(x, w), [2, 7, 3, 8])  q = transpose(h) {perm=[0, 2, 1, 3]}  "
             "k = transpose(h) {perm=[0, 2, 3, 1]}  s = add(mul(matmul(q, k), 0.35), m)  "
             "o = transpose(matmul(softmax(s), q)) {perm=[0, 2, 1, 3]}  return reshape(o, [2, 7, "
             "24]) }"),
      {testing::random_f32({2, 7, 24}, 1), testing::random_f32({24, 24}, 2),
       testing::random_f32({7, 7}, 3)});
  EXPECT_TRUE(report.interpreted.empty());
}

TEST(Compile, MatmulsBetweenPatchesOfImages) {
  // As in MobileViT: four pixels of a patch are the innermost axis of what is reshaped.
  const CompileReport report = expect_same(
      parsed("graph(x: f32[1, 12, 8, 6], w: f32[12, 12], b: f32[12]) { "
             "p = transpose(reshape(x, [48, 2, 3, 2])) {perm=[0, 2, 1, 3]}  "
             "q = transpose(reshape(p, [1, 12, 12, 4])) {perm=[0, 3, 2, 1]}  "
             "r = add(q, add(matmul(q, w), b))  s = add(r, relu(add(matmul(r, w), b)))  "
             "t = reshape(transpose(s) {perm=[0, 3, 2, 1]}, [48, 3, 2, 2])  "
             "return reshape(transpose(t) {perm=[0, 2, 1, 3]}, [1, 12, 8, 6]) }"),
      {testing::random_f32({1, 12, 8, 6}, 1), testing::random_f32({12, 12}, 2),
       testing::random_f32({12}, 3)});
  EXPECT_TRUE(report.interpreted.empty());
}

TEST(Compile, AttentionUnderAMaskBetweenViews) {
  const CompileReport report = expect_same(
      parsed("graph(q: f32[4, 3, 9, 8], k: f32[4, 3, 8, 9], v: f32[4, 3, 9, 8], m: f32[1, 4, 1, 9, "
             "9]) { s = reshape(matmul(q, k), [1, 4, 3, 9, 9])  t = reshape(add(s, m), [4, 3, 9, "
             "9])  return matmul(softmax(t), v) }"),
      {testing::random_f32({4, 3, 9, 8}, 1), testing::random_f32({4, 3, 8, 9}, 2),
       testing::random_f32({4, 3, 9, 8}, 3), testing::random_f32({1, 4, 1, 9, 9}, 4)});
  ASSERT_EQ(report.steps.size(), 1U);
  EXPECT_TRUE(report.steps[0].strategy.starts_with("attention")) << report.steps[0].strategy;
}

TEST(Compile, AttentionUnderAMaskThatMasksNothing) {
  // Its body adds the mask and asks which rows see no key; larger masks are computed late.
  for (const int length : {5, 601}) {
    const CompileReport report =
        expect_same(parsed(fmt::format("graph(q: f32[1, 2, {0}, 8]) {{ "
                                       "m = expand(const bool[1, 1, 1, 1] [1], [1, 1, {0}, {0}])  "
                                       "return attention(q, q, q, where(m, 0.0, -inf)) }}",
                                       length)),
                    {testing::random_f32({1, 2, length, 8}, 1)});
    ASSERT_EQ(report.steps.size(), 1U);
    EXPECT_EQ(report.steps[0].what.find("where"), std::string::npos) << report.steps[0].what;
    EXPECT_EQ(report.steps[0].what.find("add"), std::string::npos) << report.steps[0].what;
  }
}

/// A recurrent operator with weights of its own; `more` are further operands and attributes.
CompileReport expect_recurrent(const std::string& op, int gates, int directions,
                               const std::string& more, const std::string& outputs = "y") {
  const auto constant = [](const std::vector<std::int64_t>& shape, std::uint64_t seed) {
    return testing::random_f32(shape, seed);
  };
  constexpr std::int64_t kTime = 7, kBatch = 3, kIn = 5, kHidden = 6;
  const std::int64_t rows = gates * kHidden;
  Graph graph = parsed(fmt::format(
      "graph(x: f32[{0}, {1}, {2}], w: f32[{3}, {4}, {2}], r: f32[{3}, {4}, {5}], b: f32[{3}, "
      "{6}]) {{ {8} = {7}  return {8} }}",
      kTime, kBatch, kIn, directions, rows, kHidden, 2 * rows,
      fmt::format("{}(x, w, r, b{}", op, more), outputs));
  return expect_same(
      graph, {constant({kTime, kBatch, kIn}, 1), constant({directions, rows, kIn}, 2),
              constant({directions, rows, kHidden}, 3), constant({directions, 2 * rows}, 4)});
}

TEST(Compile, RecurrencesAreLoops) {
  for (const auto& [op, gates, outputs] :
       {std::tuple("rnn", 1, "y, h"), std::tuple("gru", 3, "y, h"),
        std::tuple("lstm", 4, "y, h, c")}) {
    SCOPED_TRACE(op);
    const auto report = expect_recurrent(op, gates, 1, ") {hidden_size=6}", outputs);
    EXPECT_TRUE(report.interpreted.empty());
    EXPECT_TRUE(std::ranges::any_of(report.steps,
                                    [](const auto& step) { return step.strategy == "loop"; }));
  }
}

TEST(Compile, RecurrencesInBothDirections) {
  expect_recurrent("lstm", 4, 2, ") {hidden_size=6, direction=\"bidirectional\"}", "y, h, c");
  expect_recurrent("gru", 3, 1, ") {hidden_size=6, direction=\"reverse\", linear_before_reset=1}");
}

TEST(Compile, RecurrencesOfSequencesThatEndEarly) {
  expect_recurrent("lstm", 4, 1, ", [7, 2, 0]) {hidden_size=6}", "y, h, c");
}

TEST(Compile, AScanMayRunBackwards) {
  for (const std::string directions : {"input_directions=[1], output_directions=[1]",
                                       "input_directions=[0], output_directions=[0]",
                                       "input_directions=[1], output_directions=[0]"})
    expect_same(
        parsed("graph(s: f32[4], x: f32[6, 4], k: f32[4]) { a, b, y = scan(s, k, x) "
               "{states=2, elements=1, " +
               directions +
               "} { body(s: f32[4], k: f32[4], x: f32[4]) { t = add(mul(s, k), x)  return "
               "t, k, neg(t) } }  return a, b, y }"),
        {testing::random_f32({4}, 1), testing::random_f32({6, 4}, 2), testing::random_f32({4}, 3)});
}

TEST(Compile, StatesOfAScanAreCopiedOnlyWhereTheyAreLarge) {
  // A state of 64 bytes is a slot of the result, one of 20 is padded to it, 288 KB have two slots.
  for (const std::int64_t elements : {16, 5, 72000})
    for (const int direction : {0, 1}) {
      const auto report = expect_same(
          parsed(fmt::format("graph(s: f32[{0}], x: f32[3, {0}]) {{ a, y, z = scan(s, x) "
                             "{{states=1, elements=1, input_directions=[{1}], "
                             "output_directions=[{1}, {1}]}} {{ body(s: f32[{0}], x: f32[{0}]) {{ "
                             "t = add(mul(s, x), x)  return t, t, neg(t) }} }}  return a, y, z }}",
                             elements, direction)),
          {testing::random_f32({elements}, 1), testing::random_f32({3, elements}, 2)});
      const auto is_loop = [](const auto& step) { return step.strategy == "loop"; };
      const auto is_copy = [](const auto& step) { return step.what == "copy"; };
      const auto loop = std::ranges::find_if(report.steps, is_loop);
      ASSERT_NE(loop, report.steps.end());
      // After the loop's kernels: a copy in the loop, or none, and those of the results.
      EXPECT_EQ(std::count_if(loop, report.steps.end(), is_copy), elements == 16  ? 2
                                                                  : elements == 5 ? 2
                                                                                  : 3);
    }
}

TEST(Compile, AScanAlongAnotherAxisIsInterpreted) {
  const auto report = expect_same(
      parsed("graph(s: f32[4], x: f32[4, 6]) { a, y = scan(s, x) {states=1, elements=1, "
             "input_axes=[1]} { body(s: f32[4], x: f32[4]) { t = add(s, x)  return t, t } }  "
             "return a, y }"),
      {testing::random_f32({4}, 1), testing::random_f32({4, 6}, 2)});
  EXPECT_TRUE(report.interpreted.contains("scan"));
}

TEST(Compile, WhatHasNoMachineCodeIsInterpretedAndNamed) {
  const CompileReport report =
      expect_same(parsed("graph(x: f32[4]) { y = neg(x)  return non_zero(y) }"),
                  {testing::f32({4}, {1, 0, 2, 4})});
  ASSERT_TRUE(report.interpreted.contains("non_zero"));
  EXPECT_EQ(report.interpreted.at("non_zero").count, 1);
}

TEST(Compile, ResultsThatAreInputsConstantsOrEachOther) {
  expect_same(parsed("graph(x: f32[2, 3]) { y = relu(x)  t = transpose(x)  return x, y, y, t, "
                     "reshape(y, [3, 2]) }"),
              {testing::random_f32({2, 3}, 1)});
}

TEST(Compile, ConcatsOfManyPartsAlongAnyAxis) {
  for (const int axis : {0, 1, 2, 3}) {
    SCOPED_TRACE(axis);
    std::vector<std::int64_t> wide{2, 3, 4, 5}, none{2, 3, 4, 5};
    wide[static_cast<std::size_t>(axis)] = 7;
    none[static_cast<std::size_t>(axis)] = 0;
    const CompileReport report = expect_same(
        parsed(fmt::format("graph(a: f32[2, 3, 4, 5], b: f32[{}], c: f32[{}]) {{ return concat(a, "
                           "b, c, relu(a), b) {{axis={}}} }}",
                           fmt::join(wide, ", "), fmt::join(none, ", "), axis)),
        {testing::random_f32({2, 3, 4, 5}, 1), testing::random_f32(wide, 2),
         testing::random_f32(none, 3)});
    EXPECT_TRUE(std::ranges::any_of(report.steps,
                                    [](const auto& step) { return step.strategy == "copy"; }));
  }
}

int steps_in_place(const CompileReport& report) {
  return static_cast<int>(std::ranges::count_if(
      report.steps, [](const auto& step) { return step.strategy == "in place"; }));
}

TEST(Compile, ConcatsOfPartsThatOccurTwiceAreSlicesOrHaveOneElement) {
  const Tensor image = testing::random_f32({3, 16, 7, 16}, 5);
  const Tensor weights = testing::random_f32({8, 16, 3, 3}, 6);
  expect_same(parsed("graph(x: f32[3, 16, 7, 16], k: f32[8, 16, 3, 3]) {"
                     "  y = conv(x, k) {auto_pad=\"SAME_UPPER\"}"
                     "  r = relu(y)"
                     "  s = slice(mul(y, y), [6], [7], [1])"
                     "  return concat(r, s, r, y) {axis=1}, r"
                     "}"),
              {image, weights});
  expect_same(parsed("graph(x: f32[1, 1, 1, 1], k: f32[32, 1, 1, 1]) {"
                     "  a = relu(x)"
                     "  b = concat(conv(a, k), a) {axis=1}"
                     "  return concat(b, b, a) {axis=1}"
                     "}"),
              {testing::random_f32({1, 1, 1, 1}, 7), testing::random_f32({32, 1, 1, 1}, 8)});
}

TEST(Compile, ReshapesOfImagesWithTheirChannelsLast) {
  // Channels in another order, images below each other, pixels as tokens: of a convolution, and
  // before the next one.
  for (const char* moved :
       {"reshape(transpose(reshape(y, [2, 2, 8, 6, 5])) {perm=[0, 2, 1, 3, 4]}, [2, 16, 6, 5])",
        "reshape(reshape(transpose(y) {perm=[1, 0, 2, 3]}, [1, 16, 12, 5]), [2, 16, 6, 5])",
        "reshape(transpose(relu(transpose(reshape(y, [2, 16, 30])) {perm=[0, 2, 1]})) "
        "{perm=[0, 2, 1]}, [2, 16, 6, 5])",
        "reshape(relu(reshape(y, [32, 30])), [2, 16, 6, 5])",
        "reshape(reshape(y, [2, 480]), [2, 16, 6, 5])"})
    expect_same(parsed(fmt::format("graph(x: f32[2, 16, 6, 5], k: f32[16, 16, 3, 3]) {{"
                                   "  y = conv(x, k) {{auto_pad=\"SAME_UPPER\"}}"
                                   "  z = {}"
                                   "  return conv(z, k) {{auto_pad=\"SAME_UPPER\"}}, y"
                                   "}}",
                                   moved)),
                {testing::random_f32({2, 16, 6, 5}, 9), testing::random_f32({16, 16, 3, 3}, 10)});
}

TEST(Compile, ABoxOverAResultIsWrittenInPlace) {
  Rng rng(5);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  // Row-major, channels-last, seen through views and transposes; the result is an output, or read.
  for (const auto& [whole, shape] :
       {std::pair<std::string, std::vector<std::int64_t>>{"exp(x)", {2, 8, 6, 10}},
        {"conv(x, k) {pads=[1, 1, 1, 1]}", {2, 8, 6, 10}},
        {"transpose(reshape(conv(x, k) {pads=[1, 1, 1, 1]},"
         " [2, 8, 10, 6])) {perm=[0, 2, 1, 3]}",
         {2, 10, 8, 6}}})
    for (const char* result : {"b", "relu(b)", "add(reduce_sum(b, [1]), b)"})
      for (int i = 0; i < 4; ++i) {
        std::vector<std::int64_t> size, start;
        for (const std::int64_t extent : shape) {
          size.push_back(draw(1, extent));
          start.push_back(draw(-1, extent - 1));  // may lie outside in part
        }
        SCOPED_TRACE(fmt::format("{} as {}: {} from {}", whole, result, fmt::join(size, ", "),
                                 fmt::join(start, ", ")));
        const CompileReport report = expect_same(
            parsed(fmt::format("graph(x: f32[2, 8, 6, 10], k: f32[8, 8, 3, 3], u: f32[{0}]) {{"
                               "  a = {1}  b = update_slice(a, u, [{2}])  return {3} }}",
                               fmt::join(size, ", "), whole, fmt::join(start, ", "), result)),
            {testing::random_f32({2, 8, 6, 10}, 1), testing::random_f32({8, 8, 3, 3}, 2),
             testing::random_f32(size, 3)});
        bool is_inside = true;
        for (std::size_t axis = 0; axis < shape.size(); ++axis)
          is_inside = is_inside && start[axis] + size[axis] > 0;
        EXPECT_EQ(steps_in_place(report), is_inside ? 1 : 0);
      }
}

TEST(Compile, ABoxOverWhatIsReadElsewhereIsACopy) {
  for (const char* body :
       {"b = update_slice(x, u, [1, 2])  return b",
        "a = exp(x)  b = update_slice(a, u, [1, 2])  return b, a",
        "a = exp(x)  b = update_slice(a, u, [1, 2])  return mul(a, b)",
        "a = exp(x)  v = reshape(a, [5, 6])  b = update_slice(v, u, [1, 2])  return add(v, b)",
        "a = exp(x)  t = transpose(a)  b = update_slice(t, u, [1, 2])  return b, reshape(a, [30])",
        "a = exp(x)  b = update_slice(a, slice(a, [0, 0], [2, 3]), [1, 2])  return b",
        "a = exp(x)  c = slice(a, [0], [4])  b = update_slice(c, u, [1, 2])  return b, neg(a)"}) {
    SCOPED_TRACE(body);
    const bool is_transposed = std::string_view(body).find("transpose") != std::string_view::npos;
    const CompileReport report = expect_same(
        parsed(fmt::format("graph(x: f32[{}], u: f32[2, 3]) {{ {} }}",
                           is_transposed ? "6, 5" : "5, 6", body)),
        {testing::random_f32(
             is_transposed ? std::vector<std::int64_t>{6, 5} : std::vector<std::int64_t>{5, 6}, 1),
         testing::random_f32({2, 3}, 2)});
    EXPECT_EQ(steps_in_place(report), 0);
  }
}

TEST(Compile, WhatReadsAResultAndAViewOfIt) {
  expect_same(parsed("graph(x: f32[3, 3], w: f32[3]) { a = layer_normalization(x, w, w)  "
                     "t = transpose(a)  return sub(t, a), t }"),
              {testing::random_f32({3, 3}, 1), testing::random_f32({3}, 2)});
  expect_same(parsed("graph(x: f32[3, 2]) { a = relu(reduce_sum(x, [0]) {keepdims=0})  "
                     "return max(a, reshape(a, [1, 2])) }"),
              {testing::random_f32({3, 2}, 1)});
  expect_same(parsed("graph(x: f32[2, 4], w: f32[4]) { a = layer_normalization(x, w, w)  "
                     "return mul(slice(a, [1], [-9], [0], [-1]), a) }"),
              {testing::random_f32({2, 4}, 1), testing::random_f32({4}, 2)});
}

TEST(Compile, PiecesOfATensorAreNotCopied) {
  const auto steps = [](const char* graph) {
    const CompileReport report = expect_same(
        parsed(graph), {testing::random_f32({4, 8, 16}, 1), testing::random_f32({16, 16}, 2)});
    return report.steps.size();
  };
  // The second and the last matrix of a product, read in another shape by others.
  const char* const whole = "graph(x: f32[4, 8, 16], w: f32[16, 16]) { a = matmul(x, w)  ";
  EXPECT_EQ(steps((std::string(whole) +
                   "p = reshape(slice(a, [1], [2], [0], [1]), [16, 8])  "
                   "q = reshape(slice(a, [3], [4], [0], [1]), [8, 16])  return matmul(p, q) }")
                      .c_str()),
            2u);
  // The first piece, over which a loop runs, and as a result.
  expect_same(parsed("graph(x: f32[16, 8], w: f32[8, 8]) { "
                     "a = matmul(x, w)  h = slice(a, [15], [16], [0], [1])  "
                     "s, t = scan(reshape(h, [8]), slice(a, [0], [8], [0], [1])) "
                     "{states=1, elements=1} "
                     "{ body(c: f32[8], e: f32[8]) { d = add(c, e)  return d, mul(d, e) } }  "
                     "return s, t }"),
              {testing::random_f32({16, 8}, 1), testing::random_f32({8, 8}, 2)});
  steps((std::string(whole) + "return slice(a, [0], [2], [0], [1]) }").c_str());
  // A result, what the host reads, and what does not begin where vectors do.
  steps((std::string(whole) + "return slice(a, [1], [3], [0], [1]) }").c_str());
  steps((std::string(whole) +
         "v, i = top_k(reshape(slice(a, [2], [3], [0], [1]), [128]), [3])  return v }")
            .c_str());
  steps((std::string(whole) + "p = reshape(slice(reshape(a, [512]), [1], [9], [0], [1]), [8, 1])  "
                              "return matmul(p, transpose(p)) }")
            .c_str());
}

TEST(Compile, ConvolutionsOfWhatLiesBackwards) {
  for (const int filters : {1, 2})
    expect_same(parsed(fmt::format("graph(x: f32[3, 4, 2], w: f32[{}, 4, 1]) {{ return "
                                   "conv(slice(x, [-1], [-9], [1], [-1]), w) }}",
                                   filters)),
                {testing::random_f32({3, 4, 2}, 1), testing::random_f32({filters, 4, 1}, 2)});
  expect_same(parsed("graph(x: f32[3, 4, 2]) { w = const f32[1, 4, 1] [1.0, 2.0, 3.0, 4.0]  return "
                     "conv(slice(x, [-1], [-9], [1], [-1]), w) }"),
              {testing::random_f32({3, 4, 2}, 1)});
}

TEST(Compile, TensorsWithoutAxes) {
  expect_same(parsed("graph(x: f32[2, 1, 4, 1], s: f32[]) { return mul(x, s), exp(s) }"),
              {testing::random_f32({2, 1, 4, 1}, 1), testing::f32({}, {0.5})});
}

TEST(Compile, TensorsWithoutElements) {
  expect_same(parsed("graph(x: f32[0, 3], y: f32[2, 0]) { return relu(x), reduce_sum(y, [1]), "
                     "matmul(y, x) }"),
              {testing::f32({0, 3}, {}), testing::f32({2, 0}, {})});
}

void expect_same_when_optimized(const Graph& graph, std::uint64_t seed) {
  const auto inputs = testing::random_inputs(graph, seed);
  const auto optimized = passes::optimize(graph, {});
  ASSERT_TRUE(optimized) << to_string(optimized.error());
  expect_same(graph, optimized->graph, inputs, {}, 1e-4);
}

TEST(Compile, TransposedConvolutionsSpreadNoNaN) {
  // Phases whose taps the window does not have would multiply pixels by zero.
  Tensor image = testing::random_f32({1, 3, 4, 5}, 1);
  const_cast<float*>(image.as<float>().data())[7] = std::numeric_limits<float>::quiet_NaN();
  expect_same(
      parsed("graph(x: f32[1, 3, 4, 5]) { w = const f32[3, 1, 1, 3] [1, 2, 3, 4, 5, 6, 7, 8, "
             "9]  return conv_transpose(x, w) {strides=[2, 2]} }"),
      parsed("graph(x: f32[1, 3, 4, 5]) { w = const f32[3, 1, 1, 3] [1, 2, 3, 4, 5, 6, 7, 8, "
             "9]  return conv_transpose(x, w) {strides=[2, 2]} }"),
      {image}, {.passes = {.exact = true}}, 1e-6);
}

TEST(Compile, MaximaOfHalvesKeepNaN) {
  // On CPUs without f16 arithmetic, LLVM must not narrow the maximum of f32 to f16.
  Tensor a = testing::random_f32({64}, 1), b = testing::random_f32({64}, 2);
  const_cast<float*>(a.as<float>().data())[3] = std::numeric_limits<float>::quiet_NaN();
  const_cast<float*>(b.as<float>().data())[5] = std::numeric_limits<float>::quiet_NaN();
  for (const char* op : {"max", "min"}) {
    const Graph graph = parsed(fmt::format(
        "graph(a: f32[64], b: f32[64]) {{ x = cast(a) {{to=\"f16\"}}  y = cast(b) {{to=\"f16\"}}  "
        "return {}(x, y) }}",
        op));
    expect_same(graph, graph, {a, b}, {.passes = {.exact = true}}, 0);
  }
}

TEST(Compile, WhatIsFusedIntoACastToIntegersIsRounded) {
  const Graph graph =
      parsed("graph(x: f32[16]) { return cast(mul(sqrt(x), 1073741824.0)) {to=\"i64\"} }");
  Tensor x = testing::random_f32({16}, 3);
  for (float& number : std::span(const_cast<float*>(x.as<float>().data()), 16))
    number = std::abs(number);
  expect_same(graph, graph, {x}, {.passes = {.exact = true}}, 0);
}

TEST(Compile, RandomGraphs) {
  testing::for_each_random_graph({.seed = 11, .count = 20, .max_nodes = 8},
                                 [](const Graph& graph) { expect_same_when_optimized(graph, 3); });
}

/// TESSERA_RANDOM_GRAPHS=100000 tries so many, TESSERA_RANDOM_SEED=7 others.
testing::RandomGraphs asked_for(testing::RandomGraphs which) {
  if (const char* count = std::getenv("TESSERA_RANDOM_GRAPHS")) which.count = std::atoi(count);
  if (const char* seed = std::getenv("TESSERA_RANDOM_SEED"))
    which.seed = std::strtoull(seed, nullptr, 10);
  return which;
}

TEST(SlowCompile, AThousandRandomGraphs) {
  testing::for_each_random_graph(asked_for({.seed = 1'000, .count = 1'000, .max_nodes = 12}),
                                 [](const Graph& graph) { expect_same_when_optimized(graph, 5); });
}

TEST(SlowCompile, RandomGraphsOfLargerTensors) {
  testing::for_each_random_graph(
      asked_for({.seed = 2'000, .count = 100, .max_nodes = 10, .extents = testing::Extents::Many}),
      [](const Graph& graph) { expect_same_when_optimized(graph, 7); });
}

}  // namespace
}  // namespace tessera::program
