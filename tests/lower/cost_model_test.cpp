#include "tessera/lower/cost_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tessera/lower/schedule_features.h"
#include "tests/lower/run_group.h"

namespace tessera::lower {
namespace {

std::string malformed_reason(const std::string& text) {
  const auto model = TreeModel::parse(text);
  return model ? "" : model.error().message;
}

TEST(TreeModel, AddsTheLeavesThatFeaturesLeadTo) {
  const auto model = TreeModel::parse(
      "model tiny\nfeatures a b\nbase 0.5\ntree 0,1.5,1,2 1,0,3,4 10 20 30\ntree -1\n");
  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_EQ(model->name(), "tiny");
  EXPECT_EQ(model->features(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(model->tree_count(), 2u);
  EXPECT_EQ(model->predict(std::vector<float>{1, -1}), 0.5F + 20 - 1);
  EXPECT_EQ(model->predict(std::vector<float>{1, 0}), 0.5F + 30 - 1);  // not below the threshold
  EXPECT_EQ(model->predict(std::vector<float>{1.5, 0}), 0.5F + 10 - 1);
  EXPECT_EQ(model->predict_all(std::vector<std::vector<float>>{{1, -1}, {1.5, 0}}),
            (std::vector<float>{0.5F + 20 - 1, 0.5F + 10 - 1}));
}

TEST(TreeModel, MalformedTextIsDiagnosed) {
  for (const std::string text :
       {"", "features a\n", "features a\nbase x\ntree 1\n", "features a\ntree\n",
        "features a\ntree 0,1,1,2 1\n", "features a\ntree 1,1,1,2 1 2\n",
        "features a\ntree 0,1,0,2 1 2\n", "features a\ntree 0,1,1 1 2\n", "features a\ntree x\n",
        "forest\n"})
    EXPECT_FALSE(malformed_reason(text).empty()) << text;
}

/// Files of tests/lower/data have feature vectors and what XGBoost predicts for them.
TEST(TreeModel, PredictsAsXgboostDoes) {
  const std::pair<std::string_view, std::string> files[] = {{"x86-64-avx512", "predictions.txt"},
                                                            {"sm_90a", "gpu_predictions.txt"}};
  for (const auto& [name, predictions] : files) {
    SCOPED_TRACE(name);
    const auto models = shipped_cost_models();
    const auto file = std::ranges::find(models, name, &ShippedCostModel::name);
    ASSERT_NE(file, models.end());
    const auto model = TreeModel::parse(file->text);
    ASSERT_TRUE(model) << to_string(model.error());
    std::ifstream in(TESSERA_SOURCE_DIR "/tests/lower/data/" + predictions);
    std::size_t rows = 0;
    for (std::string line; std::getline(in, line); ++rows) {
      std::istringstream words(line);
      float expected = 0;
      words >> expected;
      std::vector<float> features;
      for (float value = 0; words >> value;) features.push_back(value);
      ASSERT_EQ(features.size(), model->features().size());
      EXPECT_NEAR(model->predict(features), expected, 1e-5) << rows;
    }
    EXPECT_GE(rows, 30u);
  }
}

TEST(CostModels, ShippedOnesAreSmallAndHaveTheFeaturesOfThisBuild) {
  for (const ShippedCostModel& one : shipped_cost_models()) {
    EXPECT_LT(one.text.size(), std::size_t{1} << 20);
    const auto model = TreeModel::parse(one.text);
    ASSERT_TRUE(model) << one.name;
    EXPECT_TRUE(std::ranges::equal(model->features(), panel_feature_names()) ||
                std::ranges::equal(model->features(), block_feature_names()));
  }
}

machine::Machine avx512() {
  machine::Machine machine = *machine::named("sapphirerapids");
  machine.cores = 1;
  return machine;
}

Group convolution_group() {
  return {staged({f32("a", {1, 28, 28, 64}), f32("w", {96, 64, 3, 3})},
                 {"define(a: f32[1, 28, 28, 64], w: f32[96, 64, 3, 3]) { out: f32[n: 1, y: 28, x: "
                  "28, f: 96] = sum(c: 64, r: 3, s: 3) { (a[n, y + r - 1, x + s - 1, c] else 0.0) "
                  "* w[f, c, r, s] } }"}),
          {"out"},
          {"w"}};
}

TEST(CostModels, RankContractionsOfF32InOneThread) {
  machine::Machine machine = avx512();
  EXPECT_NE(cost_model_for(machine, {}), nullptr);
  EXPECT_EQ(cost_model_for(machine, {.contraction_dtype = DType::BF16}), nullptr);
  machine.cores = 2;
  EXPECT_EQ(cost_model_for(machine, {}), nullptr);
  EXPECT_EQ(cost_model_for(*machine::named("neoverse-v1"), {}), nullptr);
  EXPECT_EQ(cost_model_for(*machine::named("haswell"), {}), nullptr);
  EXPECT_EQ(cost_model_for(machine::cuda(), {}), nullptr);
}

TEST(CostModels, RankContractionsOf16BitFloatsOnHopper) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    EXPECT_NE(cost_model_for(machine::cuda("sm_90a"), {.contraction_dtype = dtype}), nullptr);
    EXPECT_EQ(cost_model_for(machine::cuda("sm_80"), {.contraction_dtype = dtype}), nullptr);
  }
  machine::Machine gpu = machine::cuda("sm_90a");
  EXPECT_EQ(cost_model_for(gpu, {.tf32 = true}), nullptr);
  gpu.gpu->multiprocessors = 2;  // far from what was measured
  EXPECT_EQ(cost_model_for(gpu, {.contraction_dtype = DType::F16}), nullptr);
}

/// Matmul of f16 whose columns or reduction may be no multiples of anything.
Group half_matmul(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {
      staged({{"a", DType::F16, {Dim(m), Dim(k)}}, {"w", DType::F16, {Dim(k), Dim(n)}}},
             {fmt::format("define(a: f16[{0}, {2}], w: f16[{2}, {1}]) {{ out: f16[i: {0}, j: {1}] "
                          "= sum(k: {2}) {{ a[i, k] * w[k, j] }} }}",
                          m, n, k)}),
      {"out"},
      {"w"}};
}

TEST(CostModels, EveryCandidateOfAGpuContractionHasFeatures) {
  const machine::Machine gpu = machine::cuda("sm_90a");
  const GroupOptions options{.contraction_dtype = DType::F16};
  for (const auto& [m, n, k] : {std::array{512, 256, 1024}, {1, 1000, 2048}, {37, 29, 33}}) {
    const Group group = half_matmul(m, n, k);
    const auto features = schedule_features(group, gpu, options);
    ASSERT_NE(features, nullptr);
    EXPECT_EQ(features->work(), static_cast<double>(m) * n * k);
    std::size_t count = 0;
    for (const ScheduleCandidate& one : schedule_space(group, gpu, options)) {
      if (!std::holds_alternative<BlockContractionSchedule>(one.schedule)) continue;
      const auto vector = (*features)(one.schedule);
      ASSERT_TRUE(vector) << to_text(one.schedule);
      ASSERT_EQ(vector->size(), block_feature_names().size());
      for (const float value : *vector) EXPECT_TRUE(std::isfinite(value)) << to_text(one.schedule);
      ++count;
    }
    EXPECT_GT(count, 10u);
    EXPECT_FALSE((*features)(RowsSchedule{{1}}));
    EXPECT_FALSE((*features)(ContractionSchedule{}));
    EXPECT_FALSE((*features)(BlockContractionSchedule{.rows = {16}, .columns = 16, .sums = {0}}));
  }
}

TEST(CostModels, TheLearnedScheduleOfAGpuIsLegalAndDeterministic) {
  const machine::Machine gpu = machine::cuda("sm_90a");
  GroupOptions options{.contraction_dtype = DType::F16};
  std::size_t learned = 0;
  for (const auto& [m, n, k] :
       {std::array{512, 256, 1024}, {64, 1000, 2048}, {37, 29, 333}, {4096, 4096, 512}}) {
    const Group group = half_matmul(m, n, k);
    const auto usual = analytic_schedule(group, gpu, options);
    ASSERT_TRUE(usual);
    options.schedule.reset();
    const auto chosen = learned_schedule(group, gpu, options);
    EXPECT_EQ(chosen, learned_schedule(group, gpu, options));
    const auto code = lower_group(group, gpu, options);
    ASSERT_TRUE(code && code->schedule) << m;
    EXPECT_EQ(*code->schedule, chosen ? *chosen : *usual) << m;
    learned += chosen ? 1 : 0;
  }
  EXPECT_GE(learned, 2u);
  // Another order of additions is another result.
  options = {.exact = true, .contraction_dtype = DType::F16};
  EXPECT_FALSE(learned_schedule(half_matmul(64, 1000, 2048), gpu, options));
}

TEST(CostModels, EveryCandidateOfAConvolutionHasFeatures) {
  const Group group = convolution_group();
  const auto features = schedule_features(group, avx512(), {});
  ASSERT_TRUE(features);
  EXPECT_EQ(features->work(), 28.0 * 28 * 64 * 96 * 9);
  std::set<std::size_t> strategies;
  for (const ScheduleCandidate& one : schedule_space(group, avx512(), {})) {
    const auto vector = (*features)(one.schedule);
    ASSERT_TRUE(vector) << to_text(one.schedule);
    ASSERT_EQ(vector->size(), panel_feature_names().size());
    for (const float value : *vector) EXPECT_TRUE(std::isfinite(value)) << to_text(one.schedule);
    strategies.insert(one.schedule.index());
  }
  EXPECT_EQ(strategies.size(), 2u);
  EXPECT_FALSE((*features)(RowsSchedule{{1}}));
}

/// Convolution with a window of one pixel: rows of 83 x 9 pixels, so that most tiles of rows leave
/// a remainder.
Group pointwise_group(std::int64_t filters) {
  return {staged({f32("a", {1, 83, 9, 24}), f32("w", {filters, 24})},
                 {fmt::format("define(a: f32[1, 83, 9, 24], w: f32[{0}, 24]) {{ out: f32[n: 1, y: "
                              "83, x: 9, f: {0}] = sum(c: 24) {{ a[n, y, x, c] * w[f, c] }} }}",
                              filters)}),
          {"out"},
          {"w"}};
}

/// Feature of a contraction with one tile of columns, by the width of its panels.
float partial_panel(std::int64_t filters, std::int64_t panel) {
  const Group group = pointwise_group(filters);
  const auto features = schedule_features(group, avx512(), {});
  const auto vector = (*features)(
      ContractionSchedule{.rows = {1, 1, 9}, .columns = filters, .sums = {24}, .panel = panel});
  const auto at = std::ranges::find(panel_feature_names(), "partial_panel");
  return vector ? (*vector)[static_cast<std::size_t>(at - panel_feature_names().begin())] : -1;
}

TEST(CostModels, FeaturesTellWhichColumnsAreStoredThroughScratch) {
  EXPECT_FLOAT_EQ(partial_panel(64, 32), 0);
  EXPECT_FLOAT_EQ(partial_panel(80, 32), 0);  // the last panel has one whole vector
  EXPECT_FLOAT_EQ(partial_panel(24, 32), 1);
  EXPECT_FLOAT_EQ(partial_panel(24, 16), 8.0F / 24);
}

TEST(CostModels, TheModelRanksEveryTileOfRows) {
  const Group group = pointwise_group(176);
  std::vector<ScheduleCandidate> firsts;  // lowest estimates of the tiles of rows
  for (const ScheduleCandidate& one : contraction_space(group, avx512(), {})) {
    const auto rows_of = [](const ScheduleCandidate& candidate) {
      return std::get<ContractionSchedule>(candidate.schedule).rows;
    };
    if (std::ranges::find(firsts, rows_of(one), rows_of) == firsts.end()) firsts.push_back(one);
  }
  ASSERT_GT(firsts.size(), 8u);
  const auto code = lower_group(group, avx512());
  ASSERT_TRUE(code && code->schedule);
  firsts.push_back({*code->schedule, 0});
  const auto times = predicted_times(group, avx512(), {}, firsts);
  constexpr double kLeastGain = 0.05;
  for (std::size_t i = 0; i < firsts.size(); ++i)
    EXPECT_LE(*times.back(), *times[i] + kLeastGain) << to_text(firsts[i].schedule);
}

TEST(CostModels, TheDefaultIsTheChoiceOfTheModelAndTheSameEveryTime) {
  const Group group = convolution_group();
  const auto learned = learned_schedule(group, avx512(), {});
  const auto code = lower_group(group, avx512());
  ASSERT_TRUE(code && code->schedule);
  if (learned) {
    EXPECT_EQ(*code->schedule, *learned);
  }
  EXPECT_EQ(learned, learned_schedule(group, avx512(), {}));
}

TEST(CostModels, ExactChoicesKeepTheOrderOfAdditions) {
  const auto exact = lower_group(convolution_group(), avx512(), {.exact = true});
  ASSERT_TRUE(exact && exact->schedule);
  EXPECT_TRUE(std::holds_alternative<ContractionSchedule>(*exact->schedule));
}

}  // namespace
}  // namespace tessera::lower
