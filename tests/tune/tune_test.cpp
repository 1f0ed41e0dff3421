#include "tessera/tune/tune.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>

#include "tessera/support/digest.h"
#include "tests/support/command.h"
#include "tests/tune/example_task.h"

namespace tessera::tune {
namespace {

using Status = CandidateTiming::Status;

/// Meter without a clock: the time of a schedule is a hash of its text, or a given one.
class FakeMeter : public Meter {
 public:
  explicit FakeMeter(std::vector<const Task*> tasks) : tasks_(std::move(tasks)) {}

  double fastest = 0.6;                         // ratio of the fastest schedules
  double uncertainty = 0.01;                    // half of the confidence interval
  std::optional<std::string> only_faster = {};  // all others are slower than the default
  std::size_t measured = 0, thorough = 0;
  std::atomic<bool>* stop_after_first = nullptr;
  std::function<void()> after_batch = {};

  double ratio_of(const Task& task, std::size_t candidate) const {
    const std::string& schedule = task.space[candidate].schedule;
    if (candidate == task.usual) return 1;
    if (only_faster) return schedule == *only_faster ? fastest : 1.5;
    const std::string text = digest(schedule);
    return fastest + static_cast<double>(std::stoul(text.substr(0, 4), nullptr, 16)) / 65536;
  }
  static bool crashes(const Task& task, std::size_t candidate) {
    return candidate != task.usual && digest(task.space[candidate].schedule).back() == '0';
  }
  std::vector<CandidateTiming> measure(std::size_t of, std::span<const std::size_t> candidates,
                                       Effort effort) override {
    const Task& task = *tasks_[of];
    std::vector<CandidateTiming> result;
    for (const std::size_t candidate : candidates) {
      ++(effort == Effort::Quick ? measured : thorough);
      const double ratio = ratio_of(task, candidate);
      result.push_back({.timing = {.seconds = 1e-3 * ratio,
                                   .ratio = ratio,
                                   .low = ratio - uncertainty,
                                   .high = ratio + uncertainty,
                                   .samples = 10}});
      if (crashes(task, candidate)) result.back() = {.status = Status::Crashed};
    }
    if (stop_after_first != nullptr && candidates.size() > 1) *stop_after_first = true;
    if (after_batch && candidates.size() > 1) after_batch();
    return result;
  }

 private:
  std::vector<const Task*> tasks_;
};

class Tune : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(store_.put(cost::Target(target_))); }
  TuneResult tuned(const TuneOptions& options) {
    auto result = tune(pointers_, meter_, store_, target_.name, options);
    EXPECT_TRUE(result);
    return result ? *std::move(result) : TuneResult{};
  }
  const cost::Target target_ = cost::target_of(machine::host(), 1);
  cost::Store store_ = *cost::Store::open({});
  const std::vector<GroupTask> tasks_ = {matmul_task(), matmul_task(32, 64, 32)};
  const std::vector<const Task*> pointers_ = {&tasks_[0], &tasks_[1]};
  FakeMeter meter_{pointers_};
};

TEST_F(Tune, ChoosesAFasterScheduleAndStoresEveryMeasurement) {
  const TuneResult result = tuned({.most_trials = 64});
  std::size_t trials = 0;
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    const TaskResult& task = result.tasks[t];
    trials += task.trials.size();
    ASSERT_TRUE(task.chosen);
    EXPECT_LT(task.ratio, 0.9);
    for (const Trial& trial : task.trials)
      if (trial.ratio > 0) {
        EXPECT_GE(trial.ratio, 0.96 * task.ratio);
      }
  }
  EXPECT_GE(trials, 64u);
  const auto stored = store_.schedules(target_.name);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->size(), trials);
  const auto book = tuned_schedules(store_, target_.name);
  ASSERT_TRUE(book);
  EXPECT_EQ(book->entries.size(), 2u);
  EXPECT_EQ(book->entries.at(tasks_[0].key).schedule, tasks_[0].schedules[*result.tasks[0].chosen]);
}

TEST_F(Tune, TunesForAGpuByRecordedMeasurements) {
  const machine::Machine gpu = machine::cuda();
  const cost::Target target = cost::target_of(gpu, 1);
  EXPECT_EQ(target, cost::target_of(gpu, 8));
  ASSERT_TRUE(store_.put(cost::Target(target)));
  const std::vector<GroupTask> tasks = {gpu_task(), gpu_task(32, 64, 512)};
  const std::vector<const Task*> pointers = {&tasks[0], &tasks[1]};
  const auto run = [&](cost::Store& store) {
    FakeMeter meter(pointers);
    const auto result = tune(pointers, meter, store, target.name, {.most_trials = 48, .seed = 7});
    EXPECT_TRUE(result);
    return tuned_schedules(store, target.name)->entries;
  };
  const auto chosen = run(store_);
  EXPECT_EQ(chosen.size(), 2u);
  for (const GroupTask& task : tasks) {
    const auto found = chosen.find(task.key);
    ASSERT_NE(found, chosen.end());
    EXPECT_TRUE(std::holds_alternative<lower::BlockContractionSchedule>(found->second.schedule));
  }
  cost::Store again = *cost::Store::open({});
  ASSERT_TRUE(again.put(cost::Target(target)));
  EXPECT_EQ(run(again), chosen);
  machine::Machine other = gpu;
  other.gpu->multiprocessors = 114;
  EXPECT_TRUE(tuned_schedules(store_, cost::target_of(other, 1).name)->entries.empty());
}

TEST_F(Tune, KeepsTheDefaultWhereTheGainIsWithinTheNoise) {
  meter_.uncertainty = 1;
  const TuneResult result = tuned({.most_trials = 64});
  for (const TaskResult& task : result.tasks) EXPECT_FALSE(task.chosen);
  EXPECT_GT(meter_.thorough, 0u);
  EXPECT_TRUE(tuned_schedules(store_, target_.name)->entries.empty());
}

TEST_F(Tune, KeepsTheDefaultWhereNothingIsFaster) {
  meter_.fastest = 1.02;
  const TuneResult result = tuned({.most_trials = 64});
  for (const TaskResult& task : result.tasks) EXPECT_FALSE(task.chosen);
  EXPECT_EQ(meter_.thorough, 0u);
}

TEST_F(Tune, DoesNotStoreTheDefaultAsACandidate) {
  const TuneResult survey = tuned({.most_trials = 32});
  const auto measured = std::ranges::find_if(survey.tasks[0].trials,
                                             [](const Trial& trial) { return trial.ratio > 0; });
  ASSERT_NE(measured, survey.tasks[0].trials.end());
  meter_.only_faster = tasks_[0].space[measured->candidate].schedule;
  meter_.thorough = 0;
  store_ = *cost::Store::open({});
  ASSERT_TRUE(store_.put(cost::Target(target_)));
  const TuneResult result = tuned({.most_trials = 64});
  EXPECT_EQ(result.tasks[0].chosen, measured->candidate);
  EXPECT_EQ(meter_.thorough, 1u);
  std::size_t trials = 0;
  for (const TaskResult& task : result.tasks) trials += task.trials.size();
  EXPECT_EQ(store_.schedules(target_.name)->size(), trials);
}

TEST_F(Tune, ResumesWithoutMeasuringAgain) {
  tuned({.most_trials = 32});
  const std::size_t before = store_.schedules(target_.name)->size();
  const TuneResult again = tuned({.most_trials = 32});
  std::size_t known = 0, trials = 0;
  for (const TaskResult& task : again.tasks) {
    known += task.known;
    trials += task.trials.size();
    EXPECT_TRUE(task.chosen);  // that of the first time, or a faster one
  }
  EXPECT_EQ(known, before);
  EXPECT_EQ(store_.schedules(target_.name)->size(), before + trials);
}

TEST_F(Tune, MeasuresOneBatchWhereTheBudgetIsSpentOnTheDefaults) {
  const TuneResult first = tuned({.seconds = 0}), second = tuned({.seconds = 0});
  for (const TuneResult* result : {&first, &second}) {
    EXPECT_EQ(result->end, TuneResult::End::Budget);
    EXPECT_EQ(result->tasks[0].trials.size() + result->tasks[1].trials.size(), 8u);
  }
  EXPECT_EQ(store_.schedules(target_.name)->size(), 16u);
}

TEST_F(Tune, GivesUpAChoiceThatIsNotConfirmedAgain) {
  for (const TaskResult& task : tuned({.most_trials = 32}).tasks) ASSERT_TRUE(task.chosen);
  meter_.fastest = 0.2;  // candidates that seem faster than the chosen one
  meter_.uncertainty = 1;
  const TuneResult again = tuned({.most_trials = 64});
  for (const TaskResult& task : again.tasks) {
    EXPECT_FALSE(task.chosen);
    EXPECT_EQ(task.ratio, 1);
  }
  EXPECT_TRUE(tuned_schedules(store_, target_.name)->entries.empty());
}

TEST_F(Tune, CandidatesThatCrashCostThemselvesAlone) {
  const TuneResult result = tuned({.most_trials = 200});
  std::size_t failed = 0;
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    const TaskResult& task = result.tasks[t];
    failed += task.failed;
    ASSERT_TRUE(task.chosen);
    EXPECT_FALSE(FakeMeter::crashes(tasks_[t], *task.chosen));
  }
  EXPECT_GT(failed, 0u);
}

TEST_F(Tune, TheSameMeasurementsAndSeedGiveTheSameChoices) {
  const TuneResult first = tuned({.most_trials = 48, .seed = 5});
  store_ = *cost::Store::open({});
  ASSERT_TRUE(store_.put(cost::Target(target_)));
  const TuneResult second = tuned({.most_trials = 48, .seed = 5});
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    EXPECT_EQ(first.tasks[t].chosen, second.tasks[t].chosen);
    ASSERT_EQ(first.tasks[t].trials.size(), second.tasks[t].trials.size());
    for (std::size_t i = 0; i < first.tasks[t].trials.size(); ++i)
      EXPECT_EQ(first.tasks[t].trials[i].candidate, second.tasks[t].trials[i].candidate);
  }
}

TEST_F(Tune, StopsAndKeepsWhatWasMeasured) {
  std::atomic<bool> stop = false;
  meter_.stop_after_first = &stop;
  const TuneResult result = tuned({.seconds = 600, .stop = &stop});
  EXPECT_EQ(result.end, TuneResult::End::Stopped);
  EXPECT_EQ(store_.schedules(target_.name)->size(), 8u);
}

/// Tuning with a store in a file.
class TuneFaults : public Tune {
 protected:
  void SetUp() override {
    store_ = *cost::Store::open(file_);
    Tune::SetUp();
  }
  const testing::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "store.sqlite";
};

TEST_F(TuneFaults, AFullDiskIsADiagnosticAndKeepsWhatWasMeasured) {
  // A limit of the size of files stands for the end of the disk.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = ::signal(SIGXFSZ, SIG_IGN);
  std::size_t batches = 0, stored = 0;
  meter_.after_batch = [&] {
    if (++batches != 4) return;
    stored = store_.schedules(target_.name)->size();
    const rlimit full{.rlim_cur = 8192, .rlim_max = before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &full);
  };
  const auto result = tune(pointers_, meter_, store_, target_.name, {.most_trials = 400});
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().id, "store-unusable") << result.error().message;
  EXPECT_GE(stored, 8u);
  store_ = *cost::Store::open({});
  const auto again = cost::Store::open(file_);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->schedules(target_.name)->size(), stored);
}

TEST_F(TuneFaults, AStoreThatIsDamagedMidwayIsADiagnostic) {
  std::size_t batches = 0;
  meter_.after_batch = [&] {
    if (++batches != 4) return;
    // Another process replaces the pages of the tables.
    std::fstream out(file_, std::ios::in | std::ios::out | std::ios::binary);
    const std::string garbage(std::filesystem::file_size(file_), '\x5a');
    out.write(garbage.data(), static_cast<std::streamsize>(garbage.size()));
  };
  const auto result = tune(pointers_, meter_, store_, target_.name, {.most_trials = 400});
  if (!result) {
    EXPECT_EQ(result.error().id.substr(0, 6), "store-") << result.error().message;
  }
  store_ = *cost::Store::open({});
  const auto again = cost::Store::open(file_);
  if (!again) {
    EXPECT_EQ(again.error().id.substr(0, 6), "store-") << again.error().message;
  }
  EXPECT_TRUE(!result || again);  // success is never claimed for a store that is lost
}

TEST_F(Tune, EndsWhenTheSpacesAreExhausted) {
  const TuneResult result = tuned({.most_trials = 1'000'000});
  EXPECT_EQ(result.end, TuneResult::End::Exhausted);
  for (std::size_t t = 0; t < tasks_.size(); ++t)  // the default is known
    EXPECT_EQ(result.tasks[t].trials.size() + 1, tasks_[t].space.size());
}

}  // namespace
}  // namespace tessera::tune
