#include "tessera/tune/process_meter.h"

#include <map>

#include "tessera/program/plan.h"
#include "tessera/tune/batch_meter.h"

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
    const Code usual = code_of(of, of.usual);
    std::map<std::size_t, Code> codes;
    std::vector<std::size_t> legal;
    for (const std::size_t i : candidates)
      if (Code code = usual == nullptr ? nullptr : code_of(of, i)) {
        codes.emplace(i, std::move(code));
        legal.push_back(i);
      }
    const auto measured = measure_in_workers(
        legal, {options_.timeout_seconds, options_.stop, options_.clock},
        [&](std::span<const std::size_t> some) {
          std::vector<Code> timed = {usual};
          for (const std::size_t i : some) timed.push_back(codes.at(i));
          if (options_.in_worker) options_.in_worker(timed);
          const auto timings = cost::time_lowerings(of.group, timed, timing_options(timed, effort));
          return timings ? to_text(std::span(*timings).subspan(1)) : std::string("failed\n");
        });
    std::vector<CandidateTiming> result(candidates.size(), {.status = Status::Illegal});
    for (std::size_t i = 0, next = 0; i < candidates.size(); ++i)
      if (codes.contains(candidates[i])) result[i] = measured[next++];
    return result;
  }

 private:
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
                            .least_blocks = is_thorough ? 30 : 7};
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
};

}  // namespace

std::unique_ptr<Meter> process_meter(std::span<const GroupTask> tasks,
                                     ProcessMeterOptions options) {
  return std::make_unique<ProcessMeter>(tasks, std::move(options));
}

}  // namespace tessera::tune
