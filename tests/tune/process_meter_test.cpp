#include "tessera/tune/process_meter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "tessera/support/digest.h"
#include "tests/tune/example_task.h"

namespace tessera::tune {
namespace {

using Status = CandidateTiming::Status;

std::vector<std::size_t> some_of(const GroupTask& task, std::size_t count) {
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < count; ++i) candidates.push_back(i * task.space.size() / count);
  return candidates;
}

std::vector<CandidateTiming> measured(const GroupTask& task,
                                      const std::vector<std::size_t>& candidates,
                                      const ProcessMeterOptions& options) {
  return process_meter(std::span(&task, 1), options)->measure(0, candidates, Meter::Effort::Quick);
}

/// Few runs of each candidate; workers may take as long as the machine needs to compile.
ProcessMeterOptions quick() {
  return {.code = {.threads = 1}, .seconds_per_candidate = 0.001, .timeout_seconds = 3600};
}

bool has(std::span<const std::shared_ptr<const lower::GroupCode>> codes,
         const lower::GroupSchedule& schedule) {
  return std::ranges::any_of(codes, [&](const auto& code) { return code->schedule == schedule; });
}

TEST(ProcessMeter, MeasuresSchedulesAgainstTheDefault) {
  const GroupTask task = matmul_task();
  const auto timings = measured(task, some_of(task, 3), quick());
  ASSERT_EQ(timings.size(), 3u);
  for (const CandidateTiming& one : timings) {
    EXPECT_EQ(one.status, Status::Measured);
    EXPECT_GT(one.timing.seconds, 0);
    EXPECT_GT(one.timing.ratio, 0);
    EXPECT_LE(one.timing.low, one.timing.high);
    EXPECT_GE(one.timing.samples, 7);
  }
}

TEST(ProcessMeter, IllegalSchedulesAreToldApart) {
  GroupTask task = matmul_task();
  const std::vector<std::size_t> candidates = some_of(task, 3);
  ASSERT_NE(candidates[1], task.usual);
  task.schedules[candidates[1]] = lower::RowsSchedule{{1}};
  const auto timings = measured(task, candidates, quick());
  EXPECT_EQ(timings[0].status, Status::Measured);
  EXPECT_EQ(timings[1].status, Status::Illegal);
  EXPECT_EQ(timings[2].status, Status::Measured);
}

TEST(ProcessMeter, ACrashCostsOneCandidate) {
  const GroupTask task = matmul_task();
  const std::vector<std::size_t> candidates = some_of(task, 5);
  ProcessMeterOptions options = quick();
  options.in_worker = [&](auto codes) {
    if (has(codes, task.schedules[candidates[2]])) ::raise(SIGKILL);
  };
  const auto timings = measured(task, candidates, options);
  for (std::size_t i = 0; i < timings.size(); ++i)
    EXPECT_EQ(timings[i].status, i == 2 ? Status::Crashed : Status::Measured) << i;
}

TEST(ProcessMeter, AHangCostsOneCandidate) {
  const GroupTask task = matmul_task();
  const std::vector<std::size_t> candidates = some_of(task, 2);
  ProcessMeterOptions options = quick();
  // Time passes only where a worker hangs: each counts itself in memory that it shares with the
  // meter.
  using Count = std::atomic<int>;
  void* const shared =
      ::mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  Count& hung = *new (shared) Count(0);
  options.timeout_seconds = 20;
  options.clock = [&hung] { return 1000.0 * hung; };
  options.in_worker = [&](auto codes) {
    if (!has(codes, task.schedules[candidates[1]])) return;
    ++hung;
    ::sleep(1000);
  };
  const auto timings = measured(task, candidates, options);
  EXPECT_EQ(hung, 2);  // in the batch and alone
  ::munmap(shared, sizeof(Count));
  EXPECT_EQ(timings[0].status, Status::Measured);
  EXPECT_EQ(timings[1].status, Status::TimedOut);
}

TEST(ProcessMeter, CanBeStopped) {
  const GroupTask task = matmul_task();
  const std::atomic<bool> stop = true;
  ProcessMeterOptions options = quick();
  options.stop = &stop;
  options.in_worker = [](auto) { ::sleep(1000); };
  const auto timings = measured(task, some_of(task, 2), options);
  EXPECT_EQ(timings[0].status, Status::Stopped);
}

}  // namespace
}  // namespace tessera::tune
