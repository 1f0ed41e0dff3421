#include "tessera/lower/cost_model.h"

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
}

TEST(TreeModel, MalformedTextIsDiagnosed) {
  for (const std::string text :
       {"", "features a\n", "features a\nbase x\ntree 1\n", "features a\ntree\n",
        "features a\ntree 0,1,1,2 1\n", "features a\ntree 1,1,1,2 1 2\n",
        "features a\ntree 0,1,0,2 1 2\n", "features a\ntree 0,1,1 1 2\n", "features a\ntree x\n",
        "forest\n"})
    EXPECT_FALSE(malformed_reason(text).empty()) << text;
}

/// tests/lower/data/predictions.txt has feature vectors and what XGBoost predicts for them.
TEST(TreeModel, PredictsAsXgboostDoes) {
  const auto models = shipped_cost_models();
  const auto file = std::ranges::find(models, "x86-64-avx512", &ShippedCostModel::name);
  ASSERT_NE(file, models.end());
  const auto model = TreeModel::parse(file->text);
  ASSERT_TRUE(model) << to_string(model.error());
  std::ifstream in(TESSERA_SOURCE_DIR "/tests/lower/data/predictions.txt");
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

TEST(CostModels, ShippedOnesAreSmallAndHaveTheFeaturesOfThisBuild) {
  for (const ShippedCostModel& one : shipped_cost_models()) {
    EXPECT_LT(one.text.size(), std::size_t{1} << 20);
    const auto model = TreeModel::parse(one.text);
    ASSERT_TRUE(model) << one.name;
    EXPECT_TRUE(std::ranges::equal(model->features(), ScheduleFeatures::names()));
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

TEST(CostModels, EveryCandidateOfAConvolutionHasFeatures) {
  const Group group = convolution_group();
  const auto features = ScheduleFeatures::of(group, avx512(), {});
  ASSERT_TRUE(features);
  EXPECT_EQ(features->work(), 28.0 * 28 * 64 * 96 * 9);
  std::set<std::size_t> strategies;
  for (const ScheduleCandidate& one : schedule_space(group, avx512(), {})) {
    const auto vector = (*features)(one.schedule);
    ASSERT_TRUE(vector) << to_text(one.schedule);
    ASSERT_EQ(vector->size(), ScheduleFeatures::names().size());
    for (const float value : *vector) EXPECT_TRUE(std::isfinite(value)) << to_text(one.schedule);
    strategies.insert(one.schedule.index());
  }
  EXPECT_EQ(strategies.size(), 2u);
  EXPECT_FALSE((*features)(RowsSchedule{{1}}));
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
