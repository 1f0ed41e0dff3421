#include "tessera/program/limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/engine/engine.h"
#include "tests/support/evaluate.h"
#include "tests/support/graph_check.h"

namespace tessera::program {
namespace {

using ::testing::HasSubstr;

std::vector<Datum> run(const runtime::Program& program, const std::vector<Datum>& inputs) {
  const auto loaded = runtime::LoadedProgram::load(program);
  EXPECT_TRUE(loaded) << to_string(loaded.error());
  if (!loaded) return {};
  const auto session = engine::make_session(*loaded);
  EXPECT_TRUE(session) << to_string(session.error());
  if (!session) return {};
  auto outputs = (*session)->run(inputs);
  EXPECT_TRUE(outputs) << to_string(outputs.error());
  return outputs ? *std::move(outputs) : std::vector<Datum>();
}

/// With so much of the memory that it takes without a limit, the same bits come out.
CompileReport expect_same_bits(const Graph& graph, const std::vector<Datum>& inputs, double share) {
  const auto whole = compile(graph, {});
  EXPECT_TRUE(whole) << to_string(whole.error());
  if (!whole) return {};
  const auto limit =
      static_cast<std::int64_t>(share * static_cast<double>(whole->report.arena_bytes));
  const auto part = compile(graph, {.memory_limit = limit});
  EXPECT_TRUE(part) << to_string(part.error());
  if (!part) return {};
  EXPECT_LE(part->program.arena_bytes, limit);
  const auto expected = run(whole->program, inputs), found = run(part->program, inputs);
  EXPECT_EQ(expected.size(), found.size());
  for (std::size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    EXPECT_TRUE(
        std::ranges::equal(expected[i].tensor().bytes.view(), found[i].tensor().bytes.view()));
  }
  return part->report;
}

/// A value of the beginning is used again at the end; in between there are large ones.
constexpr const char* kSkip =
    "graph(x: f32[64, 64], w: f32[64, 64]) {"
    "  a = matmul(x, w)  b = matmul(a, w)  c = matmul(b, w)  d = matmul(c, w)"
    "  e = matmul(d, a)  return e }";

TEST(LimitMemory, WhatFitsIsLeftAlone) {
  const Graph graph = testing::parsed(kSkip);
  const CompileReport report = expect_same_bits(
      graph, {testing::random_f32({64, 64}, 1), testing::random_f32({64, 64}, 2)}, 1);
  EXPECT_TRUE(report.notes.empty());
}

TEST(LimitMemory, WhatWaitsIsMovedOutOfTheWay) {
  const Graph graph = testing::parsed(kSkip);
  const CompileReport report = expect_same_bits(
      graph, {testing::random_f32({64, 64}, 1), testing::random_f32({64, 64}, 2)}, 0.7);
  ASSERT_FALSE(report.notes.empty());
}

TEST(LimitMemory, WhatDoesNotFitEvenInUseLiesInTheFile) {
  const Graph graph = testing::parsed(kSkip);
  const CompileReport report = expect_same_bits(
      graph, {testing::random_f32({64, 64}, 1), testing::random_f32({64, 64}, 2)}, 0.3);
  ASSERT_FALSE(report.notes.empty());
  EXPECT_THAT(report.notes.back(), HasSubstr("lie in a temporary file"));
}

TEST(LimitMemory, ConvolutionsWithSkipsKeepTheirBits) {
  const Graph graph = testing::parsed(
      "graph(x: f32[1, 8, 20, 20], v: f32[8, 8, 3, 3]) {"
      "  a = conv(x, v) {pads=[1, 1, 1, 1]}  b = relu(a)"
      "  c = conv(b, v) {pads=[1, 1, 1, 1]}  d = conv(c, v) {pads=[1, 1, 1, 1]}"
      "  e = conv(d, v) {pads=[1, 1, 1, 1]}  f = concat(e, b) {axis=1}  return f, c }");
  for (const double share : {0.9, 0.7, 0.5, 0.35}) {
    expect_same_bits(graph,
                     {testing::random_f32({1, 8, 20, 20}, 1), testing::random_f32({8, 8, 3, 3}, 2)},
                     share);
  }
}

TEST(LimitMemory, BoxesWrittenInPlaceKeepTheirBits) {
  const Graph graph = testing::parsed(
      "graph(x: f32[64, 64], w: f32[64, 64]) {"
      "  a = matmul(x, w)  b = matmul(a, w)  p = update_slice(b, slice(a, [0, 0], [9, 64]), [7, 0])"
      "  c = matmul(p, w)  d = matmul(c, w)  e = matmul(d, p)  return add(e, a) }");
  for (const double share : {0.9, 0.7, 0.5, 0.35})
    expect_same_bits(graph, {testing::random_f32({64, 64}, 1), testing::random_f32({64, 64}, 2)},
                     share);
}

}  // namespace
}  // namespace tessera::program
