#include "tessera/tune/explorer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/support/digest.h"
#include "tests/tune/example_task.h"

namespace tessera::tune {
namespace {

/// Synthetic time of a candidate, with its least at a tile of 48 rows and 96 columns.
double synthetic_ratio(const GroupTask& task, std::size_t i) {
  const auto& s = std::get<lower::ContractionSchedule>(task.schedules[i]);
  const auto off = [](std::int64_t x, double best) {
    return std::abs(std::log2(static_cast<double>(x) / best));
  };
  return 0.5 + 0.1 * off(s.rows[0], 48) + 0.1 * off(s.columns, 96) + 0.05 * off(s.panel, 32) +
         (s.columns_outer ? 0.02 : 0);
}

TEST(Explorer, GivesEveryCandidateOnce) {
  const GroupTask task = matmul_task(24, 64, 16);
  Explorer explorer(task, std::vector<double>(task.space.size(), 0.0), 1);
  std::set<std::size_t> seen;
  while (true) {
    const std::vector<std::size_t> batch = explorer.next_batch(8);
    if (batch.empty()) break;
    for (const std::size_t i : batch) {
      EXPECT_TRUE(seen.insert(i).second) << i;
      explorer.record(i, i % 3 == 0 ? std::nullopt : std::optional(1.0));
    }
  }
  EXPECT_EQ(seen.size(), task.space.size());
}

TEST(Explorer, TheSameSeedGivesTheSameBatches) {
  const GroupTask task = matmul_task();
  std::vector<std::vector<std::size_t>> found;
  for (const std::uint64_t seed : {7, 7, 8}) {
    Explorer explorer(task, std::vector<double>(task.space.size(), 0.0), seed);
    std::vector<std::size_t> all;
    for (int round = 0; round < 4; ++round)
      for (const std::size_t i : explorer.next_batch(8)) {
        explorer.record(i, synthetic_ratio(task, i));
        all.push_back(i);
      }
    found.push_back(all);
  }
  EXPECT_EQ(found[0], found[1]);
  EXPECT_NE(found[0], found[2]);
}

TEST(Explorer, LearnsFromMeasurementsWherePredictionsAreWrong) {
  const GroupTask task = matmul_task();
  ASSERT_GT(task.space.size(), 100u);
  double best = 10;
  for (std::size_t i = 0; i < task.space.size(); ++i)
    best = std::min(best, synthetic_ratio(task, i));
  // Predictions say nothing; 48 of more than a hundred candidates are measured.
  Explorer explorer(task, std::vector<double>(task.space.size(), 0.0), 3);
  for (int round = 0; round < 6; ++round)
    for (const std::size_t i : explorer.next_batch(8)) explorer.record(i, synthetic_ratio(task, i));
  ASSERT_TRUE(explorer.best());
  EXPECT_LT(explorer.best()->second, 1.08 * best);
}

TEST(Explorer, MeasuresTheBestPredictionsFirst) {
  const GroupTask task = matmul_task();
  std::vector<double> predicted;
  for (std::size_t i = 0; i < task.space.size(); ++i)
    predicted.push_back(std::log(synthetic_ratio(task, i)));
  const auto best =
      static_cast<std::size_t>(std::ranges::min_element(predicted) - predicted.begin());
  Explorer explorer(task, predicted, 1);
  const std::vector<std::size_t> batch = explorer.next_batch(8);
  EXPECT_EQ(std::ranges::count(batch, best), 1);
}

}  // namespace
}  // namespace tessera::tune
