#include "tessera/ir/builder.h"

#include <gtest/gtest.h>

#include "tessera/ir/text.h"
#include "tests/support/graph_check.h"

namespace tessera {
namespace {

using testing::expect_graph;
using testing::parsed;

/// The type of the first output, with what is inferred on the way.
std::string type_of(std::string_view text) {
  const Graph graph = parsed(text);
  return graph.outputs().empty() ? "" : to_string(graph.type(graph.outputs()[0]));
}

TEST(GraphBuilder, BuildsWhatTheTextSays) {
  GraphBuilder g;
  const Val x = g.input("x", DType::F32, {Dim::symbol("n"), 2});
  const Val w = g.constant(Tensor::of<float>(DType::F32, {2, 2}, std::vector<float>{1, 2, 3, 4}));
  const auto graph = g.finish({{"y", g.op("relu", {g.op("matmul", {x, w}) + 1.0})}});
  ASSERT_TRUE(graph);
  expect_graph(*graph,
               "graph(x: f32[n, 2]) { w = const f32[2, 2] [1, 2, 3, 4]"
               "  return relu(add(matmul(x, w), 1.0)) }");
}

TEST(GraphBuilder, KeepsTheFirstMistake) {
  GraphBuilder g;
  const Val x = g.input("x", DType::F32, {2, 3});
  const Val wrong = g.op("matmul", {x, x});
  const Val more = g.op("relu", {wrong, wrong});
  const auto graph = g.finish({{"y", more}});
  ASSERT_FALSE(graph);
  EXPECT_EQ(to_string(graph.error()),
            "matmul: error[shape-mismatch]: axis 0 of b has size 2\n"
            "  note: the other operands require 3");
}

TEST(GraphBuilder, BelievesWhatIsDeclaredWhereItKnowsNothing) {
  GraphBuilder g;
  const Val x = g.input("x", ValueInfo{.type = {.dtype = DType::F32}});
  g.refine(x, Type::tensor(DType::Bool, {2}));
  EXPECT_EQ(to_string(g.known(x).type), "f32[...]");
  g.refine(x, Type::tensor(DType::F32, {2}));
  EXPECT_EQ(to_string(g.known(x).type), "f32[2]");
}

TEST(GraphBuilder, RefusesAttributesOfTheWrongKind) {
  GraphBuilder g;
  const Val x = g.input("x", DType::F32, {2, 3});
  const auto graph = g.finish({g.op("softmax", {x}, {{"axis", "last"}})});
  ASSERT_FALSE(graph);
  EXPECT_EQ(to_string(graph.error()),
            "error[op-attribute]: attribute axis of softmax is of kind string\n"
            "  note: it has to be of kind int");
}

TEST(GraphBuilder, RefusesNegativeSizes) {
  GraphBuilder g;
  const Val x = g.input("x", DType::F32, {2, 3});
  const auto graph = g.finish(g.call("top_k", {x, g.ints({-5})}, {}, 2));
  ASSERT_FALSE(graph);
  EXPECT_EQ(to_string(graph.error()),
            "top_k: error[op-operands]: top_k gives f32[2, -5]\n  note: a size is not negative");
}

TEST(GraphBuilder, RefusesResultsThatAnOperatorDoesNotHave) {
  const auto graph =
      parse_graph("graph(x: f32[6]) { a, b, c = split(x) {num_outputs=2}  return c }");
  ASSERT_FALSE(graph);
  EXPECT_NE(to_string(graph.error()).find("split has no result 2 on these inputs"),
            std::string::npos)
      << to_string(graph.error());
  const auto fewer = parse_graph("graph(x: f32[6]) { a, b = split(x) {num_outputs=3}  return b }");
  EXPECT_TRUE(fewer) << to_string(fewer.error());
}

TEST(GraphBuilder, RefinesWhatInferenceLeavesOpen) {
  EXPECT_EQ(type_of("graph(x: f32[n]) { a: i64[1, k] = non_zero(x)  return a }"), "i64[1, k]");
  EXPECT_EQ(type_of("graph(x: f32[n]) { a: f32[m] = relu(x)  return a }"), "f32[n]");
}

TEST(ShapeArithmetic, ResolvesAReshapeThatKeepsTheBatch) {
  EXPECT_EQ(type_of(R"(graph(x: f32[n, 3, h, 4]) {
    batch = gather(shape(x), 0)
    sizes = concat(unsqueeze(batch, [0]), [-1]) {axis=0}
    return reshape(x, sizes)
  })"),
            "f32[n, 12*h]");
}

TEST(ShapeArithmetic, ResolvesTheHeadsOfAttention) {
  EXPECT_EQ(type_of(R"(graph(x: f32[b, s, 768]) {
    sizes = shape(x)
    batch = slice(sizes, [0], [1])
    length = slice(sizes, [1], [2])
    width = div(slice(sizes, [2], [3]), [12])
    return transpose(reshape(x, concat(batch, length, [12], width) {axis=0})) {perm=[0, 2, 1, 3]}
  })"),
            "f32[b, 12, s, 64]");
}

TEST(ShapeArithmetic, ResolvesExpandSliceAndRange) {
  EXPECT_EQ(type_of("graph(x: f32[n, 4], y: f32[4]) { return expand(y, shape(x)) }"), "f32[n, 4]");
  EXPECT_EQ(type_of(R"(graph(x: f32[n, 4], table: f32[512, 8]) {
    n = gather(shape(x), 0)
    return slice(table, [0], unsqueeze(n, [0]))
  })"),
            "f32[min(512, n), 8]");
  EXPECT_EQ(type_of("graph(x: f32[n, 4]) { return range(0, gather(shape(x), 0), 1) }"), "i64[n]");
}

TEST(ShapeArithmetic, ResolvesAConstantOfShapeAndTile) {
  EXPECT_EQ(type_of("graph(x: f32[n, 4]) { return constant_of_shape(shape(x)) }"), "f32[n, 4]");
  EXPECT_EQ(type_of(R"(graph(x: f32[n, 4], y: f32[1, 3]) {
    return tile(y, concat(unsqueeze(gather(shape(x), 0), [0]), [2]) {axis=0})
  })"),
            "f32[n, 6]");
}

TEST(ShapeArithmetic, NamesSizesThatDependOnData) {
  const Graph graph = parsed("graph(x: f32[n], y: f32[n]) { return non_zero(x), non_zero(y) }");
  const Shape first = *graph.type(graph.outputs()[0]).shape;
  const Shape second = *graph.type(graph.outputs()[1]).shape;
  ASSERT_TRUE(first.at(1).as_symbol());
  EXPECT_NE(first.at(1), second.at(1));
}

}  // namespace
}  // namespace tessera
