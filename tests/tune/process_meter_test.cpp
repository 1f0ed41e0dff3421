#include "tessera/tune/process_meter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <new>

#include "tessera/support/digest.h"
#include "tessera/tune/worker.h"
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

/// Measurements of a GPU that is not there: the time of a schedule follows from its text, and those
/// whose texts `crashes` names end the process.
ProcessMeterOptions recorded(const std::function<bool(const std::string&)>& crashes = {}) {
  ProcessMeterOptions options = quick();
  options.code.machine = machine::cuda();
  options.time =
      [crashes](const lower::Group&, std::span<const std::shared_ptr<const lower::GroupCode>> codes,
                const cost::TimingOptions&) -> Expected<std::vector<cost::ScheduleTiming>> {
    std::vector<cost::ScheduleTiming> timings;
    for (const auto& code : codes) {
      const std::string text = lower::to_text(*code->schedule);
      if (crashes && crashes(text)) ::raise(SIGKILL);
      const double ratio =
          0.5 + static_cast<double>(std::stoul(digest(text).substr(0, 4), nullptr, 16)) / 65536;
      timings.push_back({.seconds = 1e-5 * ratio,
                         .ratio = ratio,
                         .low = ratio,
                         .high = ratio,
                         .samples = static_cast<std::int64_t>(::getpid())});
    }
    return timings;
  };
  return options;
}

TEST(ProcessMeter, OneWorkerMeasuresOnAGpu) {
  const GroupTask task = gpu_task();
  ASSERT_GT(task.space.size(), 50u);
  const auto meter = process_meter(std::span(&task, 1), recorded());
  const auto first = meter->measure(0, some_of(task, 3), Meter::Effort::Quick);
  const auto second = meter->measure(0, some_of(task, 5), Meter::Effort::Thorough);
  ASSERT_EQ(first.size(), 3u);
  ASSERT_EQ(second.size(), 5u);
  for (const CandidateTiming& one : second)
    if (one.status == Status::Measured) {
      EXPECT_EQ(one.timing.samples, first[0].timing.samples);  // that is, the process
    }
  EXPECT_NE(first[0].timing.samples, ::getpid());
}

TEST(ProcessMeter, ACrashOnAGpuCostsOneCandidateAndAWorker) {
  const GroupTask task = gpu_task();
  const std::vector<std::size_t> candidates = {0, 1, 2, 3, 4};
  const std::string bad = task.space[2].schedule;
  ASSERT_NE(task.usual, 2u);
  const auto meter = process_meter(std::span(&task, 1),
                                   recorded([&](const std::string& text) { return text == bad; }));
  const auto timings = meter->measure(0, candidates, Meter::Effort::Quick);
  for (std::size_t i = 0; i < timings.size(); ++i)
    EXPECT_EQ(timings[i].status, i == 2 ? Status::Crashed : Status::Measured) << i;
}

TEST(ProcessMeter, AWrongResultIsNoCandidate) {
  const GroupTask task = gpu_task();
  ProcessMeterOptions options = recorded();
  options.time = [time = options.time](const auto& group, auto codes, const auto& how) {
    auto timings = time(group, codes, how);
    timings->back().differs = true;
    return timings;
  };
  const auto timings = measured(task, {0, 1}, options);
  EXPECT_EQ(timings[0].status, Status::Measured);
  EXPECT_EQ(timings[1].status, Status::Differs);
}

TEST(RequestWorker, AnswersUntilItFails) {
  RequestWorker worker([](const std::string& request) -> std::optional<std::string> {
    if (request == "crash") ::raise(SIGKILL);
    if (request == "fail") return std::nullopt;
    if (request == "long") return std::string(100000, 'x');
    return request + " " + std::to_string(::getpid());
  });
  const auto ask = [&](const std::string& request) { return worker.ask(request, {}); };
  const std::string first = ask("a").text;
  EXPECT_EQ(first.substr(0, 2), "a ");
  EXPECT_EQ(ask("b").text.substr(2), first.substr(2));
  EXPECT_EQ(ask("").text.substr(1), first.substr(2));
  EXPECT_EQ(ask("long").text.size(), 100000u);
  EXPECT_EQ(ask("crash").status, WorkerOutput::Status::Crashed);
  const std::string second = ask("a").text;
  EXPECT_NE(second, first);
  EXPECT_EQ(ask("fail").status, WorkerOutput::Status::Crashed);
  EXPECT_NE(ask("a").text, second);
}

TEST(RequestWorker, EndsAWorkerThatIsLate) {
  double now = 0;
  RequestWorker worker([](const std::string& request) -> std::optional<std::string> {
    if (request == "hang") ::sleep(1000);
    return request;
  });
  const WorkerLimits patient{.timeout_seconds = 20, .clock = [&] { return now += 1e-6; }};
  const WorkerLimits hasty{.timeout_seconds = 20, .clock = [&] { return now += 100; }};
  EXPECT_EQ(worker.ask("a", patient).text, "a");
  EXPECT_EQ(worker.ask("hang", hasty).status, WorkerOutput::Status::TimedOut);
  EXPECT_EQ(worker.ask("b", patient).text, "b");
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
