#include "tessera/ir/text.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <bit>
#include <fstream>

#include "tessera/ir/builder.h"
#include "tessera/support/rng.h"
#include "tests/support/graph_check.h"
#include "tests/support/random_graph.h"

namespace tessera {
namespace {

using testing::expect_graph;
using testing::expect_parse_error;
using testing::expect_prints;
using testing::expect_round_trip;
using testing::for_each_random_graph;
using testing::parsed;

TEST(GraphText, PrintsAsItIsWritten) {
  expect_prints(R"(graph net(x: f32[n, 2], y: f32[n]) {
  w = const f32[2, 3] [1.0, -2.5, 3.0, 1e-30, inf, nan]
  a: f32[n, 3] = matmul(x, w)
  b: f32[n, 3] = softmax(a) {axis=1} @'block/softmax'
  %5 = const i64[1] [1]
  c: f32[n, 1] = unsqueeze(y, %5)
  %7: f32[n, 3] = add(b, c)
  return %7, a
}
)");
}

TEST(GraphText, ReadsWhatIsPleasantToType) {
  expect_graph(parsed("graph(x, y) { return mul(add(x, y), 2.0) }"),
               R"(graph(x: f32[...], y: f32[...]) {
                    a = add(x, y)
                    two = const f32[] 2
                    b = mul(a, two)
                    return b
                  })");
}

TEST(GraphText, KeepsConstantsOfEveryType) {
  expect_prints(R"(graph() {
  a = const bool[2] [0, 1]
  b = const u8[2] [0, 255]
  c = const i8[2] [-128, 127]
  d = const u64[1] [18446744073709551615]
  e = const i64[1] [-9223372036854775808]
  f = const f16[3] [0.1, 65500.0, 6e-08]
  g = const bf16[2] [0.1, -inf]
  h = const f64[1] [0.1]
  i = const string[2] ["a \"b\"", "\n"]
  j = const f32[0, 4] []
  k = const f32[1] hex("0100c07f")
  l = const i32[] 7
  m = const i4[3] [-8, 7, -1]
  n = const u2[4] [0, 1, 2, 3]
  o = const f8e4m3fn[4] [448.0, -0.0, 0.001953125, nan]
  p = const f8e5m2[3] [inf, 0.3125, 1.52587890625e-05]
  q = const f8e8m0[2] [1.7014118346046923e+38, 5.877471754111438e-39]
  r = const f4e2m1[3] [0.5, -6.0, 1.5]
  return
}
)");
}

TEST(GraphText, KeepsEveryFloatExactly) {
  Rng rng(3);
  std::vector<float> elements(2000);
  for (float& element : elements)
    element = std::bit_cast<float>(static_cast<std::uint32_t>(rng.next()));
  GraphBuilder builder;
  const Val w =
      builder.constant(Tensor::of<float>(DType::F32, {20, 100}, std::span<const float>(elements)));
  const Graph read = parsed(to_text(*builder.finish({{"w", w}})));
  const auto again = read.constant(read.outputs()[0])->as<std::uint32_t>();
  for (std::size_t i = 0; i < elements.size(); ++i)
    ASSERT_EQ(again[i], std::bit_cast<std::uint32_t>(elements[i])) << i;
}

TEST(GraphText, KeepsNamesThatMeanSomethingElse) {
  expect_prints(R"(graph 'my net'('return': f32[2], '_': f32[2], '%9': f32[2], 'a b': f32[2]) {
  'const': f32[2] = add('return', '_')
  %5: f32[2] = add('%9', 'a b')
  return 'const', %5
}
)");
}

TEST(GraphText, KeepsAttributesOfEveryKind) {
  expect_prints(R"(graph(x: f32[1, 1, 4], shape: i64[2]) {
  w = const f32[1, 1, 3] [1.0, 2.0, 3.0]
  a: f32[1, 1, 4] = conv(x, w) {pads=[1, 1]}
  b: f32[1, 1, 4] = leaky_relu(a) {alpha=0.5}
  c: f16[1, 1, 4] = cast(b) {to="f16"}
  d = constant_of_shape(shape) {value=i32[1] [3]}
  return c, d
}
)");
}

TEST(GraphText, PrintsAnInputThatIsLeftOut) {
  expect_prints(R"(graph(x: f32[2]) {
  %1 = const f32[] 1.0
  %2: f32[2] = clip(x, _, %1)
  return %2
}
)");
}

TEST(GraphText, KeepsSubgraphs) {
  expect_prints(R"(graph(c: bool[], x: f32[n, 4], s: f32[4]) {
  a: f32[n, 4] = if_else(c, x) @choice {
    then(p: f32[n, 4]) {
      q: f32[n, 4] = relu(p)
      return q
    }
    else 'other branch'(p: f32[n, 4]) {
      return p
    }
  }
  last: f32[4], all: f32[n, 4] = scan(s, a) {elements=1, states=1} {
    body(sum: f32[4], row: f32[4]) {
      next: f32[4] = add(sum, row)
      return next, next
    }
  }
  return last, all
}
)");
}

TEST(GraphText, GivesInputsOfSubgraphsTheirTypes) {
  const Graph graph = parsed(R"(
    graph(n: i64[], x: f32[4]) {
      last, all = loop(n, _, x) {states=1} { body(i, c, s) { return c, relu(s), s } }
      return all
    })");
  expect_round_trip(graph);
  EXPECT_EQ(graph.type(graph.outputs()[0]).shape->size(), 2u);
}

TEST(GraphText, RoundTripsRandomGraphs) {
  for_each_random_graph({.seed = 1, .count = 300, .max_nodes = 12}, expect_round_trip);
}

TEST(GraphText, NamesSizesThatNobodyKnowsAlike) {
  const Graph graph = parsed(
      "graph(x: f32[n]) { a = relu(x)  b = non_zero(a)  c = non_zero(x)  return add(b, b), c }");
  expect_round_trip(graph);
  EXPECT_NE(graph.type(graph.outputs()[0]).shape, graph.type(graph.outputs()[1]).shape);
}

TEST(GraphText, LeavesOutLargeConstantsWhenAsked) {
  const Graph graph = parsed("graph() { w = const f32[3] [1, 2, 3]  return w }");
  const std::string text = to_text(graph, {.inline_limit = 2});
  EXPECT_EQ(text, "graph() {\n  w = const f32[3] ...\n  return w\n}\n");
  expect_parse_error(text,
                     "line 2:20: error[text-syntax]: the content of this constant was left out");
}

class GraphFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tessera_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void expect_read_error(std::string_view data, std::string_view message) {
    std::ofstream(folder_ / "net.txt") << "graph() { return const f32[2] " << data << " }";
    const auto graph = read_text_graph(folder_ / "net.txt");
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().message, message);
  }

  std::filesystem::path folder_;
};

TEST_F(GraphFile, KeepsWeightsInAFileBesideIt) {
  GraphBuilder builder;
  std::vector<float> elements(1000, 0.25f);
  const Val w = builder.constant(Tensor::of<float>(DType::F32, {10, 100}, elements), "w");
  const Val small =
      builder.constant(Tensor::of<float>(DType::F32, {2}, std::span(elements).first(2)));
  const Val odd =
      builder.constant({DType::U8, {33}, Bytes::copy(std::vector<std::byte>(33))}, "odd");
  const Val v = builder.constant(Tensor::of<float>(DType::F32, {100, 10}, elements), "v");
  const Graph graph = *builder.finish({{"", w}, {"", small}, {"", odd}, {"", v}});
  ASSERT_TRUE(write_text(graph, folder_ / "net.txt"));
  EXPECT_LT(std::filesystem::file_size(folder_ / "net.txt"), 400u);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "net.txt.weights"));
  const auto read = read_text_graph(folder_ / "net.txt");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(to_text(*read), to_text(graph));
}

TEST_F(GraphFile, TakesDataFromPlainFilesInItsFolderOnly) {
  std::ofstream(folder_ / "w") << "12345678";
  std::filesystem::create_symlink(folder_ / "w", folder_ / "link");
  expect_read_error(R"(data("../w", 0, 8))", R"("../w" cannot be read from here)");
  expect_read_error(R"(data("/etc/passwd", 0, 8))", R"("/etc/passwd" cannot be read from here)");
  expect_read_error(R"(data("..", 0, 8))", R"(".." cannot be read from here)");
  expect_read_error(R"(data("link", 0, 8))", "Too many levels of symbolic links");
  expect_read_error(R"(data("w", 4, 8))", R"(8 bytes at offset 4 of "w" are asked for)");
  expect_read_error(R"(data("w", -4, 8))", R"(8 bytes at offset -4 of "w" are asked for)");
  expect_read_error(R"(data("w", 9223372036854775807, 8))",
                    R"(8 bytes at offset 9223372036854775807 of "w" are asked for)");
  expect_read_error(R"(data("w", 0, 4))", "1 are given");
}

TEST(GraphTextErrors, SayWhereAndWhat) {
  expect_parse_error("graph(x) { return y }", "line 1:19: error[text-graph]: y is not defined");
  expect_parse_error("graph(x) {\n  a = frobnicate(x)\n  return a }",
                     "line 2:7: error[text-graph]: there is no operator frobnicate");
  expect_parse_error("graph(x, x) { return x }",
                     "line 1:10: error[text-graph]: x is defined twice");
  expect_parse_error("graph(x) { a = relu(x)  a = relu(x)  return a }",
                     "line 1:25: error[text-graph]: a is defined twice");
  expect_parse_error("graph(x: f32[2, 3], y: f32[4, 5]) { return matmul(x, y) }",
                     "line 1:44: matmul: error[shape-mismatch]: axis 0 of b has size 4\n"
                     "  note: the other operands require 3");
  expect_parse_error("graph(x) { return relu(x, x) }",
                     "line 1:19: relu: error[op-arity]: relu has 2 inputs\n  note: it takes 1");
  expect_parse_error("graph(x) { a, b = relu(x)  return a }",
                     "line 1:19: relu: error[op-arity]: relu has 2 results\n  note: it has 1");
  expect_parse_error("graph(x) { return relu(x) {speed=3} }",
                     "line 1:19: relu: error[op-attribute]: relu has no attribute speed\n"
                     "  note: its attributes are none");
  expect_parse_error("graph(x: f32[2]) { a: f32[3] = relu(x)  return a }",
                     "line 1:20: error[text-graph]: a is declared f32[3]\n  note: it is f32[2]");
  expect_parse_error("graph() { return const f32[3] [1, 2] }",
                     "line 1:31: error[text-constant]: 2 are given\n"
                     "  note: f32[3] takes 3 elements");
  expect_parse_error("graph() { return const u8[1] [256] }",
                     "line 1:31: error[text-constant]: 256 does not fit u8");
  expect_parse_error("graph() { return const i4[1] [8] }",
                     "line 1:31: error[text-constant]: 8 does not fit i4");
  expect_parse_error("graph() { return const u4[2] hex(\"0f10\") }",
                     "line 1:30: error[text-constant]: a byte is not an element of u4");
  expect_parse_error(
      "graph(c: bool[], x) { return if_else(c, x) { then(p) { return p } "
      "else(p) { return x } } }",
      "line 1:84: error[text-graph]: x is not defined\n"
      "  note: a subgraph sees its own inputs only");
  expect_parse_error(
      "graph(c: bool[]) { return if_else(c) { then() { return 1, 2 } "
      "else() { return 1 } } }",
      "line 1:27: if_else: error[control-flow]: then has 2 results and else 1");
  expect_parse_error(
      "graph(x: f32[2, 3], y: f32[4, 3]) { return scan(x, y) {elements=2, states=0} { "
      "body(p, q) { return add(p, q) } } }",
      "line 1:44: scan: error[control-flow]: the elements of scan have 2 and 4 slices");
}

TEST(GraphTextErrors, StopAtDeepNesting) {
  std::string calls, closed;
  for (int i = 0; i < 100000; ++i) calls += "relu(", closed += ")";
  EXPECT_FALSE(parse_graph("graph(x) { return " + calls + "x" + closed + " }"));
  std::string branches = "graph(c: bool[]) {";
  for (int i = 0; i < 10000; ++i) branches += " a = if_else(c, c) { then(c) {";
  EXPECT_FALSE(parse_graph(branches));
}

TEST(GraphTextErrors, AnyPrefixOfATextIsAnError) {
  const std::string text = to_text(testing::random_graph(7, 12));
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_FALSE(parse_graph(text.substr(0, length))) << length;
}

}  // namespace
}  // namespace tessera
