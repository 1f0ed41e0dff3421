#include "tessera/tile/schedule.h"

#include <gtest/gtest.h>

#include "tessera/expr/text.h"

namespace tessera::tile {
namespace {

Schedule schedule_of(std::string_view definition, const std::vector<tessera::Operand>& inputs) {
  const auto parsed = parse_definition(definition);
  EXPECT_TRUE(parsed) << to_string(parsed.error());
  auto stages = then({}, *parsed, inputs);
  EXPECT_TRUE(stages) << to_string(stages.error());
  auto schedule = Schedule::of(*std::move(stages));
  EXPECT_TRUE(schedule) << to_string(schedule.error());
  return *std::move(schedule);
}

Schedule matmul() {
  return schedule_of(
      "define(a: f32[#i, #k], b: f32[#k, #j]) { c: f32[i, j] = sum(k) a[i, k] * b[k, j] }",
      {{"a", DType::F32, {64, 32}}, {"b", DType::F32, {32, 48}}});
}

Expected<Schedule> applied(const Schedule& schedule, std::string_view text) {
  TESSERA_TRY(const auto steps, parse_schedule(text));
  return schedule.apply(steps);
}

void expect_illegal(const Schedule& schedule, std::string_view text, std::string_view message) {
  const auto result = applied(schedule, text);
  ASSERT_FALSE(result) << text;
  EXPECT_EQ(result.error().id, "schedule-illegal");
  EXPECT_EQ(result.error().message, message);
}

TEST(Schedule, BeginsWithTheLoopsOfTheDefinition) {
  EXPECT_EQ(loops_text(matmul()),
            "c\n  for i < 64\n    for j < 48\n      for k < 32 of the fold\n");
}

TEST(Schedule, AMatmulIsTensorized) {
  const auto schedule = applied(matmul(),
                                "tile(i, j, 16, 8) split(k, 8) vectorize(i.i) vectorize(j.i) "
                                "vectorize(k.i) parallel(i.o) parallel(j.o) pipeline(k.o, 2) "
                                "tensorize(c)");
  ASSERT_TRUE(schedule) << to_string(schedule.error());
  EXPECT_EQ(loops_text(*schedule),
            "c: a product of matrices\n  parallel i.o < 4\n    parallel j.o < 6\n      for k.o < 4 "
            "of the fold\n        vector i.i < 16\n          vector j.i < 8\n            vector "
            "k.i < 8 of the fold\n");
}

TEST(Schedule, EqualStepsHaveEqualHashes) {
  const auto one = applied(matmul(), "split(i, 16)"), same = applied(matmul(), " split ( i , 16 )"),
             other = applied(matmul(), "split(i, 8)");
  ASSERT_TRUE(one && same && other);
  EXPECT_EQ(one->hash(), same->hash());
  EXPECT_NE(one->hash(), other->hash());
  EXPECT_EQ(to_text(*one), "split(i, 16)\n");
}

TEST(Schedule, SaysWhyAStepIsIllegal) {
  expect_illegal(matmul(), "split(z, 4)", "there is no loop z");
  expect_illegal(matmul(), "split(i, 0)", "a loop cannot be split by 0");
  expect_illegal(matmul(), "split(i)", "this primitive takes other arguments");
  expect_illegal(matmul(), "parallel(k)", "loop k runs through what a fold takes in");
  expect_illegal(matmul(), "parallel(j)", "loop j lies inside of loop i, which is not parallel");
  expect_illegal(matmul(), "reorder(k, i)",
                 "loop j of the output lies inside of loop k of the fold");
  expect_illegal(matmul(), "fuse(i, k)", "loop k does not follow loop i");
  expect_illegal(matmul(), "fuse(j, k)", "a loop of the output and one of the fold are not fused");
  expect_illegal(matmul(), "tensorize(c)", "no loop of the sum is a vector");
  expect_illegal(matmul(), "cache_read(a, j)", "a is read at positions that vary with loop k");
  expect_illegal(matmul(), "fission(i)", "no stage is computed in loop i");
  expect_illegal(matmul(), "vectorize(i) split(i, 2)", "loop i is serial no more");
  expect_illegal(matmul(), "split(i, 1000) unroll(i.i)",
                 "loop i.i would make the code 1000 times as long");
  expect_illegal(matmul(), "compute_at(c, i)", "a stage is not computed in itself");
}

TEST(Schedule, AnElementwiseStageIsNoProduct) {
  const Schedule schedule =
      schedule_of("define(x: f32[#i]) { out: f32[i] = x[i] }", {{"x", DType::F32, {8}}});
  expect_illegal(schedule, "vectorize(i) tensorize(out)", "stage out is no product of matrices");
}

TEST(Schedule, AFoldWhoseOrderMattersKeepsIt) {
  const Schedule schedule = schedule_of(
      "define(x: f32[#i, #j]) { out: i64[] = fold(i, j) { from -inf, 0 take x[i, j], i by "
      "max(left.0, right.0), select(left.0 < right.0, right.1, left.1) }.1 }",
      {{"x", DType::F32, {4, 6}}});
  expect_illegal(schedule, "reorder(j, i)", "the order in which the fold takes things in matters");
  expect_illegal(schedule, "vectorize(i)", "loop i carries a dependence across loop j");
  EXPECT_TRUE(applied(schedule, "vectorize(j) vectorize(i)"));
}

TEST(Schedule, BadTextIsADiagnostic) {
  for (const char* text : {"split", "split(", "split(i 4)", "spilt(i, 4)", "split(4, i)", "{}",
                           "split(i, 99999999999999999999)", "split(i/, 4)"})
    EXPECT_FALSE(parse_schedule(text)) << text;
}

}  // namespace
}  // namespace tessera::tile
