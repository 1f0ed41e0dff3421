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

/// Measures candidates in one worker process: `work` is called there with some of the candidates
/// and returns the text of their timings. Where the worker crashes or does not end, the candidates
/// are measured again in two halves, so that a bad one costs itself alone.
std::vector<CandidateTiming> measure_in_workers(
    std::span<const std::size_t> candidates, const WorkerLimits& limits,
    const std::function<std::string(std::span<const std::size_t>)>& work);

}  // namespace tessera::tune
