#include "tessera/program/group.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>

#include "tessera/interp/interp.h"
#include "tessera/ir/bind.h"
#include "tessera/ir/expand.h"
#include "tessera/passes/batch_norm_to_affine.h"
#include "tessera/passes/conv_transpose_subpixel.h"
#include "tessera/passes/dense_groups.h"
#include "tessera/passes/dft_to_matmul.h"
#include "tessera/passes/trim_windows.h"
#include "tessera/program/layout.h"
#include "tessera/program/stage.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera::program {
namespace {

using testing::parsed;

/// The operators of each group, in order.
std::vector<std::string> groups_of(std::string_view text, const GroupingOptions& options = {}) {
  const auto graph = expand(parsed(text), [](const OpDef&) { return true; });
  EXPECT_TRUE(graph.has_value());
  std::vector<std::string> result;
  for (const NodeGroup& group : group_nodes(*graph, options).groups) {
    std::string names;
    for (const std::size_t n : group.nodes)
      names += (names.empty() ? "" : " ") + graph->nodes()[n].op->name;
    result.push_back(names);
  }
  return result;
}

using Groups = std::vector<std::string>;

TEST(Groups, WhatIsComputedOfAConvolutionGoesWithIt) {
  EXPECT_EQ(groups_of("graph(x: f32[1, 8, 9, 9], w: f32[8, 8, 1, 1], r: f32[1, 8, 9, 9]) { "
                      "a = conv(x, w)  b = add(a, r)  return relu(b) }"),
            (Groups{"conv add relu"}));
}

TEST(Groups, AResultThatIsUsedTwiceIsKept) {
  EXPECT_EQ(groups_of("graph(x: f32[4, 8], w: f32[8, 8]) { a = matmul(x, w)  b = relu(a)  return "
                      "a, b }"),
            (Groups{"matmul", "relu"}));
}

TEST(Groups, MapsThatCostNoMoreThanTheirResultAreComputedByTheirReaders) {
  const GroupingOptions recomputes{.recomputes_maps = true};
  // Half of what a batch norm's gradient computes: the centered image is read twice.
  const char* const centered =
      "graph(x: f16[4, 8, 9], g: f32[4, 8, 9], m: f32[1, 8, 1]) { c = sub(cast(x) {to=\"f32\"}, m)"
      "  s = reduce_sum(mul(g, c), [0, 2]) {keepdims=1}  return sub(g, mul(c, s)) }";
  EXPECT_EQ(groups_of(centered), (Groups{"cast sub", "mul reduce_sum mul sub"}));
  EXPECT_EQ(groups_of(centered, recomputes), (Groups{"mul reduce_sum mul sub"}));
  // No rematerialization of operands of contractions, of expensive maps, nor of maps whose operands
  // take more bytes than their result.
  const auto unchanged = [&](const char* graph) {
    EXPECT_EQ(groups_of(graph, recomputes), groups_of(graph)) << graph;
  };
  unchanged(
      "graph(x: f32[64, 8], w: f32[8, 8], v: f32[8, 8]) { y = relu(x)  "
      "return matmul(y, w), matmul(y, v) }");
  unchanged("graph(x: f32[4, 8]) { y = exp(x)  return reduce_sum(y, [0]), reduce_sum(y, [1]) }");
  unchanged(
      "graph(x: f32[4, 8], y: f32[4, 8], z: f32[4, 8]) { a = add(add(x, y), z)  "
      "return reduce_sum(a, [0]), reduce_sum(a, [1]), relu(a) }");
  // A mask is read by what follows a contraction.
  EXPECT_EQ(groups_of("graph(x: f32[8, 8], w: f32[8, 8], y: f32[8, 8]) { "
                      "p = matmul(x, w)  return where(less_or_equal(y, 0.0), 0.0, p) }",
                      recomputes),
            (Groups{"matmul where"}));
}

TEST(Groups, MapsThatPartAndMeetAgainStayTogether) {
  EXPECT_EQ(groups_of("graph(x: f32[4, 8], w: f32[8, 8]) { a = matmul(x, w)  b = sigmoid(a)  "
                      "return mul(a, b) }"),
            (Groups{"matmul sigmoid mul"}));
}

TEST(Groups, ASoftmaxIsOne) {
  EXPECT_EQ(groups_of("graph(x: f32[4, 8]) { return softmax(x) }"),
            (Groups{"reduce_max sub exp reduce_sum div"}));
}

TEST(Groups, ASoftmaxBetweenProductsIsAttention) {
  EXPECT_EQ(groups_of("graph(q: f32[2, 4, 8], k: f32[2, 8, 4], v: f32[2, 4, 8]) { return "
                      "matmul(softmax(matmul(q, k)), v) }"),
            (Groups{"matmul reduce_max sub exp reduce_sum div matmul"}));
}

TEST(Groups, ANormalizationBetweenProductsIsNoAttention) {
  EXPECT_EQ(groups_of("graph(q: f32[2, 4, 8], k: f32[2, 8, 4], v: f32[2, 4, 8], s: f32[4]) { "
                      "return matmul(rms_normalization(matmul(q, k), s), v) }")
                .size(),
            3U);
}

TEST(Groups, AGateDoesNotGoWithThePoolThatItDependsOn) {
  // The product needs the gate, which needs the mean: together with the mean it would wait for
  // itself.
  EXPECT_EQ(groups_of("graph(x: f32[1, 8, 5, 5], w: f32[8, 8, 1, 1]) { m = global_average_pool(x) "
                      " g = sigmoid(conv(m, w))  return mul(x, g) }"),
            (Groups{"reduce_mean", "conv sigmoid", "mul"}));
}

TEST(Groups, ViewsAndSlicesAreInNone) {
  EXPECT_EQ(groups_of("graph(x: f32[4, 8]) { a = transpose(x)  b = reshape(a, [2, 16])  return "
                      "relu(b) }"),
            (Groups{"relu"}));
}

/// Every node that is no view or move is in one group, after all that it reads.
void expect_in_order(const Graph& given, const GroupingOptions& options) {
  const auto graph = expand(given, [](const OpDef&) { return true; });
  ASSERT_TRUE(graph.has_value());
  const Grouping grouping = group_nodes(*graph, options);
  const auto is_free = [&](std::size_t n) {
    return grouping.kinds[n] == NodeKind::View || grouping.kinds[n] == NodeKind::Transpose ||
           grouping.kinds[n] == NodeKind::Move;
  };
  std::vector<bool> ready(graph->value_count(), true);  // inputs and constants are
  for (const GraphNode& node : graph->nodes())
    for (const ValueId output : graph->outputs(node)) ready[output.index] = false;
  // What is read through views and moves, which are computed when they are wanted; they are of what
  // was there before the group.
  const std::function<bool(ValueId, const std::vector<bool>&)> can_be_read =
      [&](ValueId value, const std::vector<bool>& before) {
        if (!value.present() || before[value.index]) return true;
        const auto n = static_cast<std::size_t>(graph->producer(value) - graph->nodes().data());
        return is_free(n) && std::ranges::all_of(graph->inputs(graph->nodes()[n]), [&](ValueId in) {
                 return can_be_read(in, before);
               });
      };
  for (const NodeGroup& group : grouping.groups) {
    const std::vector<bool> before = ready;
    for (const std::size_t n : group.nodes) {
      const GraphNode& node = graph->nodes()[n];
      for (const ValueId input : graph->inputs(node))
        EXPECT_TRUE(!input.present() || ready[input.index] || can_be_read(input, before))
            << node.op->name << " comes too early";
      for (const ValueId output : graph->outputs(node)) ready[output.index] = true;
    }
  }
  for (std::size_t n = 0; n < graph->nodes().size(); ++n)
    EXPECT_TRUE(is_free(n) || ready[graph->outputs(graph->nodes()[n])[0].index])
        << graph->nodes()[n].op->name << " is in no group";
}

TEST(Groups, ComeInAnOrderInWhichTheyCanBeComputed) {
  const char* given = std::getenv("TESSERA_RANDOM_GRAPHS");
  testing::for_each_random_graph(
      {.seed = 7'000, .count = given == nullptr ? 500 : std::atoi(given), .max_nodes = 12},
      [](const Graph& graph) {
        expect_in_order(graph, {});
        expect_in_order(graph, {.recomputes_maps = true});
      });
}

TEST(Layout, OrdersAreEqualUpToAxesOfOnePosition) {
  const std::vector<std::int64_t> image{1, 64, 7, 7}, pooled{1, 64, 1, 1};
  EXPECT_FALSE(same_places(image, row_major(4), channels_last(4)));
  EXPECT_TRUE(same_places(pooled, row_major(4), channels_last(4)));
}

TEST(Layout, ATransposeIsAnotherOrderOfTheSamePlaces) {
  // In memory: axes 0, 2, 3, 1. The transpose names axis 1 of the input its last one.
  const std::vector<int> perm{0, 2, 3, 1};
  EXPECT_EQ(transposed(channels_last(4), perm), row_major(4));
}

TEST(Layout, AReshapeOfAxesThatAreNeighboursInMemoryMovesNothing) {
  using Extents = std::vector<std::int64_t>;
  // Images side by side as a batch: rows are split, and channels stay last.
  EXPECT_EQ(reshaped(channels_last(4), Extents{1, 64, 224, 56}, Extents{64, 4, 56, 56}),
            (AxisOrder{1, 2, 3, 0}));
  // Pixels as tokens, and back.
  EXPECT_EQ(reshaped(channels_last(4), Extents{2, 768, 14, 14}, Extents{2, 768, 196}),
            (AxisOrder{0, 2, 1}));
  EXPECT_EQ(reshaped(channels_last(3), Extents{2, 768, 196}, Extents{2, 768, 14, 14}),
            channels_last(4));
  // Channels and pixels as one axis.
  EXPECT_EQ(reshaped(channels_last(4), Extents{2, 64, 7, 7}, Extents{2, 3136}), std::nullopt);
  EXPECT_EQ(reshaped(channels_last(4), Extents{2, 64, 1, 1}, Extents{2, 64}), row_major(2));
  EXPECT_EQ(reshaped(row_major(2), Extents{0, 4}, Extents{2, 0}), std::nullopt);
}

/// Place in memory of each element, in row-major order of the tensor.
std::vector<std::int64_t> element_places(const std::vector<std::int64_t>& shape,
                                         const AxisOrder& order) {
  std::vector<std::int64_t> stride(shape.size()), places;
  std::int64_t count = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const auto axis = static_cast<std::size_t>(order[i]);
    stride[axis] = count;
    count *= shape[axis];
  }
  for (std::int64_t element = 0; element < count; ++element) {
    std::int64_t rest = element, place = 0;
    for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      place += rest % shape[axis] * stride[axis];
    places.push_back(place);
  }
  return places;
}

/// Random factors of a number, their product.
std::vector<std::int64_t> random_factors(std::int64_t number, std::mt19937& random) {
  std::vector<std::int64_t> factors;
  while (number > 1 || random() % 3 == 0) {
    std::int64_t factor = 1 + static_cast<std::int64_t>(random() % 12);
    while (number % factor != 0) --factor;
    factors.push_back(factor);
    number /= factor;
  }
  return factors;
}

TEST(Layout, ReshapedLayoutsPutEveryElementWhereItWas) {
  std::mt19937 random(17);
  int views = 0;
  for (int i = 0; i < 2'000; ++i) {
    const auto from = random_factors(360, random), to = random_factors(360, random);
    AxisOrder order = row_major(from.size());
    if (i % 4 != 0) std::ranges::shuffle(order, random);
    const auto result = reshaped(order, from, to);
    if (i % 4 == 0) {
      EXPECT_EQ(result, row_major(to.size()));
    }
    if (!result) continue;
    ++views;
    EXPECT_EQ(element_places(from, order), element_places(to, *result));
  }
  EXPECT_GT(views, 600);
}

/// `op(x, w, b)` of constant weights and bias.
Graph with_constants(const char* op, const std::vector<std::int64_t>& image,
                     const std::vector<std::int64_t>& weights, std::int64_t filters,
                     const char* attributes) {
  const Tensor w = testing::random_f32(weights, 2), b = testing::random_f32({filters}, 3);
  GraphBuilder builder;
  const Val pixels = builder.input("x", DType::F32, {image.begin(), image.end()});
  const Graph open = parsed(
      fmt::format("graph(x: f32[{}], w: f32[{}], b: f32[{}]) {{ return {}(x, w, b) {} }}",
                  fmt::join(image, ", "), fmt::join(weights, ", "), filters, op, attributes));
  const auto results =
      placed(builder, open, {pixels, builder.constant(w), builder.constant(b)}, {});
  EXPECT_TRUE(results.has_value());
  auto graph = builder.finish(*results);
  EXPECT_TRUE(graph.has_value());
  return *std::move(graph);
}

void expect_same_interpreted(const Graph& graph, const Graph& changed,
                             const std::vector<std::int64_t>& image) {
  testing::expect_valid(changed);
  const std::vector<Datum> inputs{testing::random_f32(image, 1)};
  const auto expected = interp::run(graph, inputs, {}), found = interp::run(changed, inputs, {});
  ASSERT_TRUE(expected && found);
  testing::expect_near((*found)[0].tensor(), (*expected)[0].tensor(), 1e-5);
}

/// A transposed convolution of constant weights, without and with phases: nothing is left of it.
void expect_same_in_phases(const std::vector<std::int64_t>& image,
                           const std::vector<std::int64_t>& weights, const char* attributes,
                           std::int64_t group = 1) {
  SCOPED_TRACE(fmt::format("weights {}, {}", fmt::join(weights, "x"), attributes));
  const Graph graph =
      with_constants("conv_transpose", image, weights, weights[1] * group, attributes);
  const auto phased = passes::conv_transpose_subpixel(graph);
  ASSERT_TRUE(phased.has_value());
  for (const GraphNode& node : phased->nodes()) EXPECT_NE(node.op->name, "conv_transpose");
  expect_same_interpreted(graph, *phased, image);
}

/// A convolution in groups, as it is on a machine, by default with vectors of 16 floats: in so many
/// groups.
void expect_wide(std::int64_t expected_groups, const std::vector<std::int64_t>& image,
                 const std::vector<std::int64_t>& weights, const char* attributes,
                 const Expected<machine::Machine>& machine = machine::named("sapphirerapids")) {
  SCOPED_TRACE(fmt::format("weights {}, {}", fmt::join(weights, "x"), attributes));
  const Graph graph = with_constants("conv", image, weights, weights[0], attributes);
  ASSERT_TRUE(machine.has_value());
  const Graph wide = passes::dense_groups(graph, *machine);
  ASSERT_EQ(wide.nodes().size(), 1U);
  EXPECT_EQ(wide.nodes()[0].attrs->i("group"), expected_groups);
  expect_same_interpreted(graph, wide, image);
}

/// A convolution whose weights have these sizes after trimming.
void expect_trimmed(const std::vector<std::int64_t>& expected,
                    const std::vector<std::int64_t>& image,
                    const std::vector<std::int64_t>& weights, const char* attributes) {
  SCOPED_TRACE(fmt::format("weights {}, {}", fmt::join(weights, "x"), attributes));
  const Graph graph = with_constants("conv", image, weights, weights[0], attributes);
  const Graph trimmed = passes::trim_windows(graph);
  ASSERT_EQ(trimmed.nodes().size(), 1U);
  EXPECT_EQ(trimmed.constant(trimmed.inputs(trimmed.nodes()[0])[1])->shape, expected);
  expect_same_interpreted(graph, trimmed, image);
}

TEST(TrimmedWindows, DropWhatReadsPaddingOnly) {
  expect_trimmed({4, 3, 1, 1}, {2, 3, 5, 6}, {4, 3, 3, 3}, "{pads=[7, 7, 7, 7], dilations=[7, 7]}");
  expect_trimmed({4, 3, 3, 1}, {1, 3, 9, 4}, {4, 3, 3, 3}, "{pads=[6, 6, 6, 6], dilations=[6, 6]}");
  expect_trimmed({4, 2, 1, 1}, {1, 4, 1, 1}, {4, 2, 3, 3},
                 "{group=2, pads=[1, 1, 1, 1], strides=[2, 2]}");
  expect_trimmed({2, 1, 2}, {1, 1, 2}, {2, 1, 4}, "{pads=[0, 2], strides=[3]}");
  expect_trimmed({2, 1, 1, 2, 3}, {1, 1, 1, 2, 3}, {2, 1, 3, 3, 3}, "{pads=[1, 0, 0, 1, 1, 0]}");
}

TEST(TrimmedWindows, KeepPadsThatAreNotNegative) {
  // Dropping the first tap would begin at the third pixel.
  expect_trimmed({2, 1, 2}, {1, 1, 9}, {2, 1, 2}, "{pads=[1, 0], dilations=[3], strides=[20]}");
}

TEST(TrimmedWindows, KeepOnePositionThatReadsPadding) {
  expect_trimmed({2, 1, 1}, {1, 1, 3}, {2, 1, 2}, "{pads=[9, 0], dilations=[1], strides=[40]}");
}

TEST(AffineNorms, AreAProductAndASum) {
  for (const std::vector<std::int64_t>& image :
       std::vector<std::vector<std::int64_t>>{{2, 3}, {2, 3, 5}, {1, 3, 4, 5}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(image, "x")));
    const Graph open = parsed(
        fmt::format("graph(x: f32[{}], s: f32[3], b: f32[3], m: f32[3], v: f32[3]) {{ return "
                    "batch_normalization(x, s, b, m, v) {{epsilon=0.25}} }}",
                    fmt::join(image, ", ")));
    GraphBuilder builder;
    Vals inputs{builder.input("x", DType::F32, {image.begin(), image.end()})};
    for (const int seed : {2, 3, 4})
      inputs.push_back(builder.constant(testing::random_f32({3}, seed)));
    const std::vector<float> variance{0.5, 1, 4};
    inputs.push_back(builder.constant(Tensor::of<float>(DType::F32, {3}, std::span(variance))));
    const auto results = placed(builder, open, inputs, {});
    ASSERT_TRUE(results.has_value());
    const auto graph = builder.finish(*results);
    ASSERT_TRUE(graph.has_value());
    const Graph affine = passes::batch_norm_to_affine(*graph);
    ASSERT_EQ(affine.nodes().size(), 2U);
    expect_same_interpreted(*graph, affine, image);
  }
}

TEST(WideGroups, FillAVector) {
  expect_wide(2, {2, 24, 5, 6}, {32, 3, 3, 3}, "{group=8, pads=[1, 1, 1, 1], strides=[2, 1]}");
  expect_wide(2, {1, 12, 4, 4}, {18, 2, 1, 3}, "{group=6}");
  expect_wide(3, {1, 18, 7}, {45, 2, 2}, "{group=9, dilations=[2]}");
}

TEST(WideGroups, FillAStepOfTensorCoresWithChannels) {
  const machine::Machine gpu = machine::cuda();
  expect_wide(1, {1, 16, 5, 5}, {192, 8, 3, 3}, "{group=2, pads=[1, 1, 1, 1]}", gpu);
  expect_wide(2, {1, 32, 3, 3}, {256, 8, 1, 1}, "{group=4}", gpu);
  expect_wide(3, {1, 24, 3, 3}, {192, 8, 1, 1}, "{group=3}", gpu);
  expect_wide(2, {1, 32, 3, 3}, {192, 16, 1, 1}, "{group=2}", gpu);
  expect_wide(2, {1, 16, 3, 3}, {192, 8, 1, 1}, "{group=2}");
}

TEST(WideGroups, LeaveAloneWhatFillsOneAndWhatGoesAlongTheChannels) {
  expect_wide(2, {1, 6, 4, 4}, {32, 3, 3, 3}, "{group=2}");
  expect_wide(8, {1, 8, 4, 4}, {8, 1, 3, 3}, "{group=8}");
  expect_wide(1, {1, 6, 4, 4}, {4, 6, 3, 3}, "{}");
}

TEST(Phases, TransposedConvolutionsOfOnePixelAreProducts) {
  expect_same_in_phases({2, 3, 1, 1}, {3, 5, 4, 4}, "{}");
  expect_same_in_phases({2, 3, 1, 1}, {3, 5, 4, 4}, "{strides=[2, 2]}");
  expect_same_in_phases({2, 3, 1}, {3, 5, 4}, "{}");
}

TEST(Phases, TransposedConvolutionsAreConvolutions) {
  const char* attributes[] = {"{strides=[2, 2]}", "{strides=[2, 2], pads=[1, 1, 1, 1]}",
                              "{strides=[3, 3], pads=[1, 0, 2, 0], output_padding=[1, 2]}",
                              "{strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]}", "{}"};
  for (const std::int64_t filters : {3, 17})
    for (const std::int64_t window : {2, 3, 4, 5})
      for (const char* attribute : attributes)
        expect_same_in_phases({2, 3, 4, 5}, {3, filters, window, window}, attribute);
}

TEST(Phases, OfAnyStridesPaddingDilationsAndGroups) {
  const char* attributes[] = {"{strides=[3, 1]}",
                              "{strides=[3, 2], pads=[2, 3, 1, 0]}",
                              "{strides=[4, 5], output_padding=[3, 1]}",
                              "{pads=[1, 2, 1, 0]}",
                              "{strides=[2, 3], dilations=[3, 2]}",
                              "{strides=[2, 2], auto_pad=\"SAME_UPPER\"}",
                              "{strides=[3, 2], auto_pad=\"SAME_LOWER\", output_padding=[1, 0]}",
                              "{strides=[2, 3], output_shape=[9, 14]}",
                              "{strides=[2, 2], pads=[4, 4, 4, 4]}"};
  for (const std::int64_t filters : {2, 16})
    for (const char* attribute : attributes)
      expect_same_in_phases({2, 3, 4, 5}, {3, filters, 3, 4}, attribute);
  expect_same_in_phases({2, 6, 4, 5}, {6, 2, 3, 4}, "{strides=[2, 2], group=3}", 3);
  expect_same_in_phases({1, 4, 4, 5}, {4, 1, 4, 4}, "{strides=[2, 2], group=4, pads=[1, 1, 1, 1]}",
                        4);
}

TEST(Phases, OfAnyNumberOfAxes) {
  for (const std::int64_t filters : {3, 16}) {
    expect_same_in_phases({2, 3, 9}, {3, filters, 16}, "{strides=[8], pads=[4, 4]}");
    expect_same_in_phases({2, 3, 9}, {3, filters, 5}, "{strides=[2], pads=[1, 1]}");
    expect_same_in_phases({1, 3, 2, 3, 4}, {3, filters, 2, 2, 2}, "{strides=[2, 2, 2]}");
    expect_same_in_phases({1, 3, 2, 3, 4}, {3, filters, 3, 4, 3},
                          "{strides=[2, 2, 1], pads=[1, 1, 1, 1, 1, 1]}");
  }
}

TEST(Transforms, FourierTransformsAreProducts) {
  const char* graphs[] = {
      "graph(x: f32[3, 10, 2]) { return dft(x) }",
      "graph(x: f32[3, 10, 1]) { return dft(x) {onesided=1} }",
      "graph(x: f32[3, 7, 2]) { return dft(x) {inverse=1} }",
      "graph(x: f32[2, 6, 2]) { return dft(x, 10) {inverse=1, onesided=1} }",
      "graph(x: f32[2, 6, 2]) { return dft(x, 9) {inverse=1, onesided=1} }",
      "graph(x: f32[4, 5, 6, 2]) { return dft(x, 8, 1) }",
      "graph(x: f32[4, 5, 6, 1]) { return dft(x, 3, 0) }",
      "graph(x: f32[2, 30, 1]) { return stft(x, 4, [0.5, 1.0, 2.0, 1.0, 0.5, 0.25]) }",
      "graph(x: f32[2, 30, 2]) { return stft(x, 5, _, 9) {onesided=0} }"};
  for (const char* text : graphs) {
    SCOPED_TRACE(text);
    const Graph graph = parsed(text);
    const auto made = passes::dft_to_matmul(graph);
    ASSERT_TRUE(made.has_value());
    testing::expect_valid(*made);
    for (const GraphNode& node : made->nodes())
      EXPECT_TRUE(node.op->name != "dft" && node.op->name != "stft");
    const std::vector<Datum> inputs{
        testing::random_f32(*static_shape(graph.type(graph.inputs()[0])), 1)};
    const auto expected = interp::run(graph, inputs, {}), found = interp::run(*made, inputs, {});
    ASSERT_TRUE(expected && found);
    testing::expect_near((*found)[0].tensor(), (*expected)[0].tensor(), 1e-5);
  }
}

}  // namespace
}  // namespace tessera::program
