#include "tessera/tune/batch_meter.h"

#include <fmt/format.h>

#include <optional>
#include <sstream>

namespace tessera::tune {
namespace {

using Status = CandidateTiming::Status;

/// Parses the text of a worker; none if it is not complete.
std::optional<std::vector<cost::ScheduleTiming>> parse_timings(const std::string& text,
                                                               std::size_t count) {
  std::istringstream in(text);
  std::vector<cost::ScheduleTiming> timings(count);
  for (cost::ScheduleTiming& one : timings)
    if (!(in >> one.seconds >> one.ratio >> one.low >> one.high >> one.samples >> one.differs))
      return std::nullopt;
  std::string end;
  if (!(in >> end) || end != "end") return std::nullopt;
  return timings;
}

Status status_of(WorkerOutput::Status status) {
  switch (status) {
    case WorkerOutput::Status::Done:  // without timings
    case WorkerOutput::Status::Crashed: return Status::Crashed;
    case WorkerOutput::Status::TimedOut: return Status::TimedOut;
    case WorkerOutput::Status::Stopped: return Status::Stopped;
  }
  return Status::Crashed;
}

}  // namespace

std::string to_text(std::span<const cost::ScheduleTiming> timings) {
  std::string text;
  for (const cost::ScheduleTiming& one : timings)
    text += fmt::format("{} {} {} {} {} {}\n", one.seconds, one.ratio, one.low, one.high,
                        one.samples, one.differs ? 1 : 0);
  return text + "end\n";
}

std::vector<CandidateTiming> measure_by_worker(
    std::span<const std::size_t> candidates,
    const std::function<WorkerOutput(std::span<const std::size_t>)>& run) {
  std::vector<CandidateTiming> result(candidates.size());
  if (candidates.empty()) return result;
  const WorkerOutput output = run(candidates);
  if (output.status == WorkerOutput::Status::Done)
    if (const auto timings = parse_timings(output.text, candidates.size())) {
      for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = {.status = (*timings)[i].differs ? Status::Differs : Status::Measured,
                     .timing = (*timings)[i]};
      return result;
    }
  if (candidates.size() == 1 || output.status == WorkerOutput::Status::Stopped) {
    for (CandidateTiming& one : result) one.status = status_of(output.status);
    return result;
  }
  const std::size_t half = candidates.size() / 2;
  result = measure_by_worker(candidates.first(half), run);
  const auto second = measure_by_worker(candidates.subspan(half), run);
  result.insert(result.end(), second.begin(), second.end());
  return result;
}

std::vector<CandidateTiming> measure_in_workers(
    std::span<const std::size_t> candidates, const WorkerLimits& limits,
    const std::function<std::string(std::span<const std::size_t>)>& work) {
  return measure_by_worker(candidates, [&](std::span<const std::size_t> some) {
    return run_in_worker([&] { return work(some); }, limits);
  });
}

}  // namespace tessera::tune
