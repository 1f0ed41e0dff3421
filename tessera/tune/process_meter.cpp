#include "tessera/tune/process_meter.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "tessera/program/plan.h"
#include "tessera/support/stopwatch.h"

namespace tessera::tune {
namespace {

using Status = CandidateTiming::Status;
using Timings = std::vector<CandidateTiming>;
using Codes = std::vector<std::shared_ptr<const lower::GroupCode>>;

/// Timings as the text that a worker writes to its pipe: a line for each candidate.
std::string to_text(const std::vector<cost::ScheduleTiming>& timings) {
  std::string text;
  for (const cost::ScheduleTiming& one : timings)
    text += fmt::format("{} {} {} {} {}\n", one.seconds, one.ratio, one.low, one.high, one.samples);
  return text + "end\n";
}

/// Parses the text of a worker; none if it is not complete.
std::optional<std::vector<cost::ScheduleTiming>> parse_timings(const std::string& text,
                                                               std::size_t count) {
  std::istringstream in(text);
  std::vector<cost::ScheduleTiming> timings(count);
  for (cost::ScheduleTiming& one : timings)
    if (!(in >> one.seconds >> one.ratio >> one.low >> one.high >> one.samples))
      return std::nullopt;
  std::string end;
  if (!(in >> end) || end != "end") return std::nullopt;
  return timings;
}

/// Output of a child process, read until it ends or is ended.
struct ChildOutput {
  std::string text = {};
  Status status = Status::Measured;
};

class ProcessMeter final : public Meter {
 public:
  explicit ProcessMeter(ProcessMeterOptions options)
      : options_(std::move(options)), lowerings_(program::lowerings_for(options_.code)) {}

  Timings measure(const Task& task, std::span<const lower::GroupSchedule> schedules,
                  Effort effort) override {
    Timings result(schedules.size());
    Codes codes = {code_of(task, task.usual)};
    std::vector<std::size_t> of;  // candidates that have code
    for (std::size_t i = 0; i < schedules.size(); ++i) {
      auto code = code_of(task, schedules[i]);
      if (code == nullptr || codes[0] == nullptr) {
        result[i].status = Status::Illegal;
        continue;
      }
      codes.push_back(std::move(code));
      of.push_back(i);
    }
    if (!of.empty()) measure(task, codes, of, effort, result);
    return result;
  }

 private:
  std::shared_ptr<const lower::GroupCode> code_of(const Task& task,
                                                  const lower::GroupSchedule& schedule) const {
    lower::GroupOptions how = lowerings_.options();
    how.schedule = schedule;
    auto code = lower::lower_group(task.group, lowerings_.machine(), how);
    if (!code) return nullptr;
    return std::make_shared<const lower::GroupCode>(*std::move(code));
  }

  /// Measures the codes after the first, which is the default; in two halves if the worker fails.
  void measure(const Task& task, const Codes& codes, const std::vector<std::size_t>& of,
               Effort effort, Timings& result) {
    const ChildOutput output = run_worker(task, codes, effort);
    const auto timings = parse_timings(output.text, codes.size());
    if (output.status == Status::Measured && timings) {
      for (std::size_t i = 0; i < of.size(); ++i) result[of[i]].timing = (*timings)[i + 1];
      return;
    }
    if (of.size() == 1 || output.status == Status::Stopped) {
      for (const std::size_t i : of)
        result[i].status = output.status == Status::Measured ? Status::Crashed : output.status;
      return;
    }
    const auto half = static_cast<std::ptrdiff_t>(of.size() / 2);
    Codes first(codes.begin(), codes.begin() + 1 + half), second = {codes[0]};
    second.insert(second.end(), codes.begin() + 1 + half, codes.end());
    measure(task, first, {of.begin(), of.begin() + half}, effort, result);
    measure(task, second, {of.begin() + half, of.end()}, effort, result);
  }

  cost::TimingOptions timing_options(const Codes& codes, Effort effort) const {
    const bool is_thorough = effort == Effort::Thorough;
    cost::TimingOptions how{.code = options_.code,
                            .seconds_per_unit = options_.seconds_per_candidate,
                            .weight_bytes = options_.weight_bytes,
                            .least_blocks = is_thorough ? 30 : 7};
    how.code.stop = nullptr;
    how.code.progress = {};
    if (is_thorough) how.seconds_per_unit *= 5;
    how.expected_seconds = how.seconds_per_unit * static_cast<double>(codes.size()) /
                           (how.least_blocks + 1) / 3;  // three runs per block
    return how;
  }

  /// Forks a worker that compiles and times the codes.
  ChildOutput run_worker(const Task& task, const Codes& codes, Effort effort) const {
    int pipe_ends[2];
    if (::pipe(pipe_ends) != 0) return {.status = Status::Crashed};
    const pid_t child = ::fork();
    if (child < 0) {
      ::close(pipe_ends[0]);
      ::close(pipe_ends[1]);
      return {.status = Status::Crashed};
    }
    if (child == 0) {
      ::close(pipe_ends[0]);
      if (options_.in_worker) options_.in_worker(codes);
      const auto timings = cost::time_lowerings(task.group, codes, timing_options(codes, effort));
      const std::string text = timings ? to_text(*timings) : "failed\n";
      const char* at = text.data();
      for (std::size_t left = text.size(); left > 0;) {
        const ssize_t written = ::write(pipe_ends[1], at, left);
        if (written <= 0) break;
        at += written;
        left -= static_cast<std::size_t>(written);
      }
      ::_exit(0);
    }
    ::close(pipe_ends[1]);
    ChildOutput output = read_until_end(pipe_ends[0]);
    ::close(pipe_ends[0]);
    if (output.status != Status::Measured) ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (output.status == Status::Measured && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
      output.status = Status::Crashed;
    return output;
  }

  ChildOutput read_until_end(int from) const {
    constexpr int kPollMs = 50;
    const Stopwatch watch;
    ChildOutput output;
    while (true) {
      if (options_.stop != nullptr && *options_.stop) {
        output.status = Status::Stopped;
        return output;
      }
      if (watch.seconds() > options_.timeout_seconds) {
        output.status = Status::TimedOut;
        return output;
      }
      pollfd wait{.fd = from, .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, kPollMs) <= 0) continue;
      char buffer[4096];
      const ssize_t count = ::read(from, buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return output;
      output.text.append(buffer, static_cast<std::size_t>(count));
    }
  }

  ProcessMeterOptions options_;
  program::Lowerings lowerings_;
};

}  // namespace

std::unique_ptr<Meter> process_meter(ProcessMeterOptions options) {
  return std::make_unique<ProcessMeter>(std::move(options));
}

}  // namespace tessera::tune
