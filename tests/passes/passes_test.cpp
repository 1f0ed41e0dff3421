#include "tessera/machine/machine.h"
#include "tests/passes/pass_check.h"

namespace tessera {
namespace {

using testing::expect_graph;
using testing::expect_pass;
using testing::expect_same_results;
using testing::expect_unchanged;
using testing::only;
using testing::optimized;
using testing::parsed;

TEST(Fold, ComputesWhatDependsOnConstantsAlone) {
  expect_pass({.passes = {"fold"},
               .before = "graph(x: f32[2]) { return add(x, mul(2.0, 3.0)) }",
               .after = "graph(x: f32[2]) { return add(x, 6.0) }"});
}

TEST(Fold, TurnsSizeComputationsIntoNumbers) {
  expect_pass({.passes = {"fold"},
               .before = "graph(x: f32[2, 3, 4]) { s = shape(x)  "
                         "r = concat(gather(s, [0]), [-1]) {axis=0}  return reshape(x, r) }",
               .after = "graph(x: f32[2, 3, 4]) { return reshape(x, [2, -1]) }"});
}

TEST(Fold, TellsTheSizesThatFollow) {
  // What the branches have in common does not say how large the image becomes.
  const Graph graph = parsed(
      "graph(x: f32[1, 2, 3, 3]) { s = if_else(greater(2.0, 1.0)) { then() { return [1.0, 1.0, "
      "2.0, 2.0] } else() { return [1.0, 1.0, 3.0, 3.0] } }  r = resize(x, _, s)  return "
      "relu(neg(r)) }");
  const Graph after = optimized(graph);
  EXPECT_EQ(after.type(after.outputs()[0]), Type::tensor(DType::F32, {1, 2, 6, 6}));
  expect_same_results(graph, after);
}

TEST(Fold, ComputesWhatHasSizesThatDependOnConstants) {
  expect_pass({.passes = {"fold"},
               .before =
                   "graph(x: f32[4]) { i = squeeze(transpose(non_zero([0.0, 2.0, 0.0, 1.0])), "
                   "[1])  return gather(x, i) }",
               .after = "graph(x: f32[4]) { return gather(x, [1, 3]) }"});
}

TEST(Fold, KeepsOutputsThatAreInputsOrConstants) {
  // Copies of the input come before constants that nothing but the outputs names.
  const Graph graph = parsed(
      "graph(x: f32[2]) { a = const f32[2] [0.0, 1.0]  b = const f32[2] [2.0, 3.0]  "
      "y0 = identity(x)  y1 = identity(x)  y2 = identity(x)  return y0, y1, a, y2, b }");
  const Graph after = optimized(graph);
  EXPECT_EQ(after.outputs().size(), 5);
  expect_same_results(graph, after);
}

TEST(Fold, LeavesWhatWouldGrowTheModel) {
  expect_unchanged({"fold"}, "graph(x: f32[1]) { return mul(x, expand(2.0, [1024, 1024])) }");
}

TEST(Fold, ComputesOneElementOfTensorsOfOneNumber) {
  // 2 MB of zeros are not stored.
  expect_pass({.passes = {"fold"},
               .before = "graph(x: f32[1]) { m = const bool[1, 2, 1] [1, 1]  "
                         "a = expand(where(m, 0.0, -inf), [1024, 2, 1024])  return add(x, a) }",
               .after = "graph(x: f32[1]) { return add(x, expand(const f32[1, 2, 1] [0.0, 0.0], "
                        "[1024, 2, 1024])) }"});
  std::string ones;
  for (int i = 0; i < 1030; ++i) ones += i == 0 ? "1" : ", 1";
  expect_pass({.passes = {"fold"},
               .before = fmt::format("graph(x: f32[1030, 1030]) {{ r = const bool[1, 1030] [{0}]  "
                                     "c = const bool[1030, 1] [{0}]  "
                                     "return add(x, where(logical_and(r, c), 0.0, -inf)) }}",
                                     ones),
               .after = "graph(x: f32[1030, 1030]) { return add(x, expand(0.0, [1030, 1030])) }"});
}

TEST(Fold, LeavesWeightsOfAByteOrLess) {
  std::string bytes;
  for (int i = 0; i < 80; ++i) bytes += fmt::format("{:02x}", i % 8);
  for (const char* dtype : {"i8", "u4", "f8e4m3fn"}) {
    const std::string weights = fmt::format("const {}[5, 16] hex(\"{}\")", dtype, bytes);
    expect_unchanged(
        {"fold"}, fmt::format("graph() {{ w = {}  return dequantize_linear(w, 0.5) }}", weights));
    const Graph moved = optimized(parsed(
        fmt::format("graph() {{ w = {}  return dequantize_linear(transpose(w), 0.5) }}", weights)));
    EXPECT_EQ(moved.nodes().size(), 1u);
  }
}

TEST(Fold, KeepsDraws) {
  const Graph graph = parsed("graph() { return random_uniform() {shape=[2]} }");
  EXPECT_EQ(optimized(graph, only({"fold"})).nodes().size(), 1u);
}

TEST(Cse, ComputesARepeatedValueOnce) {
  expect_pass({.passes = {"cse"},
               .before = "graph(x: f32[2], y: f32[2]) { a = add(x, y)  b = add(x, y)  "
                         "return mul(a, b) }",
               .after = "graph(x: f32[2], y: f32[2]) { a = add(x, y)  return mul(a, a) }"});
}

TEST(Cse, KeepsTwoRandomDrawsApart) {
  const Graph graph = parsed(
      "graph() { a = random_uniform() {shape=[2]}  b = random_uniform() {shape=[2]}  "
      "return add(a, b) }");
  EXPECT_EQ(optimized(graph, only({"cse"})).nodes().size(), 3u);
}

TEST(Cse, KeepsTheNamesOfOutputsThatAreOneValue) {
  const Graph after =
      optimized(parsed("graph(x: f32[2]) { a = neg(x)  b = neg(x)  return a, b }"), only({"cse"}));
  EXPECT_EQ(after.name(after.outputs()[0]), "a");
  EXPECT_EQ(after.name(after.outputs()[1]), "b");
}

TEST(Dce, DropsWhatNoOutputNeeds) {
  expect_pass({.passes = {"dce"},
               .before = "graph(x: f32[2]) { a = exp(x)  b = neg(x)  return b }",
               .after = "graph(x: f32[2]) { return neg(x) }"});
}

TEST(Fold, LeavesABranchThatKnowsSizesWhichItsCapturesDoNot) {
  const Graph before = parsed(
      "graph(x: f32[3], c: bool[3]) { k = compress(x, c) {axis=0}"
      " y: f32[1] = if_else(const bool[] 1, k) {"
      " then(p: f32[1]) { return tanh(p) } else(p: f32[1]) { return p } } return y }");
  const Graph after = optimized(before);  // a graph that is not valid would end the program
  EXPECT_GE(after.nodes().size(), 2u);
}

TEST(Moves, DropsWhatMovesNothing) {
  for (const char* nothing :
       {"identity(x)", "cast(x) {to=\"f32\"}", "transpose(x) {perm=[0, 1, 2]}",
        "reshape(x, [2, -1, 4])", "pad(x, [0, 0, 0, 0, 0, 0])", "slice(x, [0], [9], [1])",
        "concat(x) {axis=1}", "expand(x, [1, 3, 4])", "squeeze(unsqueeze(x, [1]), [1])",
        "dropout(x)", "tile(x, [1, 1, 1])"}) {
    SCOPED_TRACE(nothing);
    const std::string before = fmt::format("graph(x: f32[2, 3, 4]) {{ return relu({}) }}", nothing);
    expect_pass({.passes = {"data_movement"},
                 .before = before,
                 .after = "graph(x: f32[2, 3, 4]) { return relu(x) }"});
  }
}

TEST(Moves, KeepsAPadThatReadsBesideAnAxisOfSizeOne) {
  expect_unchanged({"data_movement"}, "graph(x: f32[1, 2]) { return pad(x, [-1, 0, 1, 0], 1.75) }");
  expect_unchanged({"data_movement"}, "graph(x: f32[1, 1]) { return pad(x, [0, 1, 0, -1]) }");
}

TEST(Moves, JoinsTransposes) {
  expect_pass({.passes = {"data_movement"},
               .before = "graph(x: f32[2, 3, 4]) "
                         "{ return transpose(transpose(x) {perm=[1, 2, 0]}) {perm=[1, 2, 0]} }",
               .after = "graph(x: f32[2, 3, 4]) { return transpose(x) {perm=[2, 0, 1]} }"});
}

TEST(Moves, JoinsReshapesOfAllKinds) {
  expect_pass({.passes = {"data_movement"},
               .before = "graph(x: f32[2, 3, 4]) "
                         "{ return reshape(unsqueeze(flatten(x), [0]), [4, 6]) }",
               .after = "graph(x: f32[2, 3, 4]) { return reshape(x, [4, 6]) }"});
}

TEST(Moves, LeavesARealTransposeAlone) {
  expect_unchanged({"data_movement"}, "graph(x: f32[3, 3]) { return transpose(x) {perm=[1, 0]} }");
  expect_unchanged({"data_movement"},
                   "graph(x: f32[4]) { return slice(x, [-1], [-9], [0], [-1]) }");
}

TEST(Algebra, FoldsABatchNormalizationIntoWeights) {
  expect_pass({.passes = {"algebra"},
               .before = "graph(x: f32[1, 1, 2, 2]) { return batch_normalization("
                         "conv(x, f32[2, 1, 1, 1] [1.0, 2.0]), [1.0, 1.0], [0.0, 1.0], "
                         "[0.0, 1.0], [3.99999, 0.99999]) }",
               .after = "graph(x: f32[1, 1, 2, 2]) { return conv(x, f32[2, 1, 1, 1] [0.5, 2.0], "
                        "[0.0, 0.0]) }"});
}

TEST(Algebra, FoldsABatchNormalizationWhateverItsEpsilon) {
  const Graph before = parsed(
      "graph(x: f32[1, 1, 2, 2]) { return batch_normalization("
      "conv(x, f32[2, 1, 1, 1] [1.0, 2.0]), [1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [3.5, 0.5]) "
      "{epsilon=0.5} }");
  const Graph after = optimized(before);
  EXPECT_EQ(after.nodes().size(), 1u);
  expect_same_results(before, after);
}

TEST(Algebra, MergesConvolutionsOfOneImageThatAreAdded) {
  expect_pass({.passes = {"algebra"},
               .before =
                   "graph(x: f32[1, 1, 4, 4]) { w = f32[1, 1, 3, 3] [1, 2, 3, 4, 5, 6, 7, 8, 9]"
                   "  a = conv(x, w, [1.0]) {pads=[1, 1, 1, 1], strides=[2, 2]}"
                   "  b = conv(x, w, [2.0]) {pads=[1, 1, 1, 1], strides=[2, 2]}"
                   "  c = conv(x, f32[1, 1, 1, 1] [0.5], [3.0]) {strides=[2, 2]}"
                   "  return add(add(c, a), b) }",
               .after = "graph(x: f32[1, 1, 4, 4]) { return conv(x, f32[1, 1, 3, 3] "
                        "[2, 4, 6, 8, 10.5, 12, 14, 16, 18], [6.0]) "
                        "{pads=[1, 1, 1, 1], strides=[2, 2]} }"});
}

TEST(Algebra, KeepsConvolutionsOfOneImageWithOtherPadsApart) {
  expect_unchanged(
      {"algebra"},
      "graph(x: f32[1, 1, 4, 4], v: f32[1, 1, 3, 3], b: f32[1]) { return add(conv(x, v, b) "
      "{pads=[2, 2, 0, 0]}, conv(x, f32[1, 1, 1, 1] [0.5], b)) }");
}

TEST(Moves, TakesPartsWithoutASequence) {
  const Graph before = parsed(
      "graph(x: f32[2, 6]) { s = split_to_sequence(x, [2, 4]) {axis=1}  "
      "a: f32[2, 2] = sequence_at(s, i64[] 0)  b: f32[2, 4] = sequence_at(s, i64[] -1)  "
      "return exp(a), exp(b) }");
  const Graph after = optimized(before);
  EXPECT_EQ(after.nodes().size(), 3u);
  expect_same_results(before, after);
}

TEST(Algebra, ExactKeepsWhatRoundsOtherwise) {
  const Graph graph = parsed("graph(x: f32[3]) { return neg(neg(div(x, 3.0))) }");
  passes::Options options;
  options.exact = true;
  testing::expect_graph(optimized(graph, options), "graph(x: f32[3]) { return div(x, 3.0) }");
}

TEST(Algebra, CombinesWhatIsBroadcastFirst) {
  for (const char* op : {"add", "mul", "max", "min"})
    expect_pass({.passes = {"algebra"},
                 .before = fmt::format("graph(x: f32[2, 3], b: f32[3], c: f32[3]) "
                                       "{{ return {0}({0}(x, b), c) }}",
                                       op),
                 .after = fmt::format("graph(x: f32[2, 3], b: f32[3], c: f32[3]) "
                                      "{{ return {0}(x, {0}(b, c)) }}",
                                      op)});
  testing::expect_graph(
      optimized(parsed("graph(x: f32[N, 3], b: f32[3], c: f32[]) { return mul(mul(x, b), c) }")),
      "graph(x: f32[N, 3], b: f32[3], c: f32[]) { return mul(x, mul(b, c)) }");
}

TEST(Algebra, CombinesConstantsOfAnyShape) {
  expect_pass({.passes = {"algebra"},
               .before = "graph(x: f32[2]) { return add(add(x, [1.0, 2.0]), [3.0, 4.0]) }",
               .after = "graph(x: f32[2]) { return add(x, [4.0, 6.0]) }"});
}

TEST(Algebra, KeepsTheOrderOfOperandsOfOneSize) {
  expect_unchanged({"algebra"},
                   "graph(x: f32[3], b: f32[3], c: f32[3]) { return add(add(x, b), c) }");
  expect_unchanged({"algebra"},
                   "graph(x: f32[1, 3], b: f32[3], c: f32[3]) { return mul(x, mul(b, c)) }");
}

TEST(Algebra, KeepsTheRoundingOfWhatAStepFunctionReads) {
  expect_pass({.passes = {"algebra"},
               .before = "graph(x: f32[3]) { return exp(div(x, 41.0)) }",
               .after = "graph(x: f32[3]) { return exp(mul(x, 0.024390243)) }"});
  expect_unchanged({"algebra"}, "graph(x: f32[3]) { return floor(div(x, 41.0)) }");
  expect_unchanged({"algebra"}, "graph(x: f32[3]) { return neg(floor(neg(div(x, 41.0)))) }");
  expect_unchanged({"algebra"}, "graph(x: f32[3]) { return cast(div(x, 41.0)) {to=\"i64\"} }");
  expect_unchanged({"algebra"}, "graph(x: f32[3]) { return less(div(x, 41.0), 1.0) }");
  expect_unchanged({"algebra"},
                   "graph(x: f32[2, 3]) { return floor(reshape(sub(div(x, 41.0), 1.0), [6])) }");
}

/// The passes of the stage Target on a graph for this machine.
passes::Optimized for_this_machine(const Graph& graph, const passes::Options& options) {
  const machine::Machine host = machine::host();
  auto result = passes::optimize_for_target(
      graph, options,
      {.machine = host, .evaluate_constants = [](const Graph& all) { return Expected(all); }});
  EXPECT_TRUE(result) << to_string(result.error());
  return *std::move(result);
}

/// The graph without operators that a constant makes neutral, and their rules.
void expect_neutral(std::string_view before, std::string_view after,
                    const std::vector<std::string>& rules) {
  const Graph graph = parsed(before);
  const passes::Optimized result = for_this_machine(graph, only({"neutral"}));
  expect_graph(result.graph, after);
  expect_same_results(graph, result.graph);
  std::vector<std::string> names;
  for (const passes::Record& record : result.log)
    for (const passes::Change& change : record.changes) names.push_back(change.what);
  EXPECT_EQ(names, rules);
}

TEST(Neutral, DropsAMaskThatMasksNothing) {
  expect_neutral(
      "graph(s: f32[1, 2, 3, 3]) { mask = const f32[1, 1, 3, 3] [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "
      "0.0, 0.0, 0.0]"
      "  p = softmax(add(s, mask)) {axis=-1}  return where(const bool[1, 1, 3, 1] [0, 0, 0], 0.0, "
      "p) }",
      "graph(s: f32[1, 2, 3, 3]) { return softmax(s) {axis=-1} }", {"add_zero", "where_false"});
}

TEST(Neutral, KeepsWhatGivesTheResultItsShape) {
  const char* const text =
      "graph(x: f32[1, 3]) { return where(const bool[2, 1] [1, 1], x, 0.0), add(x, const f32[2, 1] "
      "[0.0, 0.0]) }";
  expect_neutral(text, text, {});
}

TEST(Neutral, KeepsConstantsOfSeveralNumbers) {
  const char* const text =
      "graph(x: f32[2]) { return where(const bool[2] [1, 0], x, 0.0), mul(x, [1.0, 2.0]) }";
  expect_neutral(text, text, {});
}

TEST(Neutral, ExactKeepsTheSignOfZero) {
  passes::Options exact = only({"neutral"});
  exact.exact = true;
  const auto nodes_of = [&](const char* text) {
    return for_this_machine(parsed(text), exact).graph.nodes().size();
  };
  EXPECT_EQ(nodes_of("graph(x: f32[2]) { return neg(sub(x, const f32[2] [-0.0, -0.0])) }"), 2U);
  EXPECT_EQ(nodes_of("graph(x: f32[2]) { return neg(add(x, 0.0)) }"), 2U);
  EXPECT_EQ(nodes_of("graph(x: f32[2]) { return neg(sub(x, const f32[2] [0.0, 0.0])) }"), 1U);
}

TEST(Pipeline, TakesTheBranchThatIsKnown) {
  const Graph graph = parsed(
      "graph(x: f32[2]) { y = if_else(greater(2.0, 1.0), x) { then(a) { return exp(a) } "
      "else(a) { return neg(a) } }  return relu(y) }");
  testing::expect_graph(optimized(graph), "graph(x: f32[2]) { return relu(exp(x)) }");
}

TEST(Pipeline, KeepsTheMeaningOfAnyGraph) {
  testing::for_each_random_graph({.seed = 11, .count = 300, .max_nodes = 25}, [](const Graph& g) {
    const Graph after = optimized(g);
    testing::expect_valid(after);
    expect_same_results(g, after, 1e-4);
  });
}

TEST(Pipeline, KeepsEveryBitIfAskedTo) {
  testing::for_each_random_graph({.seed = 12, .count = 100, .max_nodes = 20}, [](const Graph& g) {
    passes::Options options;
    options.exact = true;
    expect_same_results(g, optimized(g, options), 0);
  });
}

}  // namespace
}  // namespace tessera
