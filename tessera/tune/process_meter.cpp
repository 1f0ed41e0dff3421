#include "tessera/tune/process_meter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "tessera/program/plan.h"
#include "tessera/tune/batch_meter.h"
#include "tessera/tune/worker.h"

namespace tessera::tune {
namespace {

using Status = CandidateTiming::Status;
using Code = std::shared_ptr<const lower::GroupCode>;

class ProcessMeter final : public Meter {
 public:
  ProcessMeter(std::span<const GroupTask> tasks, ProcessMeterOptions options)
      : tasks_(tasks),
        options_(std::move(options)),
        lowerings_(program::lowerings_for(options_.code)) {}

  std::vector<CandidateTiming> measure(std::size_t task, std::span<const std::size_t> candidates,
                                       Effort effort) override {
    const GroupTask& of = tasks_[task];
    const bool has_usual = code_of(of, of.usual) != nullptr;
    std::vector<std::size_t> legal;
    for (const std::size_t i : candidates)
      if (has_usual && (i == of.usual || code_of(of, i) != nullptr)) legal.push_back(i);
    const WorkerLimits limits{options_.timeout_seconds, options_.stop, options_.clock};
    const auto measured = measure_by_worker(legal, [&](std::span<const std::size_t> some) {
      const std::string request = request_text(task, some, effort);
      if (options_.code.machine.is_gpu()) return worker_.ask(request, limits);
      return run_in_worker([&] { return answer(request).value_or("failed\n"); }, limits);
    });
    std::vector<CandidateTiming> result(candidates.size(), {.status = Status::Illegal});
    for (std::size_t i = 0, next = 0; i < candidates.size(); ++i)
      if (std::ranges::find(legal, candidates[i]) != legal.end()) result[i] = measured[next++];
    return result;
  }

 private:
  static std::string request_text(std::size_t task, std::span<const std::size_t> candidates,
                                  Effort effort) {
    return fmt::format("{} {} {}", task, effort == Effort::Thorough ? 1 : 0,
                       fmt::join(candidates, " "));
  }

  /// Times the candidates of a request, in the worker. None where that failed, after which a GPU is
  /// not to be used any more by the process.
  std::optional<std::string> answer(const std::string& request) const {
    std::istringstream in(request);
    std::size_t task = 0, candidate = 0;
    int is_thorough = 0;
    in >> task >> is_thorough;
    const GroupTask& of = tasks_[task];
    std::vector<Code> timed = {code_of(of, of.usual)};
    while (in >> candidate) timed.push_back(code_of(of, candidate));
    if (options_.in_worker) options_.in_worker(timed);
    const auto timings =
        options_.time(of.group, timed,
                      timing_options(timed, is_thorough != 0 ? Effort::Thorough : Effort::Quick));
    if (!timings) return std::nullopt;
    return to_text(std::span(*timings).subspan(1));
  }

  Code code_of(const GroupTask& task, std::size_t candidate) const {
    lower::GroupOptions how = lowerings_.options();
    how.schedule = task.schedules[candidate];
    auto code = lower::lower_group(task.group, lowerings_.machine(), how);
    if (!code) return nullptr;
    return std::make_shared<const lower::GroupCode>(*std::move(code));
  }

  cost::TimingOptions timing_options(const std::vector<Code>& codes, Effort effort) const {
    const bool is_thorough = effort == Effort::Thorough;
    cost::TimingOptions how{.code = options_.code,
                            .seconds_per_unit = options_.seconds_per_candidate,
                            .weight_bytes = options_.weight_bytes,
                            .least_blocks = is_thorough ? 30 : 7,
                            .gpu_lock = options_.gpu_lock};
    how.code.stop = nullptr;
    how.code.progress = {};
    if (is_thorough) how.seconds_per_unit *= 5;
    how.expected_seconds = how.seconds_per_unit * static_cast<double>(codes.size()) /
                           (how.least_blocks + 1) / 3;  // three runs per block
    return how;
  }

  std::span<const GroupTask> tasks_;
  ProcessMeterOptions options_;
  program::Lowerings lowerings_;
  RequestWorker worker_{[this](const std::string& request) { return answer(request); }};
};

}  // namespace

std::unique_ptr<Meter> process_meter(std::span<const GroupTask> tasks,
                                     ProcessMeterOptions options) {
  return std::make_unique<ProcessMeter>(tasks, std::move(options));
}

}  // namespace tessera::tune
