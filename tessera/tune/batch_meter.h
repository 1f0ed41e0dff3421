#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tessera/tune/meter.h"
#include "tessera/tune/worker.h"

namespace tessera::tune {

/// Text form of timings, which a worker process writes, a line for each candidate.
std::string to_text(std::span<const cost::ScheduleTiming> timings);

/// Measures candidates by a worker process: `run` gives some of them to it and returns its output,
/// the text of their timings. Where the worker crashes or does not end, the candidates are measured
/// again in two halves, so that a bad one costs itself alone.
std::vector<CandidateTiming> measure_by_worker(
    std::span<const std::size_t> candidates,
    const std::function<WorkerOutput(std::span<const std::size_t>)>& run);

/// The same with a new worker process each time: `work` is called there with some of the
/// candidates and returns the text of their timings.
std::vector<CandidateTiming> measure_in_workers(
    std::span<const std::size_t> candidates, const WorkerLimits& limits,
    const std::function<std::string(std::span<const std::size_t>)>& work);

}  // namespace tessera::tune
