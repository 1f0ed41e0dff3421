/// Schedules of fusion groups on GPUs: each point of a space can be lowered, is printed and parsed
/// back, and computes what the interpreter computes.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tessera/lower/group_schedule.h"
#include "tessera/program/plan.h"
#include "tessera/support/rng.h"
#include "tests/program/gpu_case.h"

namespace tessera::program {
namespace {

using lower::BlockContractionSchedule;
using lower::GroupSchedule;
using testing::parsed;
using testing::random_f32;

CompileOptions options_for(DType dtype, std::string_view architecture = "sm_90a") {
  CompileOptions options{.machine = machine::cuda(architecture), .contraction_dtype = dtype};
  return options;
}

/// The group of a graph that a contraction lowers, with its space.
struct ContractionGroup {
  std::shared_ptr<const Lowering> lowering;
  std::vector<lower::ScheduleCandidate> space;
};

ContractionGroup contraction_of(const Case& one) {
  const Graph graph = with_weights(parsed(one.graph), one.inputs, one.given);
  const auto optimized = passes::optimize(graph, {});
  Lowerings lowerings = lowerings_for(one.options);
  const auto draft = plan(optimized->graph, {.options = one.options, .lowerings = lowerings});
  EXPECT_TRUE(draft) << to_string(draft.error());
  if (!draft) return {};
  for (const CompileReport::Step& step : draft->report.steps)
    if (step.group != nullptr && step.group->made->schedule &&
        std::holds_alternative<BlockContractionSchedule>(*step.group->made->schedule))
      return {step.group, lower::schedule_space(step.group->group->group, lowerings.machine(),
                                                lowerings.options())};
  ADD_FAILURE() << "no contraction in " << one.graph;
  return {};
}

Expected<lower::GroupCode> lowered(const ContractionGroup& found, const Case& one,
                                   const GroupSchedule& schedule) {
  const Lowerings lowerings = lowerings_for(one.options);
  lower::GroupOptions how = lowerings.options();
  how.schedule = schedule;
  return lower::lower_group(found.lowering->group->group, lowerings.machine(), how);
}

/// Matmuls and convolutions of drawn sizes, small enough to be emulated.
std::vector<Case> drawn_cases(std::uint64_t seed, int count) {
  Rng rng(seed);
  const auto draw = [&](std::initializer_list<std::int64_t> sizes) {
    return sizes.begin()[rng.below(sizes.size())];
  };
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i) {
    const DType dtype = i % 4 == 3 ? DType::F32 : i % 4 == 2 ? DType::BF16 : DType::F16;
    const double tolerance = dtype == DType::F32 ? 1e-4 : dtype == DType::F16 ? 3e-2 : 3e-1;
    const CompileOptions options = options_for(dtype, i % 5 == 4 ? "sm_80" : "sm_90a");
    if (i % 2 == 0) {
      const std::int64_t m = draw({24, 64, 100, 128}), n = draw({32, 72, 128, 160}),
                         k = draw({64, 96, 200, 256});
      cases.push_back({fmt::format("graph(x: f32[{0}, {2}], w: f32[{2}, {1}], b: f32[{1}]) {{ "
                                   "return relu(add(matmul(x, w), b)) }}",
                                   m, n, k),
                       {random_f32({m, k}, 1), random_f32({k, n}, 2), random_f32({n}, 3)},
                       1,
                       options,
                       tolerance});
      continue;
    }
    const std::int64_t c = draw({16, 32, 48}), f = draw({24, 64}), size = draw({5, 8, 11}),
                       stride = draw({1, 2});
    cases.push_back(
        {fmt::format("graph(x: f32[1, {0}, {2}, {2}], w: f32[{1}, {0}, 3, 3]) {{ return "
                     "relu(conv(x, w) {{pads=[1, 1, 1, 1], strides=[{3}, {3}]}}) }}",
                     c, f, size, stride),
         {random_f32({1, c, size, size}, 1), random_f32({f, c, 3, 3}, 2)},
         1,
         options,
         tolerance});
  }
  return cases;
}

TEST(GpuSchedules, TheDefaultIsAPointOfTheSpace) {
  for (const Case& one : drawn_cases(1, 10)) {
    SCOPED_TRACE(one.graph);
    const ContractionGroup found = contraction_of(one);
    ASSERT_NE(found.lowering, nullptr);
    EXPECT_EQ(std::ranges::count(found.space, *found.lowering->made->schedule,
                                 &lower::ScheduleCandidate::schedule),
              1)
        << lower::to_text(*found.lowering->made->schedule);
  }
}

TEST(GpuSchedules, EachPointIsLoweredAndParsesBack) {
  std::size_t points = 0, refused = 0;
  std::string reasons;
  for (const Case& one : drawn_cases(2, 8)) {
    SCOPED_TRACE(one.graph);
    const ContractionGroup found = contraction_of(one);
    ASSERT_GT(found.space.size(), 4u);
    std::set<std::string> texts;
    Rng rng(3);
    for (const lower::ScheduleCandidate& point : found.space) {
      const std::string text = lower::to_text(point.schedule);
      EXPECT_TRUE(texts.insert(text).second) << text;
      const auto parsed_back = lower::parse_group_schedule(text);
      ASSERT_TRUE(parsed_back) << text << to_string(parsed_back.error());
      EXPECT_EQ(*parsed_back, point.schedule) << text;
      EXPECT_GT(point.cycles, 0) << text;
      if (rng.below(8) != 0) continue;
      ++points;
      const auto code = lowered(found, one, point.schedule);
      if (!code) {
        ++refused;
        reasons += fmt::format("{}: {}\n", text, code.error().message);
        EXPECT_EQ(code.error().id, "schedule-illegal") << text << to_string(code.error());
        continue;
      }
      EXPECT_EQ(code->schedule, point.schedule) << text;
    }
  }
  // The space knows accumulators and stages; form S knows all that a block holds.
  EXPECT_LT(refused, points / 4) << reasons;
}

/// Some points of the spaces of these cases compute what the interpreter computes.
void expect_points_compute(const std::vector<Case>& cases, int points, std::uint64_t seed) {
  Rng rng(seed);
  for (Case one : cases) {
    const ContractionGroup found = contraction_of(one);
    ASSERT_FALSE(found.space.empty()) << one.graph;
    for (int tries = 0, run = 0; run < points && tries < 10 * points; ++tries) {
      const GroupSchedule& schedule = found.space[rng.below(found.space.size())].schedule;
      if (!lowered(found, one, schedule)) continue;
      ++run;
      SCOPED_TRACE(one.graph + "\n" + lower::to_text(schedule));
      auto book = std::make_shared<ScheduleBook>();
      book->entries[found.lowering->key] = {schedule, ""};
      one.options.schedules = book;
      const CompileReport report = expect_same_on_gpu(one);
      EXPECT_EQ(report.scheduled_groups, 1u);
    }
  }
}

TEST(GpuSchedules, PointsComputeTheDefinition) {
  expect_points_compute(drawn_cases(4, 6), 3, 5);
}

TEST(SlowGpuSchedules, PointsComputeTheDefinition) {
  expect_points_compute(drawn_cases(14, 24), 4, 15);
  // Operands that are not packed, batches, tf32, strides, and sizes that fill no tile.
  CompileOptions tf32 = options_for(DType::F32);
  tf32.tf32 = true;
  const std::vector<Case> others = {
      {"graph(x: f32[70, 200], w: f32[200, 90]) { return matmul(x, w) }",
       {random_f32({70, 200}, 1), random_f32({200, 90}, 2)},
       2,
       options_for(DType::F16),
       3e-2},
      {"graph(x: f32[3, 40, 96], w: f32[3, 96, 64]) { return matmul(x, w) }",
       {random_f32({3, 40, 96}, 1), random_f32({3, 96, 64}, 2)},
       2,
       options_for(DType::F16),
       3e-2},
      {"graph(x: f32[100, 160], w: f32[160, 72]) { return relu(matmul(x, w)) }",
       {random_f32({100, 160}, 1), random_f32({160, 72}, 2)},
       1,
       tf32,
       3e-2},
      {"graph(x: f32[1, 3, 17, 17], w: f32[32, 3, 3, 3]) { return relu(conv(x, w) {pads=[1, 1, 1, "
       "1], strides=[2, 2]}) }",
       {random_f32({1, 3, 17, 17}, 1), random_f32({32, 3, 3, 3}, 2)},
       1,
       options_for(DType::F16),
       3e-2},
      {"graph(x: f32[2, 40, 7, 9], w: f32[56, 40, 1, 1], r: f32[2, 56, 7, 9]) { return relu(add("
       "conv(x, w), r)) }",
       {random_f32({2, 40, 7, 9}, 1), random_f32({56, 40, 1, 1}, 2), random_f32({2, 56, 7, 9}, 3)},
       1,
       options_for(DType::F16),
       3e-2},
      {"graph(x: f32[1, 512], w: f32[512, 130]) { return matmul(x, w) }",
       {random_f32({1, 512}, 1), random_f32({512, 130}, 2)},
       1,
       options_for(DType::F16),
       6e-2}};
  expect_points_compute(others, 8, 16);
}

TEST(GpuSchedules, GivenDefaultsAreTheSameProgram) {
  for (const Case& given : drawn_cases(6, 6)) {
    Case one = given;
    const ContractionGroup found = contraction_of(one);
    ASSERT_NE(found.lowering, nullptr);
    const Graph graph = with_weights(parsed(one.graph), one.inputs, one.given);
    const auto usual = compile(graph, one.options);
    auto book = std::make_shared<ScheduleBook>();
    book->entries[found.lowering->key] = {*found.lowering->made->schedule, ""};
    one.options.schedules = book;
    const auto again = compile(graph, one.options);
    ASSERT_TRUE(usual && again);
    EXPECT_EQ(again->report.scheduled_groups, 1u);
    EXPECT_TRUE(std::ranges::equal(usual->program.image.view(), again->program.image.view()));
    EXPECT_EQ(usual->program.steps, again->program.steps);
  }
}

/// Groups that other strategies lower: each point of their spaces, as far as a block has room for
/// it, computes the definition.
TEST(GpuSchedules, OtherStrategiesHaveSpacesToo) {
  const std::vector<std::pair<std::string, Case>> cases = {
      {"attention_tile",
       {"graph(q: f32[2, 24, 32], k: f32[2, 40, 32], v: f32[2, 40, 32]) { return matmul(softmax("
        "matmul(q, transpose(k) {perm=[0, 2, 1]})), v) }",
        {random_f32({2, 24, 32}, 1), random_f32({2, 40, 32}, 2), random_f32({2, 40, 32}, 3)},
        3,
        options_for(DType::F32),
        1e-3}},
      {"loops",
       {"graph(x: f32[3, 50, 40], y: f32[40]) { return relu(add(x, y)) }",
        {random_f32({3, 50, 40}, 1), random_f32({40}, 2)},
        2,
        options_for(DType::F32)}},
      {"loops",
       {"graph(x: f32[1, 32, 9, 9], w: f32[32, 1, 3, 3]) { return conv(relu(x), w) {group=32, "
        "pads=[1, 1, 1, 1]} }",
        {random_f32({1, 32, 9, 9}, 1), random_f32({32, 1, 3, 3}, 2)},
        1,
        options_for(DType::F32)}},
      {"loops",
       {"graph(x: f32[1, 16, 9, 9]) { return max_pool(relu(x)) {kernel_shape=[3, 3], strides=[2, "
        "2]}"
        " }",
        {random_f32({1, 16, 9, 9}, 1)},
        1,
        options_for(DType::F32)}}};
  for (const auto& [strategy, given] : cases) {
    SCOPED_TRACE(given.graph);
    Case one = given;
    const Graph graph = with_weights(parsed(one.graph), one.inputs, one.given);
    const auto optimized = passes::optimize(graph, {});
    Lowerings lowerings = lowerings_for(one.options);
    const auto draft = plan(optimized->graph, {.options = one.options, .lowerings = lowerings});
    ASSERT_TRUE(draft) << to_string(draft.error());
    std::size_t points = 0, legal = 0;
    for (const CompileReport::Step& step : draft->report.steps) {
      if (step.group == nullptr || !step.group->made->schedule ||
          !lower::to_text(*step.group->made->schedule).starts_with(strategy))
        continue;
      for (const lower::ScheduleCandidate& point : lower::schedule_space(
               step.group->group->group, lowerings.machine(), lowerings.options())) {
        ++points;
        const std::string text = lower::to_text(point.schedule);
        SCOPED_TRACE(text);
        const auto parsed_back = lower::parse_group_schedule(text);
        ASSERT_TRUE(parsed_back);
        EXPECT_EQ(*parsed_back, point.schedule);
        if (!lowered({step.group, {}}, one, point.schedule)) continue;
        ++legal;
        if (legal % 3 != 1) continue;
        auto book = std::make_shared<ScheduleBook>();
        book->entries[step.group->key] = {point.schedule, ""};
        one.options.schedules = book;
        EXPECT_EQ(expect_same_on_gpu(one).scheduled_groups, 1u);
      }
    }
    EXPECT_GT(points, 3u);
    EXPECT_GT(2 * legal, points);
  }
}

TEST(GpuSchedules, KStepsOfAWeightGradientAreBoxesOfTheBatchAndOfPixels) {
  const auto half = [](const std::vector<std::int64_t>& shape, std::uint64_t seed) {
    const Graph cast = parsed(fmt::format("graph(x: f32[{}]) {{ return cast(x) {{to=\"f16\"}} }}",
                                          fmt::join(shape, ", ")));
    return (*interp::run(cast, {{random_f32(shape, seed)}}, {}))[0].tensor();
  };
  using Producers = tile::BlockRequest::Producers;
  for (const char* const attributes :
       {"kernel_shape=[1, 3], pads=[0, 1, 0, 1]", "kernel_shape=[1, 1], strides=[2, 2]"}) {
    const bool strided = std::string_view(attributes).find("strides") != std::string_view::npos;
    const std::int64_t size = strided ? 12 : 6;
    Case one{fmt::format("graph(x: f16[16, 64, {0}, {0}], dy: f16[16, 128, 6, 6]) {{ "
                         "return conv_weight_gradient(x, dy) {{{1}}} }}",
                         size, attributes),
             {half({16, 64, size, size}, 1), half({16, 128, 6, 6}, 2)},
             2,
             options_for(DType::F16),
             3e-2};
    SCOPED_TRACE(one.graph);
    const ContractionGroup found = contraction_of(one);
    ASSERT_NE(found.lowering, nullptr);
    EXPECT_EQ(std::ranges::count(found.space, *found.lowering->made->schedule,
                                 &lower::ScheduleCandidate::schedule),
              1);
    std::set<Producers> run;
    for (const lower::ScheduleCandidate& point : found.space) {
      // Batch and rows are one axis of both operands.
      const auto& schedule = std::get<BlockContractionSchedule>(point.schedule);
      if (schedule.split != 1 || schedule.rows != std::vector<std::int64_t>{64} ||
          schedule.columns != 64 || schedule.sums != std::vector<std::int64_t>{32, 2} ||
          run.contains(schedule.block.producers) || !lowered(found, one, point.schedule))
        continue;
      run.insert(schedule.block.producers);
      SCOPED_TRACE(lower::to_text(point.schedule));
      auto book = std::make_shared<ScheduleBook>();
      book->entries[found.lowering->key] = {point.schedule, ""};
      one.options.schedules = book;
      EXPECT_EQ(expect_same_on_gpu(one).scheduled_groups, 1u);
      one.options.schedules = nullptr;
    }
    EXPECT_TRUE(run.contains(Producers::None));
    EXPECT_TRUE(run.contains(Producers::Async));
  }
}

TEST(GpuSchedules, SplitKAndRequestsOfBlocksAreInTheSpace) {
  const Case one{"graph(x: f32[64, 1024], w: f32[1024, 128]) { return matmul(x, w) }",
                 {random_f32({64, 1024}, 1), random_f32({1024, 128}, 2)},
                 1,
                 options_for(DType::F16)};
  const ContractionGroup found = contraction_of(one);
  std::set<std::int64_t> splits, stages, warps;
  std::set<tile::BlockRequest::Producers> producers;
  for (const lower::ScheduleCandidate& point : found.space) {
    const auto& schedule = std::get<BlockContractionSchedule>(point.schedule);
    splits.insert(schedule.split);
    stages.insert(schedule.block.stages);
    warps.insert(schedule.block.warps);
    producers.insert(schedule.block.producers);
  }
  EXPECT_GT(splits.size(), 3u);
  EXPECT_EQ(stages, (std::set<std::int64_t>{0, 2, 3, 4, 6}));
  EXPECT_EQ(warps, (std::set<std::int64_t>{0, 8}));
  EXPECT_EQ(producers.size(), 4u);
}

TEST(GpuSchedules, ExactSpacesKeepTheOrderOfAdditions) {
  Case one{"graph(x: f32[64, 1024], w: f32[1024, 128]) { return matmul(x, w) }",
           {random_f32({64, 1024}, 1), random_f32({1024, 128}, 2)},
           1,
           options_for(DType::F32)};
  one.options.passes.exact = true;
  const ContractionGroup found = contraction_of(one);
  const auto& usual = std::get<BlockContractionSchedule>(*found.lowering->made->schedule);
  EXPECT_EQ(usual.split, 1);
  for (const lower::ScheduleCandidate& point : found.space) {
    const auto& schedule = std::get<BlockContractionSchedule>(point.schedule);
    EXPECT_EQ(schedule.split, 1);
    EXPECT_EQ(schedule.sums, usual.sums);
  }
}

TEST(GpuSchedules, IllegalPointsAreDiagnosed) {
  const Case one{"graph(x: f32[100, 256], w: f32[256, 128]) { return matmul(x, w) }",
                 {random_f32({100, 256}, 1), random_f32({256, 128}, 2)},
                 1,
                 options_for(DType::F16)};
  const ContractionGroup found = contraction_of(one);
  ASSERT_NE(found.lowering, nullptr);
  const std::string end = " columns_outer=0 split_k=1 stages=0 warps=0 producers=0";
  for (
      const std::string& text : std::vector<std::string>{
          "block_contraction rows=48 columns=64 sums=64" + end,   // no power of two
          "block_contraction rows=256 columns=64 sums=64" + end,  // larger than the axis
          "block_contraction rows=64 columns=256 sums=64" + end,
          "block_contraction rows=64,1 columns=64 sums=64" + end,  // other axes
          "block_contraction rows=64 columns=64 sums=96" + end,
          "block_contraction rows=64 columns=64 sums=64 columns_outer=0 split_k=9 stages=0 warps=0 "
          "producers=0",
          // more stages than shared memory holds
          "block_contraction rows=128 columns=128 sums=256 columns_outer=0 split_k=1 stages=3 "
          "warps=0 producers=0",
          // tiles of 16 rows are not multiplied by warpgroups, which producers work for
          "block_contraction rows=16 columns=64 sums=64 columns_outer=0 split_k=1 stages=0 warps=0 "
          "producers=3",
          // a program of that size needs more warps
          "block_contraction rows=128 columns=128 sums=64 columns_outer=0 split_k=1 stages=0 "
          "warps=1 producers=0",
          "contraction rows=8 columns=64 sums=50 panel=32 columns_outer=0"}) {
    const auto schedule = lower::parse_group_schedule(text);
    ASSERT_TRUE(schedule) << text << to_string(schedule.error());
    const auto code = lowered(found, one, *schedule);
    ASSERT_FALSE(code) << text;
    EXPECT_EQ(code.error().id, "schedule-illegal") << text << to_string(code.error());
  }
  EXPECT_FALSE(lower::parse_group_schedule(
      "block_contraction rows=64 columns=64 sums=64 columns_outer=0 split_k=1 stages=0 warps=0 "
      "producers=4"));
  // Schedules of GPUs do not fit a CPU.
  const auto on_cpu = lower::lower_group(found.lowering->group->group, machine::host(),
                                         {.schedule = found.lowering->made->schedule});
  ASSERT_FALSE(on_cpu);
  EXPECT_EQ(on_cpu.error().id, "schedule-illegal");
}

}  // namespace
}  // namespace tessera::program
