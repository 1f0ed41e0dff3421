/// Indices in the data, out of range or not: compiled programs refuse what the interpreter refuses.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/engine/engine.h"
#include "tessera/interp/interp.h"
#include "tessera/program/compile.h"
#include "tessera/program/index_uses.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera::program {
namespace {

using Numbers = std::vector<std::int64_t>;

Tensor indices_of(const std::vector<std::int64_t>& shape, const Numbers& elements) {
  return Tensor::of<std::int64_t>(DType::I64, shape, elements);
}

Expected<std::vector<Datum>> run_compiled(const Graph& graph, const std::vector<Datum>& inputs,
                                          const CompileOptions& options = {}) {
  TESSERA_TRY(Compiled compiled, compile(graph, options));
  TESSERA_TRY(const auto loaded, runtime::LoadedProgram::load(std::move(compiled.program)));
  TESSERA_TRY(const auto session, engine::make_session(loaded, {.threads = 2}));
  return session->run(inputs);
}

/// Both ways of running it agree, on values and on errors.
void expect_agreement(const std::string& text, const Tensor& indices, bool is_right) {
  const Graph graph = testing::parsed(text);
  std::vector<Datum> inputs = {indices};
  for (std::size_t i = 1; i < graph.inputs().size(); ++i) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : *graph.type(graph.inputs()[i]).shape) shape.push_back(*dim.constant());
    inputs.emplace_back(testing::random_f32(shape, i));
  }
  const auto expected = interp::run(graph, inputs, {});
  const auto found = run_compiled(graph, inputs);
  EXPECT_EQ(expected.has_value(), is_right) << text;
  ASSERT_EQ(found.has_value(), is_right) << text << (found ? "" : to_string(found.error()));
  if (!is_right) {
    EXPECT_EQ(found.error().id, "eval-index") << text;
    return;
  }
  for (std::size_t i = 0; i < expected->size(); ++i)
    testing::expect_near((*found)[i].tensor(), (*expected)[i].tensor(), 0);
}

TEST(IndexCheck, HoldsForEveryOperatorThatReadsOrWritesByIndex) {
  const struct {
    const char* text;
    std::vector<std::int64_t> shape;
    Numbers right, wrong;
  } cases[] = {
      {"graph(i: i64[3], x: f32[5, 4]) { return gather(x, i) }", {3}, {-5, 0, 4}, {0, 5, 1}},
      {"graph(i: i64[3], x: f32[5, 4]) { return gather(x, i) }", {3}, {-5, 0, 4}, {0, -6, 1}},
      {"graph(i: i64[3], x: f32[5, 4]) { return gather(x, i) {axis=1} }",
       {3},
       {3, -4, 0},
       {0, 4, 1}},
      {"graph(i: i64[2, 2], x: f32[5, 2]) { return gather_elements(x, i) }",
       {2, 2},
       {4, 0, -5, 1},
       {4, 0, 5, 1}},
      {"graph(i: i64[2, 2], x: f32[2, 5]) { return gather_elements(x, i) {axis=1} }",
       {2, 2},
       {4, 0, -5, 1},
       {4, 0, -6, 1}},
      {"graph(i: i64[2, 2], x: f32[2, 5]) { return gather_nd(x, i) }",
       {2, 2},
       {1, 4, -2, -5},
       {1, 4, 2, 0}},
      {"graph(i: i64[2, 2], x: f32[2, 5]) { return gather_nd(x, i) }",
       {2, 2},
       {1, 4, -2, -5},
       {1, 5, 0, 0}},
      {"graph(i: i64[2, 1], x: f32[2, 5]) { return gather_nd(x, i) {batch_dims=1} }",
       {2, 1},
       {4, -5},
       {4, 5}},
      {"graph(i: i64[2, 2], x: f32[2, 5], u: f32[2]) { return scatter_nd(x, i, u) }",
       {2, 2},
       {1, 4, 0, -5},
       {1, 4, 0, 5}},
      {"graph(i: i64[2, 2], x: f32[2, 5], u: f32[2]) {"
       "  return scatter_nd(x, i, u) {reduction=\"add\"} }",
       {2, 2},
       {1, 4, 1, 4},
       {-3, 4, 0, 0}},
      {"graph(i: i64[1, 3], x: f32[4, 3], u: f32[1, 3]) { return scatter_elements(x, i, u) }",
       {1, 3},
       {3, 0, -4},
       {3, 0, 4}},
      // computed, cut out of and in the transpose of something
      {"graph(i: i64[3], x: f32[5, 4]) { j = add(i, i)  return gather(x, j) }",
       {3},
       {-2, 0, 2},
       {0, 3, 0}},
      {"graph(i: i64[6], x: f32[5, 4]) { j = slice(i, [1], [6], [0], [2])  return gather(x, j) }",
       {6},
       {9, 1, 9, 2, 9, 3},
       {0, 1, 0, 5, 0, 0}},
      {"graph(i: i64[2, 3], x: f32[4, 4]) { j = transpose(i) {perm=[1, 0]}  return gather_nd(x, j) "
       "}",
       {2, 3},
       {0, 1, 2, 3, -4, 0},
       {0, 1, 4, 0, 0, 0}},
      {"graph(i: i64[2, 3], x: f32[2, 9]) { j = transpose(i) {perm=[1, 0]}  return gather_nd(x, j) "
       "}",
       {2, 3},
       {0, 1, -2, 8, -9, 0},
       {0, 1, 2, 0, 0, 0}},
      {"graph(i: i64[2, 2], x: f32[5, 4]) { j = cast(i) {to=\"i32\"}  k = reshape(j, [4])"
       "  return gather(x, k) }",
       {2, 2},
       {0, 1, 2, 4},
       {0, 1, 2, 5}},
      {"graph(i: i64[2]) { x = const f32[1] [7]  return gather(x, i) }", {2}, {0, -1}, {0, 1}},
      {"graph(i: i64[2], x: f32[5]) { a = gather(x, i)  y = slice(x, [0], [3], [0], [1])"
       "  b = gather(y, i)  return a, b }",
       {2},
       {2, -3},
       {0, 4}},
  };
  for (const auto& [text, shape, right, wrong] : cases) {
    expect_agreement(text, indices_of(shape, right), true);
    expect_agreement(text, indices_of(shape, wrong), false);
  }
}

TEST(IndexCheck, LooksAtNothingWhereNothingIsIndexed) {
  expect_agreement("graph(i: i64[0], x: f32[5, 4]) { return gather(x, i) }", indices_of({0}, {}),
                   true);
  expect_agreement("graph(i: i64[2], x: f32[5, 0]) { return gather(x, i) }",
                   indices_of({2}, {7, 8}), true);
  expect_agreement("graph(i: i64[2], x: f32[0, 3]) { return gather(x, i) }",
                   indices_of({2}, {0, 0}), false);
}

TEST(IndexCheck, HoldsInEveryIterationOfALoop) {
  const std::string text =
      "graph(i: i64[4, 2], s: f32[2], x: f32[5]) {"
      "  y, z = scan(s, i, x) {states=1, elements=1} {"
      "    body(v: f32[2], j: i64[2], t: f32[5]) { g = gather(t, j)  w = add(v, g)  return w, g } }"
      "  return y, z }";
  expect_agreement(text, indices_of({4, 2}, {0, 1, 2, 3, 4, -5, 0, 0}), true);
  expect_agreement(text, indices_of({4, 2}, {0, 1, 2, 3, 4, -5, 5, 0}), false);
}

TEST(IndexCheck, HoldsWithinAMemoryLimit) {
  const Graph graph = testing::parsed(
      "graph(i: i64[64], x: f32[64, 256]) { a = exp(x)  j = add(i, i)  b = gather(a, j)"
      "  c = mul(b, a)  return c }");
  for (const std::int64_t last : {31, 32}) {
    Numbers indices(64, 3);
    indices.back() = last;
    const auto found =
        run_compiled(graph, {indices_of({64}, indices), testing::random_f32({64, 256}, 1)},
                     {.memory_limit = 70'000});
    EXPECT_EQ(found.has_value(), last == 31) << (found ? "" : to_string(found.error()));
  }
}

TEST(IndexCheck, IsLeftOutWhereConstantsAreInRange) {
  const auto checks = [](const char* text) {
    const auto compiled = compile(testing::parsed(text), {});
    return std::ranges::count_if(compiled->program.steps, [](const runtime::Step& step) {
      return std::holds_alternative<runtime::step::CheckIndices>(step);
    });
  };
  EXPECT_EQ(checks("graph(x: f32[5, 4]) { return gather(x, [3, -5]) }"), 0);
  EXPECT_EQ(checks("graph(x: f32[5, 4]) { return gather(x, [3, 5]) }"), 1);
  EXPECT_EQ(checks("graph(x: f32[2, 9]) { i = const i64[2, 2] [1, 8, -2, 2]"
                   "  return gather_nd(x, i) }"),
            0);
  // the same indices are looked at once
  EXPECT_EQ(checks("graph(x: f32[5, 4], y: f32[5, 2], i: i64[3]) {"
                   "  return gather(x, i), gather(y, i) }"),
            1);
}

TEST(IndexUses, AreNotThoseThatMayBeOutOfRange) {
  const Graph graph = testing::parsed(
      "graph(i: i64[3], x: f32[5, 4]) { a = one_hot(i, 5, [0, 1])  b = gather(x, i)"
      "  c = add(i, i)  return a, b, c }");
  std::vector<std::size_t> counts;
  for (const GraphNode& node : graph.nodes()) counts.push_back(index_uses(graph, node).size());
  EXPECT_EQ(std::ranges::count(counts, 1U), 1);
  EXPECT_EQ(std::ranges::count(counts, 0U), std::ssize(counts) - 1);
}

}  // namespace
}  // namespace tessera::program
