#include "tessera/passes/narrow.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/support/rng.h"
#include "tests/passes/pass_check.h"

namespace tessera {
namespace {

using testing::expect_pass;
using testing::expect_same_results;
using testing::expect_unchanged;
using testing::parsed;

TEST(Narrow, ComputesTheColumnsOfAConvolutionThatAreRead) {
  expect_pass({.passes = {"narrow"},
               .before = "graph(x: f32[1, 2, 6, 8], k: f32[3, 2, 3, 3]) {"
                         "  return slice(conv(x, k) {pads=[1, 1, 1, 1]}, [7], [8], [3]) }",
               .after =
                   "graph(x: f32[1, 2, 6, 8], k: f32[3, 2, 3, 3]) {"
                   "  return conv(slice(x, [0, 0, 0, 6], [1, 2, 6, 8]), k) {pads=[1, 0, 1, 1]} }"});
}

TEST(Narrow, LeavesOutTheTapsThatOnlyReadPadding) {
  expect_pass({.passes = {"narrow"},
               .before = "graph(x: f32[1, 1, 6, 8]) {"
                         "  k = const f32[1, 1, 3, 1] [1.0, 2.0, 3.0]"
                         "  return slice(conv(x, k) {pads=[1, 0, 1, 0]}, [0], [1], [2]) }",
               .after = "graph(x: f32[1, 1, 6, 8]) {"
                        "  k = const f32[1, 1, 3, 1] [1.0, 2.0, 3.0]"
                        "  return conv(slice(x, [0, 0, 0, 0], [1, 1, 2, 8]),"
                        "    slice(k, [0, 0, 1, 0], [1, 1, 3, 1])) {pads=[0, 0, 0, 0]} }"});
  // 0 times infinity is not 0, and nothing is known of an operand.
  for (const char* k : {"const f32[1, 1, 3, 1] [1.0, inf, 3.0]", "exp(w)"})
    expect_pass({.passes = {"narrow"},
                 .before = fmt::format("graph(x: f32[1, 1, 6, 8], w: f32[1, 1, 3, 1]) {{"
                                       "  k = {}  return slice(conv(x, k) {{pads=[1, 0, 1, 0]}},"
                                       "    [0], [1], [2]) }}",
                                       k),
                 .after = fmt::format("graph(x: f32[1, 1, 6, 8], w: f32[1, 1, 3, 1]) {{"
                                      "  k = {}  return conv(slice(x, [0, 0, 0, 0], [1, 1, 2, 8]),"
                                      "    k) {{pads=[1, 0, 0, 0]}} }}",
                                      k)});
}

TEST(Narrow, NarrowsThroughSeveralOperators) {
  expect_pass({.passes = {"narrow"},
               .before = "graph(x: f32[8, 5], w: f32[5, 7], b: f32[7]) {"
                         "  return slice(relu(add(matmul(x, w), b)), [2, 1], [4, 3]) }",
               .after = "graph(x: f32[8, 5], w: f32[5, 7], b: f32[7]) {"
                        "  return relu(add(matmul(slice(x, [2, 0], [4, 5]),"
                        "    slice(w, [0, 1], [5, 3])), slice(b, [1], [3]))) }"});
}

TEST(Narrow, TakesTheSidesOfASeamFromEachPart) {
  expect_pass({.passes = {"narrow"},
               .before = "graph(x: f32[2, 3], y: f32[2, 4], w: f32[2, 2]) {"
                         "  return slice(concat(matmul(w, x), matmul(w, y)) {axis=-1},"
                         "    [2], [4], [1]) }",
               .after = "graph(x: f32[2, 3], y: f32[2, 4], w: f32[2, 2]) {"
                        "  return concat(matmul(w, slice(x, [0, 2], [2, 3])),"
                        "    matmul(w, slice(y, [0, 0], [2, 1]))) {axis=1} }"});
}

TEST(Narrow, KeepsWhatIsReadAsAWhole) {
  expect_unchanged({"narrow"},
                   "graph(x: f32[4, 5], w: f32[5, 6]) {"
                   "  y = matmul(x, w) return y, slice(y, [0], [1]) }");
  expect_unchanged({"narrow"},
                   "graph(x: f32[4, 5], w: f32[5, 6]) {"
                   "  y = matmul(x, w) return slice(y, [0], [2]), slice(y, [2], [4]) }");
}

TEST(Narrow, KeepsWhatDependsOnPositions) {
  // A mean that counts the elements inside, and every second element.
  expect_unchanged({"narrow"},
                   "graph(x: f32[1, 2, 6, 6]) {"
                   "  return slice(average_pool(x) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]},"
                   "    [0], [2], [2]) }");
  expect_unchanged({"narrow"},
                   "graph(x: f32[6, 4], w: f32[4, 3]) {"
                   "  return slice(matmul(x, w), [0], [6], [0], [2]) }");
}

TEST(Narrow, KeepsTheMeaningOfAnyBox) {
  Rng rng(7);
  for (int i = 0; i < 200; ++i) {
    const auto draw = [&](std::int64_t low, std::int64_t high) {
      return low + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
    };
    const std::int64_t stride = draw(1, 2), dilation = draw(1, 2), top = draw(0, 3),
                       left = draw(0, 3), bottom = draw(0, 3), right = draw(0, 3);
    const std::int64_t rows = (7 + top + bottom - dilation * 2 - 1) / stride + 1;
    const std::int64_t columns = (8 + left + right - dilation * 2 - 1) / stride + 1;
    const std::int64_t y = draw(0, rows - 1), x = draw(0, columns - 1);
    // A constant weight may lose taps.
    std::vector<double> weight;
    for (int tap = 0; tap < 108; ++tap) weight.push_back(static_cast<double>(draw(-8, 8)) / 4);
    const std::string text = fmt::format(
        "graph(x: f32[2, 4, 7, 8], w: f32[6, 2, 3, 3], b: f32[6]) {{ k = {10}"
        "  return slice(conv(x, k, b) {{group=2, strides=[{0}, {0}], dilations=[{1}, {1}],"
        "    pads=[{2}, {3}, {4}, {5}]}}, [{6}, {7}], [{8}, {9}], [2, 3]) }}",
        stride, dilation, top, left, bottom, right, y, x, y + draw(1, 3), x + draw(1, 3),
        i % 2 == 0 ? "identity(w)"
                   : fmt::format("const f32[6, 2, 3, 3] [{:.2f}]", fmt::join(weight, ", ")));
    SCOPED_TRACE(text);
    const Graph graph = parsed(text);
    expect_same_results(graph, passes::narrow(graph));
  }
}

}  // namespace
}  // namespace tessera
