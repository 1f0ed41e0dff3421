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
    if (!(in >> one.seconds >> one.ratio >> one.low >> one.high >> one.samples))
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
    text += fmt::format("{} {} {} {} {}\n", one.seconds, one.ratio, one.low, one.high, one.samples);
  return text + "end\n";
}

std::vector<CandidateTiming> measure_in_workers(
    std::span<const std::size_t> candidates, const WorkerLimits& limits,
    const std::function<std::string(std::span<const std::size_t>)>& work) {
  std::vector<CandidateTiming> result(candidates.size());
  if (candidates.empty()) return result;
  const WorkerOutput output = run_in_worker([&] { return work(candidates); }, limits);
  if (output.status == WorkerOutput::Status::Done)
    if (const auto timings = parse_timings(output.text, candidates.size())) {
      for (std::size_t i = 0; i < result.size(); ++i) result[i].timing = (*timings)[i];
      return result;
    }
  if (candidates.size() == 1 || output.status == WorkerOutput::Status::Stopped) {
    for (CandidateTiming& one : result) one.status = status_of(output.status);
    return result;
  }
  const std::size_t half = candidates.size() / 2;
  result = measure_in_workers(candidates.first(half), limits, work);
  const auto second = measure_in_workers(candidates.subspan(half), limits, work);
  result.insert(result.end(), second.begin(), second.end());
  return result;
}

}  // namespace tessera::tune
