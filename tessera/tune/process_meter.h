#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "tessera/cost/schedule_timing.h"
#include "tessera/program/compile.h"
#include "tessera/tune/group_task.h"
#include "tessera/tune/meter.h"

namespace tessera::tune {

/// Options of a meter with worker processes.
struct ProcessMeterOptions {
  program::CompileOptions code = {};
  double seconds_per_candidate = 0.02;  // of a quick measurement
  double timeout_seconds = 20;          // of a worker process
  std::int64_t weight_bytes = 1 << 20;  // of the whole model: see cost::TimingOptions
  std::filesystem::path gpu_lock = {};  // see cost::TimingOptions
  const std::atomic<bool>* stop = nullptr;
  /// Time in seconds that the timeout is counted in; the steady clock unless a test gives another.
  std::function<double()> clock = {};
  /// Called in the worker before it times these lowerings, for fault injection in tests.
  std::function<void(std::span<const std::shared_ptr<const lower::GroupCode>>)> in_worker = {};
  /// Times lowerings in the worker; cost::time_lowerings unless a test gives another.
  std::function<decltype(cost::time_lowerings)> time = cost::time_lowerings;
};

/// Meter that compiles and runs candidates of these tasks, which outlive it, in worker processes:
/// one for each batch on a CPU, one for all of them on a GPU, which takes long to set up. This
/// process must not have used the GPU. A candidate that crashes its worker or does not end costs
/// itself alone.
std::unique_ptr<Meter> process_meter(std::span<const GroupTask> tasks, ProcessMeterOptions options);

}  // namespace tessera::tune
