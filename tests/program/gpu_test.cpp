#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tessera/codegen/gpu_image.h"
#include "tessera/engine/engine.h"
#include "tessera/interp/interp.h"
#include "tessera/ir/bind.h"
#include "tessera/passes/pipeline.h"
#include "tessera/program/backend.h"
#include "tessera/program/compile.h"
#include "tessera/program/launch_arguments.h"
#include "tessera/runtime/session.h"
#include "tessera/tile/passes/recover.h"
#include "tessera/tile/passes/simplify.h"
#include "tessera/tile/text.h"
#include "tests/codegen/ptx_emulator.h"
#include "tests/program/gpu_case.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera::program {
namespace {

using testing::parsed;
using testing::random_f32;

/// Two convolutions, the second with padding, stride and a residual; a pool; a product.
const char* const kSmallNetwork =
    "graph(x: f32[1, 3, 10, 10], w: f32[8, 3, 3, 3], b: f32[8], v: f32[8, 8, 3, 3], "
    "u: f32[8, 5]) { "
    "a = relu(conv(x, w, b) {pads=[1, 1, 1, 1]})  "
    "c = relu(add(conv(a, v) {pads=[1, 1, 1, 1]}, a))  "
    "p = max_pool(c) {kernel_shape=[2, 2], strides=[2, 2]}  "
    "m = reshape(global_average_pool(p), [1, 8])  return matmul(m, u) }";
std::vector<Tensor> of_small_network() {
  return {random_f32({1, 3, 10, 10}, 1), random_f32({8, 3, 3, 3}, 2), random_f32({8}, 3),
          random_f32({8, 8, 3, 3}, 4), random_f32({8, 5}, 5)};
}

TEST(GpuProgram, ASmallNetworkOfConvolutions) {
  const CompileReport report = expect_same_on_gpu({kSmallNetwork, of_small_network()});
  EXPECT_TRUE(report.interpreted.empty());
}

TEST(GpuProgram, NarrowGroupsStoreNothingOutside) {
  // Tiles that are wider than a group of 8 filters and than a row of 14 pixels.
  expect_same_on_gpu({.graph = "graph(x: f32[1, 24, 5, 14], w: f32[24, 8, 3, 3], b: f32[24]) { "
                               "return relu(conv(x, w, b) {group=3, pads=[1, 1, 1, 1]}) }",
                      .inputs = {random_f32({1, 24, 5, 14}, 1), random_f32({24, 8, 3, 3}, 2),
                                 random_f32({24}, 3)}});
}

TEST(GpuProgram, PixelsThatAreNotAlignedAreLoadedByElements) {
  // Pixels of 68 channels are aligned to 16 bytes, the second half of a pixel is not.
  for (const int stride : {1, 2})
    expect_same_on_gpu(
        {.graph = fmt::format(
             "graph(x: f32[1, 68, 6, 9], w: f32[34, 1, 3, 3], v: f32[34, 34, 1, 1], "
             "u: f32[68, 68, 1, 1]) {{ y = relu(conv(x, u)) "
             "a = slice(y, [0, 0, 0, 0], [1, 34, 6, 9]) b = slice(y, [0, 34, 0, 0], [1, 68, 6, 9]) "
             "c = conv(relu(conv(b, v)), w) {{group=34, pads=[1, 1, 1, 1], strides=[{0}, {0}]}} "
             "d = relu(conv(c, v)) "
             "e = max_pool(a) {{kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[{0}, {0}]}} "
             "return concat(d, e) {{axis=1}} }}",
             stride),
         .inputs = {random_f32({1, 68, 6, 9}, 1), random_f32({34, 1, 3, 3}, 2),
                    random_f32({34, 34, 1, 1}, 3), random_f32({68, 68, 1, 1}, 4)}});
}

TEST(GpuProgram, PartsOfAConcatenationAreCopiedByOneLaunch) {
  const CompileReport report = expect_same_on_gpu(
      {.graph = "graph(x: f32[1, 6, 5, 7]) { a = slice(x, [0, 0, 0, 0], [1, 1, 5, 7]) "
                "b = slice(x, [0, 1, 0, 1], [1, 6, 5, 6]) c = pad(b, [0, 0, 0, 1, 0, 0, 0, 1]) "
                "return concat(x, a, c, a, x) {axis=1} }",
       .inputs = {random_f32({1, 6, 5, 7}, 1)}});
  const auto copies = [](const auto& step) { return step.what.find("concat") != step.what.npos; };
  EXPECT_EQ(std::ranges::count_if(report.steps, copies), 1);
}

TEST(GpuProgram, ABoxOverAResultIsWrittenInPlace) {
  const CompileReport report = expect_same_on_gpu(
      {.graph = "graph(x: f32[2, 8, 9, 7], k: f32[8, 8, 3, 3], u: f32[2, 8, 1, 7]) {"
                "  a = conv(x, k) {pads=[1, 1, 1, 1]}  b = update_slice(a, u, [0, 0, 8, 0])"
                "  return relu(update_slice(b, neg(u), [0, 0, 0, 3])) }",
       .inputs = {random_f32({2, 8, 9, 7}, 1), random_f32({8, 8, 3, 3}, 2),
                  random_f32({2, 8, 1, 7}, 3)}});
  EXPECT_EQ(std::ranges::count_if(report.steps,
                                  [](const auto& step) { return step.strategy == "in place"; }),
            2);
}

TEST(GpuProgram, LongReductionsOfFewResultsAreComputedInParts) {
  const auto strategy = [](const char* graph, const std::vector<std::int64_t>& shape) {
    const CompileReport report =
        expect_same_on_gpu({.graph = graph, .inputs = {random_f32(shape, 1)}});
    return report.steps.empty() ? "" : report.steps.back().strategy;
  };
  const auto of_parts = ::testing::HasSubstr("reduction in");
  EXPECT_THAT(
      strategy("graph(x: f32[1, 20, 48, 40]) { return global_average_pool(x) }", {1, 20, 48, 40}),
      ::testing::AnyOf(of_parts, ::testing::HasSubstr("rows")));
  EXPECT_THAT(strategy("graph(x: f32[48, 40, 20]) { return reduce_mean(relu(add(x, 0.5)), [0, 1]) "
                       "{keepdims=0} }",
                       {48, 40, 20}),
              of_parts);
  EXPECT_THAT(strategy("graph(x: f32[3000, 20]) { return sub(reduce_max(x, [0]) {keepdims=1}, 1.0)"
                       " }",
                       {3000, 20}),
              of_parts);
  // So are those of a group that computes more from the sums, and several of one group.
  EXPECT_THAT(strategy("graph(x: f32[96, 200, 20]) { s = reduce_sum(x, [0, 1]) {keepdims=0}  "
                       "return s, mul(s, 0.5) }",
                       {96, 200, 20}),
              of_parts);
  EXPECT_THAT(strategy("graph(x: f32[96, 200, 20]) { m = reduce_mean(x, [0, 1]) {keepdims=1}  "
                       "return reduce_mean(mul(sub(x, m), sub(x, m)), [0, 1]) {keepdims=0}, m }",
                       {96, 200, 20}),
              of_parts);
  // A prime number of elements is not split.
  EXPECT_THAT(
      strategy("graph(x: f32[3001, 20]) { return reduce_max(x, [0]) {keepdims=1} }", {3001, 20}),
      ::testing::Not(of_parts));
}

/// Backward pass of a convolution, its batch norm and relu, where all operands are inputs.
TEST(GpuProgram, GradientsOfConvolutionsAreContractions) {
  struct Backward {
    std::int64_t images, channels, filters, size, window;
    const char* attributes;
    std::int64_t positions;
  };
  for (const Backward& c :
       {Backward{4, 32, 64, 8, 3, "pads=[1, 1, 1, 1]", 8},
        {3, 24, 40, 7, 3, "pads=[1, 1, 1, 1]", 7},
        {2, 64, 32, 9, 3, "pads=[1, 1, 1, 1], strides=[2, 2]", 5},
        // Batches of 8 and rows of 6 pixels: a k-step is a box of 8 images and 2 x 2 pixels.
        {8, 32, 64, 6, 3, "pads=[1, 1, 1, 1]", 6},
        {16, 32, 32, 12, 3, "pads=[1, 1, 1, 1], strides=[2, 2]", 6},
        {2, 48, 32, 6, 1, "strides=[1, 1]", 6},
        {2, 3, 32, 11, 7, "pads=[3, 3, 3, 3], strides=[2, 2]", 6}}) {
    SCOPED_TRACE(fmt::format("{} channels, {}", c.channels, c.attributes));
    const CompileReport report = expect_same_on_gpu(
        {.graph = fmt::format("graph(x: f32[{0}, {1}, {3}, {3}], dy: f32[{0}, {2}, {6}, {6}]) {{ "
                              "return conv_weight_gradient(relu(x), dy) "
                              "{{kernel_shape=[{4}, {4}], {5}}} }}",
                              c.images, c.channels, c.filters, c.size, c.window, c.attributes,
                              c.positions),
         .inputs = {random_f32({c.images, c.channels, c.size, c.size}, 1),
                    random_f32({c.images, c.filters, c.positions, c.positions}, 2)},
         .given = 2,
         .options = {.contraction_dtype = DType::F16},
         .tolerance = 1e-2});
    EXPECT_TRUE(std::ranges::any_of(report.steps, [](const CompileReport::Step& step) {
      return step.strategy.starts_with("dot");
    }));
  }
}

TEST(GpuProgram, AnImageGradientSumsChannelsBeforeTaps) {
  // The mask of a relu is computed by what follows the contraction.
  const CompileReport report = expect_same_on_gpu(
      {.graph = "graph(dy: f32[2, 64, 7, 9], w: f32[64, 32, 3, 3], y: f32[2, 32, 7, 9]) { "
                "dx = conv_transpose(dy, w) {pads=[1, 1, 1, 1]}  "
                "return where(less_or_equal(y, 0.0), 0.0, dx) }",
       .inputs = {random_f32({2, 64, 7, 9}, 1), random_f32({64, 32, 3, 3}, 2),
                  random_f32({2, 32, 7, 9}, 3)},
       .given = 3,
       .options = {.contraction_dtype = DType::F16},
       .tolerance = 1e-2});
  // The k-step is one of channels: 64, rather than the 9 taps.
  EXPECT_TRUE(std::ranges::any_of(report.steps, [](const CompileReport::Step& step) {
    return step.strategy.starts_with("dot") && step.strategy.find("x64,") != std::string::npos;
  }));
  EXPECT_TRUE(std::ranges::none_of(report.steps,
                                   [](const auto& step) { return step.what == "less_or_equal"; }));
}

TEST(GpuProgram, GradientsOfPoolsAndBatchNorms) {
  expect_same_on_gpu(
      {.graph = "graph(x: f32[2, 16, 9, 8], g: f32[2, 16, 5, 4]) { "
                "y, i = max_pool(x) {kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]}  "
                "return max_pool_gradient(mul(y, g), mod(i, 72)) {kernel_shape=[3, 3], "
                "strides=[2, 2], pads=[1, 1, 1, 1], sizes=[9, 8]} }",
       .inputs = {random_f32({2, 16, 9, 8}, 1), random_f32({2, 16, 5, 4}, 2)},
       .given = 2});
  // The centered image is computed where it is read; long columns are reduced in parts.
  const CompileReport report = expect_same_on_gpu(
      {.graph = "graph(x: f32[12, 8, 10, 10], g: f32[12, 8, 10, 10], w: f32[8, 8, 1, 1], "
                "m: f32[1, 8, 1, 1], k: f32[1, 8, 1, 1]) { a = conv(x, w)  c = sub(a, m)  "
                "s = reduce_mean(g, [0, 2, 3])  t = reduce_mean(mul(g, c), [0, 2, 3])  "
                "return mul(sub(sub(g, mul(c, t)), s), k), s, t }",
       .inputs = {random_f32({12, 8, 10, 10}, 1), random_f32({12, 8, 10, 10}, 2),
                  random_f32({8, 8, 1, 1}, 3), random_f32({1, 8, 1, 1}, 4),
                  random_f32({1, 8, 1, 1}, 5)},
       .given = 5,
       .tolerance = 1e-4});
  EXPECT_TRUE(
      std::ranges::none_of(report.steps, [](const auto& step) { return step.what == "sub"; }));
}

TEST(GpuProgram, RowsOfAnyLengthAndNumber) {
  // Neither the length nor the number of rows is a multiple of anything; several short rows share a
  // program, and vectors of rows of a multiple of 16 bytes would leave lanes idle.
  struct Rows {
    std::int64_t count, length;
  };
  for (const auto& [count, length] : {Rows{11, 97}, {9, 144}, {13, 64}, {21, 33}, {3, 1397}}) {
    for (const char* type : {"f16", "f32"}) {
      const auto typed = [&](const std::vector<std::int64_t>& shape, std::uint64_t seed) {
        const std::string cast = fmt::format("graph(x: f32[{}]) {{ return cast(x) {{to=\"{}\"}} }}",
                                             fmt::join(shape, ", "), type);
        return (*interp::run(parsed(cast), {{random_f32(shape, seed)}}, {}))[0].tensor();
      };
      const Tensor x = typed({count, length}, 1);
      const double tolerance = std::string_view(type) == "f16" ? 1e-2 : 2e-5;
      const std::string head = fmt::format("graph(x: {}[{}, {}]", type, count, length);
      expect_same_on_gpu({.graph = head + ") { return softmax(x) {axis=1} }",
                          .inputs = {x},
                          .options = {},
                          .tolerance = tolerance});
      expect_same_on_gpu({.graph = head + ") { return reduce_max(x, [1]) {keepdims=0} }",
                          .inputs = {x},
                          .options = {},
                          .tolerance = tolerance});
      expect_same_on_gpu(
          {.graph = head + fmt::format(", s: {0}[{1}], b: {0}[{1}]) {{ return layer_normalization("
                                       "x, s, b) {{axis=1}} }}",
                                       type, length),
           .inputs = {x, typed({length}, 2), typed({length}, 3)},
           .options = {},
           .tolerance = tolerance});
    }
  }
}

TEST(GpuProgram, RowsThatFewBlocksWouldShareAreSummedInParts) {
  const CompileReport report = expect_same_on_gpu(
      {.graph = "graph(x: f32[20, 7260]) { return reduce_sum(x, [1]) {keepdims=0} }",
       .inputs = {random_f32({20, 7260}, 1)}});
  ASSERT_FALSE(report.steps.empty());
  EXPECT_THAT(report.steps.back().strategy, ::testing::HasSubstr("reduction in"));
}

TEST(GpuProgram, RunsOnOlderGpusToo) {
  expect_same_on_gpu({kSmallNetwork, of_small_network(), 1, {.machine = machine::cuda("sm_80")}});
}

TEST(GpuProgram, LargeTilesAreCopiedByTensorMaps) {
  // Few multiprocessors, so that few programs are enough; some of the last rows are outside.
  Case product{
      "graph(x: f32[250, 32], u: f32[32, 768], w: f32[768, 256], b: f32[256]) { "
      "return add(matmul(matmul(x, u), w), b) }",
      {random_f32({250, 32}, 1), random_f32({32, 768}, 2), random_f32({768, 256}, 3),
       random_f32({256}, 4)},
      1,
      {.machine = machine::cuda(), .contraction_dtype = DType::F16},
      2e-1};
  product.options.machine.gpu->multiprocessors = 2;
  expect_same_on_gpu(product);
  const auto compiled =
      compile(with_weights(parsed(product.graph), product.inputs, product.given), product.options);
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  const runtime::Program::Kernel& kernel = compiled->program.kernels.back();
  EXPECT_TRUE(kernel.persistent);
  EXPECT_EQ(kernel.maps.size(), 2u);
}

TEST(GpuProgram, EverySecondPixelIsCopiedByTensorMaps) {
  // Quotients and remainders of rows and columns, and channels: five axes are all that maps have.
  Case window{
      "graph(x: f32[2, 64, 16, 16], w: f32[128, 64, 3, 3]) { "
      "return relu(conv(relu(x), w) {pads=[1, 1, 1, 1], strides=[2, 2]}) }",
      {random_f32({2, 64, 16, 16}, 1), random_f32({128, 64, 3, 3}, 2)},
      1,
      {.machine = machine::cuda(), .contraction_dtype = DType::F16},
      1e-1};
  window.options.machine.gpu->multiprocessors = 1;  // large tiles do best
  expect_same_on_gpu(window);
  const auto compiled =
      compile(with_weights(parsed(window.graph), window.inputs, window.given), window.options);
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  EXPECT_TRUE(std::ranges::any_of(compiled->program.kernels, [](const auto& kernel) {
    return kernel.persistent && kernel.maps.size() == 2;
  }));
}

TEST(GpuProgram, PoolsReadMemoryInPieces) {
  for (const char* const window :
       {"max_pool(a) {kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]}",
        "max_pool(a) {kernel_shape=[2, 2], strides=[2, 2]}",
        "average_pool(a) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}",
        "average_pool(a) {kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]}"}) {
    SCOPED_TRACE(window);
    const Case one{
        fmt::format("graph(x: f32[1, 16, 9, 9], u: f32[32, 16, 1, 1], "
                    "v: f32[32, 1, 3, 3]) {{ a = conv(x, u)  return relu({}) }}",
                    window),
        {random_f32({1, 16, 9, 9}, 1), random_f32({32, 16, 1, 1}, 2), random_f32({32, 1, 3, 3}, 3)},
        1,
        {.contraction_dtype = DType::F16},
        2e-2};
    expect_same_on_gpu(one);
    CompileOptions options = one.options;
    options.machine = machine::cuda();
    const auto compiled = compile(with_weights(parsed(one.graph), one.inputs, one.given), options);
    ASSERT_TRUE(compiled) << to_string(compiled.error());
    for (const auto& kernel : compiled->kernels) {
      const tile::Kernel seen = tile::recover(tile::simplify(*kernel));
      EXPECT_TRUE(std::ranges::none_of(seen.ops, [](const tile::Operation& op) {
        return op.code == tile::Code::Load;
      })) << tile::to_text(seen);
    }
  }
}

TEST(GpuProgram, AttentionAndWhatIsAroundIt) {
  const CompileReport report = expect_same_on_gpu(
      {"graph(q: f32[2, 20, 16], k: f32[2, 24, 16], v: f32[2, 24, 16], w: f32[16, 12]) { "
       "s = softmax(matmul(q, transpose(k) {perm=[0, 2, 1]})) {axis=-1}  "
       "return tanh(matmul(matmul(s, v), w)) }",
       {random_f32({2, 20, 16}, 1), random_f32({2, 24, 16}, 2), random_f32({2, 24, 16}, 3),
        random_f32({16, 12}, 4)},
       3});
  EXPECT_TRUE(report.interpreted.empty());
}

// Tiles of keys that are visible, in part, or not there.
TEST(GpuProgram, AttentionToEarlierKeys) {
  for (const std::int64_t width : {64, 128}) {
    const std::int64_t queries = 200, keys = 300;
    const std::string text = fmt::format(
        "graph(q: f32[1, {0}, {2}], k: f32[1, {1}, {2}], v: f32[1, {1}, {2}]) {{ "
        "return attention(q, k, v) {{is_causal=1, q_num_heads=1, kv_num_heads=1}} }}",
        queries, keys, width);
    const CompileReport report =
        expect_same_on_gpu({text,
                            {random_f32({1, queries, width}, 1), random_f32({1, keys, width}, 2),
                             random_f32({1, keys, width}, 3)},
                            1,
                            {.contraction_dtype = DType::F16},
                            1e-2});
    EXPECT_TRUE(report.interpreted.empty());
  }
}

// Whole tiles, of several heads that lie beside each other.
TEST(SlowGpuProgram, AttentionToEarlierKeysOfSeveralHeads) {
  for (const std::int64_t width : {64, 96}) {
    const std::int64_t tokens = 512, heads = 2;
    const std::string type = fmt::format("f32[2, {}, {}]", tokens, heads * width);
    const std::vector<std::int64_t> shape = {2, tokens, heads * width};
    const CompileReport report = expect_same_on_gpu(
        {fmt::format(
             "graph(q: {0}, k: {0}, v: {0}) {{ return cast(attention(cast(q) {{to=\"f16\"}}, "
             "cast(k) {{to=\"f16\"}}, cast(v) {{to=\"f16\"}}) {{is_causal=1, q_num_heads={1}, "
             "kv_num_heads={1}}}) {{to=\"f32\"}} }}",
             type, heads),
         {random_f32(shape, 1), random_f32(shape, 2), random_f32(shape, 3)},
         1,
         {.contraction_dtype = DType::F16},
         1e-2});
    EXPECT_TRUE(report.interpreted.empty());
  }
}

// Producer warps copy the tiles, and the second matmul is one tile late.
TEST(GpuProgram, AttentionOfHalvesOverlapsMatmulsAndSoftmax) {
  struct Case {
    std::int64_t queries, keys, width, heads = 2, kv_heads = 2;
    bool is_causal = false;
    const char* dtype = "f16";
  };
  for (const Case& c :
       {Case{256, 384, 64}, Case{130, 300, 64, 4, 2, true}, Case{200, 520, 128, 2, 2, true, "bf16"},
        Case{128, 300, 96}, Case{150, 270, 256, 2, 1, true}}) {
    const std::string text = fmt::format(
        "graph(q: f32[2, {0}, {2}], k: f32[2, {1}, {3}], v: f32[2, {1}, {3}]) {{ "
        "return cast(attention(cast(q) {{to=\"{7}\"}}, cast(k) {{to=\"{7}\"}}, cast(v) "
        "{{to=\"{7}\"}}) {{is_causal={6}, q_num_heads={4}, kv_num_heads={5}}}) {{to=\"f32\"}} }}",
        c.queries, c.keys, c.width * c.heads, c.width * c.kv_heads, c.heads, c.kv_heads,
        c.is_causal ? 1 : 0, c.dtype);
    SCOPED_TRACE(text);
    const CompileReport report =
        expect_same_on_gpu({text,
                            {random_f32({2, c.queries, c.width * c.heads}, 1),
                             random_f32({2, c.keys, c.width * c.kv_heads}, 2),
                             random_f32({2, c.keys, c.width * c.kv_heads}, 3)},
                            3,
                            {},
                            std::string_view(c.dtype) == "f16" ? 1e-2 : 6e-2});
    EXPECT_TRUE(std::ranges::any_of(
        report.steps,
        [](const auto& step) { return step.strategy.find("overlapped") != std::string::npos; }))
        << [&] {
             std::string all;
             for (const auto& s : report.steps) all += s.strategy + "; ";
             return all;
           }();
  }
}

TEST(GpuProgram, HalfPrecisionKeepsTensorsInHalf) {
  for (const auto& [dtype, tolerance] : {std::pair(DType::F16, 1e-2), {DType::BF16, 6e-2}}) {
    const CompileReport report = expect_same_on_gpu(
        {kSmallNetwork, of_small_network(), 1, {.contraction_dtype = dtype}, tolerance});
    EXPECT_TRUE(report.interpreted.empty());
  }
}

TEST(SlowGpuProgram, WeightsOfBf16AreWhatTheyAreRoundedToAndTheRest) {
  // Numbers that bf16 has, so that weights alone are rounded; also where the sum is in parts.
  for (const auto& [rows, sum, columns] : {std::array{64, 256, 1088}, {16, 4096, 272}}) {
    std::vector<float> numbers(static_cast<std::size_t>(rows * sum));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>(static_cast<int>(i * 7 % 5) - 2);
    expect_same_on_gpu(
        {fmt::format("graph(x: f32[{0}, {1}], w: f32[{1}, {2}]) {{ return matmul(x, w) }}", rows,
                     sum, columns),
         {Tensor::of<float>(DType::F32, {rows, sum}, std::span<const float>(numbers)),
          random_f32({sum, columns}, 2)},
         1,
         {.contraction_dtype = DType::BF16},
         3e-3});
  }
}

TEST(SlowGpuProgram, WeightsOfBf16OfAnImageThatIsReadWhereItLies) {
  std::vector<float> numbers(64 * 32 * 32);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(static_cast<int>(i * 7 % 5) - 2);
  expect_same_on_gpu(
      {"graph(x: f32[1, 64, 32, 32], w: f32[32, 64, 3, 3]) { "
       "return conv(x, w) {pads=[1, 1, 1, 1]} }",
       {Tensor::of<float>(DType::F32, {1, 64, 32, 32}, std::span<const float>(numbers)),
        random_f32({32, 64, 3, 3}, 2)},
       1,
       {.contraction_dtype = DType::BF16},
       3e-3});
}

TEST(GpuProgram, ALongSumOfFewResultsIsCutIntoParts) {
  const auto strategy = [](const Case& one) {
    std::string all;
    for (const CompileReport::Step& step : expect_same_on_gpu(one).steps)
      all += step.strategy + "\n";
    return all;
  };
  const Case product{
      "graph(x: f32[9, 4096], w: f32[4096, 24], b: f32[24]) { "
      "return relu(add(matmul(x, w), b)) }",
      {random_f32({9, 4096}, 1), random_f32({4096, 24}, 2), random_f32({24}, 3)},
      1,
      {.contraction_dtype = DType::F16},
      1e-1};
  EXPECT_THAT(strategy(product), ::testing::HasSubstr("split-K"));
  const Case window{
      "graph(x: f32[1, 512, 3, 3], w: f32[16, 512, 3, 3], y: f32[1, 16, 2, 2]) { "
      "return relu(add(conv(x, w) {pads=[1, 1, 1, 1], strides=[2, 2]}, y)) }",
      {random_f32({1, 512, 3, 3}, 1), random_f32({16, 512, 3, 3}, 2), random_f32({1, 16, 2, 2}, 3)},
      1,
      {.contraction_dtype = DType::F16},
      1e-1};
  EXPECT_THAT(strategy(window), ::testing::HasSubstr("split-K"));
}

TEST(GpuProgram, APaddedImageIsReadWhereItLies) {
  struct Window {
    std::string attributes;
    std::int64_t size, result;
    bool copied;
    std::int64_t height = 3;
  };
  for (const Window& window :
       {Window{"pads=[1, 1, 1, 1]", 6, 6, false},
        Window{"pads=[1, 1, 1, 1], strides=[2, 2]", 6, 3, false},
        Window{"pads=[3, 3, 2, 2], dilations=[2, 2], strides=[3, 3]", 9, 4, false},
        Window{"pads=[0, 1, 0, 1]", 6, 6, false, 1},
        Window{"pads=[1, 1, 1, 1], strides=[2, 2]", 7, 4, true}}) {
    for (const DType dtype : {DType::F32, DType::F16}) {
      const auto size = [](std::int64_t n) { return fmt::format("{0}, {0}", n); };
      const CompileReport report = expect_same_on_gpu(
          {fmt::format("graph(x: f32[2, 32, {}], w: f32[16, 32, {}, 3], "
                       "y: f32[2, 16, {}]) {{ "
                       "return relu(add(conv(x, w) {{{}}}, y)) }}",
                       size(window.size), window.height, size(window.result), window.attributes),
           {random_f32({2, 32, window.size, window.size}, 1),
            random_f32({16, 32, window.height, 3}, 2),
            random_f32({2, 16, window.result, window.result}, 3)},
           1,
           {.contraction_dtype = dtype},
           dtype == DType::F32 ? 1e-4 : 5e-2});
      const bool copied = std::ranges::any_of(report.steps, [](const CompileReport::Step& step) {
        return step.strategy.find("padded") != std::string::npos;
      });
      EXPECT_EQ(copied, window.copied) << window.attributes;
    }
  }
}

TEST(GpuProgram, FewChannelsAreCopiedSoThatPiecesAreLong) {
  struct Window {
    std::string attributes;
    std::int64_t channels, size, taps, result;
    const char* strategy;
  };
  for (const Window& window :
       {Window{"pads=[3, 3, 3, 3], strides=[2, 2]", 3, 20, 7, 10,
               "x32, weights packed, f16, padded"},
        Window{"pads=[1, 1, 1, 1]", 3, 9, 3, 9, "x32, weights packed, f16, padded"},
        Window{"strides=[2, 2]", 3, 11, 3, 5, "x16, weights packed, f16, padded"},
        Window{"pads=[2, 2, 2, 2], dilations=[2, 2]", 3, 9, 3, 9, "padded"}}) {
    const CompileReport report = expect_same_on_gpu(
        {fmt::format("graph(x: f32[2, {0}, {1}, {1}], w: f32[16, {0}, {2}, {2}], b: f32[16]) {{ "
                     "return relu(conv(x, w, b) {{{3}}}) }}",
                     window.channels, window.size, window.taps, window.attributes),
         {random_f32({2, window.channels, window.size, window.size}, 1),
          random_f32({16, window.channels, window.taps, window.taps}, 2), random_f32({16}, 3)},
         1,
         {.contraction_dtype = DType::F16},
         5e-2});
    std::string all;
    for (const CompileReport::Step& step : report.steps) all += step.strategy + "\n";
    EXPECT_THAT(all, ::testing::HasSubstr(window.strategy)) << window.attributes;
  }
}

TEST(GpuProgram, ABoxEndsWithTheChannelsOfItsGroup) {
  // Exact: zeros times infinity would be seen.
  Tensor image = random_f32({1, 96, 3, 3}, 1);
  std::vector<float> numbers(reinterpret_cast<const float*>(image.bytes.data()),
                             reinterpret_cast<const float*>(image.bytes.data()) + 96 * 9);
  for (std::size_t i = 48 * 9; i < numbers.size(); ++i)
    numbers[i] = std::numeric_limits<float>::infinity();
  image = Tensor::of<float>(DType::F32, {1, 96, 3, 3}, std::span<const float>(numbers));
  expect_same_on_gpu(
      {"graph(x: f32[1, 96, 3, 3], w: f32[32, 48, 1, 1]) { "
       "return slice(conv(x, w) {pads=[1, 1, 1, 1], group=2}, [0], [16], [1], [1]) }",
       {image, random_f32({32, 48, 1, 1}, 2)},
       1,
       {.passes = {.exact = true}, .contraction_dtype = DType::F16},
       5e-2});
}

TEST(GpuProgram, ResultsThatAreProductsOfOneOperandKeepTheirBits) {
  expect_same_on_gpu(
      {"graph(x: f32[4, 32], u: f32[32, 32], v: f32[32, 32]) { "
       "return mul(matmul(x, u), 1.0), matmul(x, u), matmul(x, v) }",
       {Tensor::of<float>(DType::F32, {4, 32},
                          std::span<const float>(std::vector<float>(128, 200.0F))),
        Tensor::of<float>(DType::F32, {32, 32},
                          std::span<const float>(std::vector<float>(1024, 100.0F))),
        Tensor::of<float>(DType::F32, {32, 32},
                          std::span<const float>(std::vector<float>(1024, 200.0F)))},
       1,
       {.contraction_dtype = DType::F16},
       1});
}

TEST(GpuProgram, ProductsOfOneOperandAreOne) {
  const CompileReport report = expect_same_on_gpu(
      {"graph(x: f32[2, 20, 32], q: f32[32, 32], a: f32[32], k: f32[32, 32], b: f32[32], "
       "v: f32[32, 32], c: f32[32]) { "
       "l = reshape(add(matmul(x, q), a), [2, 20, 2, 16])  "
       "r = reshape(add(matmul(x, k), b), [2, 20, 2, 16])  "
       "t = reshape(add(c, matmul(x, v)), [2, 20, 2, 16])  "
       "s = softmax(matmul(transpose(l) {perm=[0, 2, 1, 3]}, transpose(r) {perm=[0, 2, 3, 1]})) "
       "{axis=-1}  return add(matmul(s, transpose(t) {perm=[0, 2, 1, 3]}), 1.0) }",
       {random_f32({2, 20, 32}, 1), random_f32({32, 32}, 2), random_f32({32}, 3),
        random_f32({32, 32}, 4), random_f32({32}, 5), random_f32({32, 32}, 6),
        random_f32({32}, 7)}});
  EXPECT_TRUE(report.interpreted.empty());
  EXPECT_EQ(report.steps.size(), 2u);
}

TEST(GpuProgram, SingleNumbersMayBeRoundedForTensorCores) {
  const CompileReport report =
      expect_same_on_gpu({kSmallNetwork,
                          of_small_network(),
                          1,
                          {.machine = machine::cuda("sm_80"), .tf32 = true},
                          1e-2});
  EXPECT_TRUE(report.interpreted.empty());
}

TEST(GpuProgram, WhatHasNoKernelRunsOnTheComputer) {
  const CompileReport report =
      expect_same_on_gpu({"graph(x: f32[4, 30]) { v, i = top_k(mul(x, x), [3])  return sqrt(v) }",
                          {random_f32({4, 30}, 1)}});
  EXPECT_EQ(report.interpreted.size(), 1u);
}

TEST(GpuProgram, ConvertSmallTypes) {
  for (const char* dtype : {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1",
                            "i4", "u4", "i2", "u2"}) {
    SCOPED_TRACE(dtype);
    const DType small = *parse_dtype(dtype);
    std::vector<std::uint8_t> bits;
    for (int i = 0; i < 300; ++i) {
      const int of = i % (1 << bit_width(small));
      bits.push_back(static_cast<std::uint8_t>(is_float(small) ? of : wrapped_to(small, of)));
    }
    const Tensor x = Tensor::of<std::uint8_t>(small, {300}, bits);
    const auto there =
        expect_same_on_gpu({.graph = fmt::format("graph(x: {}[300]) {{ return cast(transpose(x)) "
                                                 "{{to=\"f32\"}} }}",
                                                 dtype),
                            .inputs = {x},
                            .tolerance = 0});
    EXPECT_TRUE(there.interpreted.empty());
    std::vector<double> numbers;
    for (int i = 0; i < 300; ++i) numbers.push_back(std::ldexp(1 + i % 37 / 37.0, i % 23 - 12));
    const auto back = expect_same_on_gpu(
        {.graph = fmt::format("graph(x: f32[300]) {{ return cast(x) {{to=\"{}\"}} }}", dtype),
         .inputs = {testing::f32({300}, numbers)},
         .tolerance = 0});
    EXPECT_TRUE(back.interpreted.empty());
  }
}

TEST(GpuProgram, MultiplyByWeightsOfFourBits) {
  std::vector<double> levels, zeros;
  for (int i = 0; i < 64 * 24; ++i) levels.push_back(i * 7 % 16);
  for (int i = 0; i < 2 * 24; ++i) zeros.push_back(i * 5 % 16);
  const Tensor w = testing::tensor(DType::U4, {64, 24}, levels),
               z = testing::tensor(DType::U4, {2, 24}, zeros);
  for (const std::size_t given : {1, 4})
    expect_same_on_gpu(
        {.graph = "graph(x: f32[5, 64], w: u4[64, 24], s: f32[2, 24], z: u4[2, 24]) { "
                  "return matmul(x, dequantize_linear(w, s, z) {axis=0, block_size=32}) }",
         .inputs = {random_f32({5, 64}, 1), w, random_f32({2, 24}, 2), z},
         .given = given,
         .tolerance = 1e-4});
}

}  // namespace
}  // namespace tessera::program
