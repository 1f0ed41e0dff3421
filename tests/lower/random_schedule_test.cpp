#include <gtest/gtest.h>

#include "tests/lower/run_stages.h"

namespace tessera::lower {
namespace {

using tile::Schedule;
using tile::Step;

struct Program {
  std::string name;
  std::vector<Operand> inputs;
  std::vector<std::string> stages;
};

std::vector<Program> programs() {
  return {
      {"Matmul",
       {f32("a", {9, 12}), f32("b", {12, 10})},
       {"define(a: f32[#i, #k], b: f32[#k, #j]) { out: f32[i, j] = sum(k) a[i, k] * b[k, j] }"}},
      {"Convolution",
       {f32("x", {4, 8, 7}), f32("w", {5, 4, 3, 3})},
       {"define(x: f32[#c, #h, #v], w: f32[#f, #c, #r, #s]) { out: f32[f, y: 4, z: 5] = sum(c, r, "
        "s) { (x[c, 2*y + r - 1, z + s] else 0.0) * w[f, c, r, s] } }"}},
      {"SoftmaxInStages",
       {f32("x", {6, 11})},
       {"define(x: f32[#i, #j]) { most: f32[i] = max_of(j) x[i, j] }",
        "define(x: f32[#i, #j], most: f32[#i]) { e: f32[i, j] = exp(x[i, j] - most[i]) }",
        "define(e: f32[#i, #j]) { total: f32[i] = sum(j) e[i, j] }",
        "define(e: f32[#i, #j], total: f32[#i]) { out: f32[i, j] = e[i, j] / total[i] }"}},
      {"ChainOfElements",
       {f32("x", {6, 4, 5}), f32("y", {5})},
       {"define(x: f32[#i, #j, #k], y: f32[#k]) { p: f32[i, j, k] = x[i, j, k] * y[k] }",
        "define(p: f32[#i, #j, #k]) { q: f32[k, j, i] = tanh(p[i, j, k]) }",
        "define(q: f32[#k, #j, #i]) { out: f32[i, (k, j)] = q[k, j, i] + 1.0 }"}},
      {"TwoMatmuls",
       {f32("a", {6, 7}), f32("b", {7, 5}), f32("c", {5, 6})},
       {"define(a: f32[#i, #k], b: f32[#k, #j]) { t: f32[i, j] = sum(k) a[i, k] * b[k, j] }",
        "define(t: f32[#i, #j], c: f32[#j, #l]) { out: f32[i, l] = sum(j) t[i, j] * c[j, l] }"}},
      {"FirstOfTheLargest",
       {f32("x", {6, 14})},
       {"define(x: f32[#i, #j]) { out: i64[i] = fold(j) { from -inf, -1 take x[i, j], j by "
        "max(left.0, right.0), select(left.0 < right.0, right.1, left.1) }.1 }"}},
  };
}

/// A step that may be legal: names of what there is, small numbers.
Step random_step(const Schedule& schedule, const std::vector<Operand>& inputs, Rng& rng) {
  using enum Step::Primitive;
  std::vector<std::string> loops = {"nowhere"}, stages, operands;
  for (const Operand& input : inputs) operands.push_back(input.name);
  for (const tile::Nest& nest : schedule.nests()) {
    stages.push_back(nest.stage);
    operands.push_back(nest.stage);
    for (const tile::Loop& loop : nest.loops) loops.push_back(nest.stage + "/" + loop.name);
  }
  const auto any = [&](const std::vector<std::string>& from) {
    return from[static_cast<std::size_t>(rng.below(from.size()))];
  };
  const auto number = [&] { return static_cast<std::int64_t>(rng.below(6)); };
  const auto primitive = static_cast<Step::Primitive>(rng.below(15));
  switch (primitive) {
    case Split:
    case Cover:
    case Pipeline: return {primitive, {any(loops)}, {number()}};
    case Tile: return {primitive, {any(loops), any(loops)}, {number(), number()}};
    case Reorder: {
      Step step{primitive, {any(loops), any(loops)}, {}};
      if (rng.below(2) == 0) step.names.push_back(any(loops));
      return step;
    }
    case Fuse: return {primitive, {any(loops), any(loops)}, {}};
    case Skew: return {primitive, {any(loops), any(loops)}, {number()}};
    case ComputeAt: return {primitive, {any(stages), any(loops)}, {}};
    case CacheRead: return {primitive, {any(operands), any(loops)}, {}};
    case Tensorize: return {primitive, {any(stages)}, {}};
    case Fission:
    case Unroll:
    case Vectorize:
    case Parallel:
    case CacheWrite: return {primitive, {any(loops)}, {}};
  }
  return {};
}

class RandomSchedules : public ::testing::TestWithParam<Program> {};

/// Takes random steps; what is illegal says so. Counts the steps that were legal.
Schedule random_schedule(const Program& program, std::uint64_t seed, std::map<int, int>& legal) {
  Rng rng(seed);
  Schedule schedule = *Schedule::of(staged(program.inputs, program.stages));
  for (int i = 0; i < 60; ++i) {
    const Step step = random_step(schedule, program.inputs, rng);
    auto next = schedule.apply(step);
    if (!next) {
      EXPECT_EQ(next.error().id, "schedule-illegal") << tile::to_text({step});
      EXPECT_FALSE(next.error().message.empty());
      continue;
    }
    ++legal[static_cast<int>(step.primitive)];
    schedule = *std::move(next);
  }
  return schedule;
}

TEST_P(RandomSchedules, ComputeWhatTheDefinitionsSay) {
  const Program& program = GetParam();
  std::map<int, int> legal;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const Schedule schedule = random_schedule(program, seed, legal);
    expect_computes(schedule, program.inputs, By::Interpreter);
    if (seed % 20 == 0) expect_computes(schedule, program.inputs, By::MachineCode);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GE(legal.size(), 9u) << "primitives that were legal at least once";
}

TEST_P(RandomSchedules, ReadBackAsTheyArePrinted) {
  const Program& program = GetParam();
  std::map<int, int> legal;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Schedule schedule = random_schedule(program, seed, legal);
    const std::string text = to_text(schedule);
    const auto steps = tile::parse_schedule(text);
    ASSERT_TRUE(steps) << to_string(steps.error());
    EXPECT_EQ(*steps, schedule.steps());
    const auto again = Schedule::of(staged(program.inputs, program.stages))->apply(*steps);
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(loops_text(*again), loops_text(schedule));
    EXPECT_EQ(again->hash(), schedule.hash());
  }
}

INSTANTIATE_TEST_SUITE_P(Lower, RandomSchedules, ::testing::ValuesIn(programs()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tessera::lower
