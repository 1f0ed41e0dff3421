#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace tessera::tune {

/// Limits of a worker process.
struct WorkerLimits {
  double timeout_seconds = 20;
  const std::atomic<bool>* stop = nullptr;
  /// Time in seconds that the timeout is counted in; the steady clock unless a test gives another.
  std::function<double()> clock = {};
};

/// Output of a worker process.
struct WorkerOutput {
  enum class Status : std::uint8_t { Done, Crashed, TimedOut, Stopped };
  Status status = Status::Done;
  std::string text = {};
};

/// Runs a function in a forked process and returns what it returned. A crash, or more time than the
/// limit, ends that process alone.
WorkerOutput run_in_worker(const std::function<std::string()>& work, const WorkerLimits& limits);

}  // namespace tessera::tune
