#include "tessera/program/constants.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tessera/engine/engine.h"
#include "tessera/interp/interp.h"
#include "tessera/ir/builder.h"
#include "tessera/program/plan.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera::program {
namespace {

using testing::random_f32;

const OpDef& op(const char* name) {
  return *find_op(name);
}

/// matmul(x, transpose(concat(v, w))), with weights for v and w.
Graph product_of_weights() {
  Graph graph;
  const ValueId x = graph.add_input(Type::tensor(DType::F32, {3, 8}), "x");
  const ValueId v = graph.add_constant(random_f32({200, 8}, 1), {}),
                w = graph.add_constant(random_f32({100, 8}, 2), {});
  const auto add = [&](const char* name, const Attrs& attrs, std::vector<ValueId> inputs,
                       const Shape& shape) {
    return graph.add_node({.op = &op(name),
                           .attrs = *completed(op(name), attrs),
                           .inputs = std::move(inputs),
                           .outputs = {Type::tensor(DType::F32, shape)}})[0];
  };
  const ValueId all = add("concat", {{"axis", 0}}, {v, w}, {300, 8});
  const ValueId turned = add("transpose", {{"perm", Ints{1, 0}}}, {all}, {8, 300});
  graph.set_outputs({add("matmul", {}, {x, turned}, {3, 300}), turned});
  return graph;
}

TEST(Constants, WorkOnWeightsIsDoneOnceByMachineCode) {
  const Graph graph = product_of_weights();
  const auto compiled = compile(graph, {});
  ASSERT_TRUE(compiled) << to_string(compiled.error());
  for (const CompileReport::Step& step : compiled->report.steps) EXPECT_NE(step.what, "concat");
  const std::vector<Datum> inputs{random_f32({3, 8}, 3)};
  const auto expected = interp::run(graph, inputs, {});
  const auto loaded = runtime::LoadedProgram::load(compiled->program);
  ASSERT_TRUE(expected && loaded);
  const auto session = engine::make_session(*loaded);
  ASSERT_TRUE(session);
  const auto found = (*session)->run(inputs);
  ASSERT_TRUE(found) << to_string(found.error());
  for (std::size_t i = 0; i < expected->size(); ++i)
    testing::expect_near((*found)[i].tensor(), (*expected)[i].tensor(), 2e-5);
}

TEST(Constants, APlanIsTheSameWithoutTheirContent) {
  const Graph graph = product_of_weights();
  const CompileOptions options;
  Lowerings lowerings = lowerings_for(options);
  const auto draft = plan(graph, {.options = options, .lowerings = lowerings});
  const auto compiled = compile(graph, options);
  ASSERT_TRUE(draft && compiled);
  ASSERT_EQ(draft->report.steps.size(), compiled->report.steps.size());
  for (std::size_t i = 0; i < draft->report.steps.size(); ++i) {
    EXPECT_EQ(draft->report.steps[i].strategy, compiled->report.steps[i].strategy);
    if (draft->report.steps[i].group != nullptr) {
      EXPECT_EQ(draft->report.steps[i].group->key, compiled->report.steps[i].group->key);
      EXPECT_EQ(draft->report.steps[i].group->code, compiled->report.steps[i].group->code);
    }
  }
}

/// The steps of matmul(x, add(w, p)), or of matmul(x, p), where p is padded from a column to 1.4
/// MB.
std::vector<std::string> steps_with_padded_weights(bool is_added) {
  GraphBuilder out;
  const Val x = out.input("x", {.type = Type::tensor(DType::F32, {2, 600})});
  const Val column = out.constant(random_f32({600, 1}, 1));
  const std::vector<std::int64_t> pads = {0, 0, 0, 599};
  const Val padded =
      out.op("pad", {column, out.constant(Tensor::of<std::int64_t>(DType::I64, {4}, pads))});
  const Val weights =
      is_added ? out.op("add", {out.constant(random_f32({600, 600}, 2)), padded}) : padded;
  const auto graph = out.finish({out.op("matmul", {x, weights})});
  EXPECT_TRUE(graph);
  const auto compiled = compile(*graph, {});
  EXPECT_TRUE(compiled);
  std::vector<std::string> steps;
  for (const CompileReport::Step& step : compiled->report.steps) steps.push_back(step.what);
  return steps;
}

TEST(Constants, LargeOnesAreTemporaryInTheWorkOnWeights) {
  EXPECT_EQ(steps_with_padded_weights(true), std::vector<std::string>{"matmul"});
}

TEST(Constants, LargeOnesOfLittleAreMadeInEachRun) {
  EXPECT_EQ(steps_with_padded_weights(false), (std::vector<std::string>{"pad", "matmul"}));
}

/// Compiles a graph and compares a run with the interpreter.
CompileReport expect_same_outputs(const Graph& graph, const std::vector<Datum>& inputs) {
  auto compiled = compile(graph, {});
  EXPECT_TRUE(compiled) << to_string(compiled.error());
  if (!compiled) return {};
  const auto expected = interp::run(graph, inputs, {});
  const auto loaded = runtime::LoadedProgram::load(std::move(compiled->program));
  EXPECT_TRUE(expected && loaded);
  const auto session = engine::make_session(*loaded);
  EXPECT_TRUE(session);
  const auto found = (*session)->run(inputs);
  EXPECT_TRUE(found) << to_string(found.error());
  for (std::size_t i = 0; found && i < expected->size(); ++i)
    testing::expect_near((*found)[i].tensor(), (*expected)[i].tensor(), 1e-3);
  return std::move(compiled->report);
}

TEST(Constants, ALargeOneMayBeReadAtCompileTimeAndAtRunTime) {
  // The table is made in each run; its row maxima, which are small, at compile time.
  const CompileReport report = expect_same_outputs(
      testing::parsed("graph(x: f32[1]) { r = range(0, 1000, 1)"
                      "  a = cast(reshape(r, [1000, 1])) {to=\"f32\"}"
                      "  b = cast(reshape(r, [1, 1000])) {to=\"f32\"}"
                      "  y = matmul(a, b)  return mul(y, x), mul(reduce_max(y, [1]), x) }"),
      {random_f32({1}, 1)});
  EXPECT_EQ(report.steps.size(), 2);
}

TEST(Constants, TemporaryOnesAreLimitedInAll) {
  // Each table of 2^26 elements is small enough to be temporary; a hundred of them are not.
  std::string text = "graph(x: f32[1]) { r = f32[1, 1] [2]  s = f32[1, 1] [3]";
  for (int i = 0; i < 100; ++i)
    text += fmt::format(
        "  a{0} = pad(r, [0, 0, {1}, 0])  b{0} = pad(s, [0, 0, 0, {1}])"
        "  m{0} = matmul(a{0}, b{0})  sum{0} = reduce_max(m{0})",
        i, 8191);
  text += "  return x";
  for (int i = 0; i < 100; ++i) text += fmt::format(", sum{}", i);
  const auto planned = assume_constants(testing::parsed(text + " }"));
  ASSERT_TRUE(planned);
  const auto is_matmul = [](const GraphNode& node) { return node.op == &op("matmul"); };
  EXPECT_GT(std::ranges::count_if(planned->nodes(), is_matmul), 90);
}

TEST(Constants, ReadingAConstantTwiceDoesNotAllowMoreGrowth) {
  // Each sum reads the one before twice.
  std::string text = "graph(x: f32[1]) { a0 = add(f32[1] [2], f32[1] [3])";
  for (int i = 1; i < 80; ++i) text += fmt::format("  a{} = add(a{}, a{})", i, i - 1, i - 1);
  text += "  return mul(pad(a79, [0, 4194304]), x) }";
  const auto planned = assume_constants(testing::parsed(text));
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->nodes().size(), 2);
}

TEST(Constants, WeightsOfSmallTypesAreConvertedOnce) {
  constexpr std::int64_t rows = 1024, columns = 600, block = 32;  // 2.3 MiB as f32
  std::vector<std::uint8_t> levels;
  for (std::int64_t i = 0; i < rows * columns; ++i)
    levels.push_back(static_cast<std::uint8_t>(i * 7 % 16));
  GraphBuilder out;
  const Val x = out.input("x", {.type = Type::tensor(DType::F32, {2, rows})});
  const Val w = out.constant(Tensor::of<std::uint8_t>(DType::U4, {rows, columns}, levels));
  const Val scale = out.constant(random_f32({rows / block, columns}, 1));
  const Val number = out.op("dequantize_linear", {w, scale}, {{"axis", 0}, {"block_size", block}});
  const Graph graph = *out.finish({{"y", out.op("matmul", {x, number})}});
  const CompileReport report = expect_same_outputs(graph, {random_f32({2, rows}, 3)});
  ASSERT_EQ(report.steps.size(), 1);
  EXPECT_EQ(report.steps[0].what, "matmul");
}

TEST(Constants, AWeightOfASmallTypeMayGrowByMoreThanATemporaryOne) {
  constexpr std::int64_t rows = 4000, columns = 10000;  // 40 MB, 320 MB as f64
  GraphBuilder out;
  const Val x = out.input("x", {.type = Type::tensor(DType::F64, {2, rows})});
  const Val w = out.constant(Tensor::of<std::uint8_t>(DType::U4, {rows, columns},
                                                      std::vector<std::uint8_t>(rows * columns)));
  const Val wide = out.op("cast", {w}, {{"to", "f64"}});
  const auto planned = assume_constants(*out.finish({{"y", out.op("matmul", {x, wide})}}));
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->nodes().size(), 1);
}

TEST(Constants, WhatWouldGrowIsComputedWhenItRuns) {
  Graph graph;
  const ValueId x = graph.add_input(Type::tensor(DType::F32, {1024, 1024}), "x");
  const ValueId w = graph.add_constant(random_f32({1024, 1}, 1), {}),
                v = graph.add_constant(random_f32({1, 1024}, 2), {});
  const auto add = [&](std::vector<ValueId> inputs) {
    return graph.add_node({.op = &op("add"),
                           .attrs = *completed(op("add"), {}),
                           .inputs = std::move(inputs),
                           .outputs = {Type::tensor(DType::F32, {1024, 1024})}})[0];
  };
  graph.set_outputs({add({x, add({w, v})})});
  const auto compiled = compile(graph, {});
  ASSERT_TRUE(compiled);
  EXPECT_LT(compiled->report.weight_bytes, 1 << 20);
}

}  // namespace
}  // namespace tessera::program
