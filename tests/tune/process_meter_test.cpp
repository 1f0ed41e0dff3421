#include "tessera/tune/process_meter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "tessera/support/digest.h"
#include "tests/tune/example_task.h"

namespace tessera::tune {
namespace {

using Status = CandidateTiming::Status;

std::vector<lower::GroupSchedule> some_of(const Task& task, std::size_t count) {
  std::vector<lower::GroupSchedule> schedules;
  for (std::size_t i = 0; i < count; ++i)
    schedules.push_back(task.space[i * task.space.size() / count].schedule);
  return schedules;
}

ProcessMeterOptions quick() {
  return {.code = {.threads = 1}, .seconds_per_candidate = 0.001};
}

bool has(std::span<const std::shared_ptr<const lower::GroupCode>> codes,
         const lower::GroupSchedule& schedule) {
  return std::ranges::any_of(codes, [&](const auto& code) { return code->schedule == schedule; });
}

TEST(ProcessMeter, MeasuresSchedulesAgainstTheDefault) {
  const Task task = matmul_task();
  const auto timings =
      process_meter(quick())->measure(task, some_of(task, 3), Meter::Effort::Quick);
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
  const Task task = matmul_task();
  std::vector<lower::GroupSchedule> schedules = some_of(task, 2);
  schedules.insert(schedules.begin(), lower::RowsSchedule{{1}});
  const auto timings = process_meter(quick())->measure(task, schedules, Meter::Effort::Quick);
  EXPECT_EQ(timings[0].status, Status::Illegal);
  EXPECT_EQ(timings[1].status, Status::Measured);
  EXPECT_EQ(timings[2].status, Status::Measured);
}

TEST(ProcessMeter, ACrashCostsOneCandidate) {
  const Task task = matmul_task();
  const std::vector<lower::GroupSchedule> schedules = some_of(task, 5);
  ProcessMeterOptions options = quick();
  options.in_worker = [&](auto codes) {
    if (has(codes, schedules[2])) ::raise(SIGKILL);
  };
  const auto timings = process_meter(options)->measure(task, schedules, Meter::Effort::Quick);
  for (std::size_t i = 0; i < timings.size(); ++i)
    EXPECT_EQ(timings[i].status, i == 2 ? Status::Crashed : Status::Measured) << i;
}

TEST(ProcessMeter, AHangCostsOneCandidate) {
  const Task task = matmul_task();
  const std::vector<lower::GroupSchedule> schedules = some_of(task, 2);
  ProcessMeterOptions options = quick();
  options.timeout_seconds = 1.5;
  options.in_worker = [&](auto codes) {
    if (has(codes, schedules[1])) ::sleep(1000);
  };
  const auto timings = process_meter(options)->measure(task, schedules, Meter::Effort::Quick);
  EXPECT_EQ(timings[0].status, Status::Measured);
  EXPECT_EQ(timings[1].status, Status::TimedOut);
}

TEST(ProcessMeter, CanBeStopped) {
  const Task task = matmul_task();
  const std::atomic<bool> stop = true;
  ProcessMeterOptions options = quick();
  options.stop = &stop;
  options.in_worker = [](auto) { ::sleep(1000); };
  const auto timings =
      process_meter(options)->measure(task, some_of(task, 2), Meter::Effort::Quick);
  EXPECT_EQ(timings[0].status, Status::Stopped);
}

}  // namespace
}  // namespace tessera::tune
