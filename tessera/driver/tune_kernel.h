#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/codegen/compile.h"
#include "tessera/driver/kernel_space.h"
#include "tessera/tune/tune.h"

namespace tessera {

/// Options of tuning a kernel.
struct TuneKernelOptions {
  codegen::Options code = {};
  machine::Machine machine = machine::host();  // this computer, or its GPU
  int threads = 1;
  std::uint64_t data_seed = 1;
  std::int64_t memory_limit = std::int64_t{4} << 30;
  double timeout_seconds = 60;  // of a worker process
  tune::TuneOptions tune = {};
  std::filesystem::path store = {};  // file of measurements; in memory if empty
};

/// Task of a tuned kernel and what came of it.
struct TunedKernel {
  std::string target = {};
  KernelTask task = {};
  tune::TuneResult result = {};

  const tune::TaskResult& outcome() const { return result.tasks[0]; }
  const KernelVariant& best() const { return task.variants[outcome().chosen.value_or(task.usual)]; }
};

/// Tunes the constants of a kernel on this computer or its GPU, which this process must not have
/// used. Each candidate runs in debug mode on the CPU first, in a process of its own, and counts
/// only if its results are those of the default; on a GPU, kernels that access memory by views
/// alone, which know their bounds, run there only.
Expected<TunedKernel> tune_kernel(const KernelText& source, const TuneKernelOptions& options);

/// Constants that a store has chosen for a kernel and its launch; none where there are none.
Expected<std::vector<tile::Constant>> tuned_constants(const KernelText& source,
                                                      const machine::Machine& machine, int threads,
                                                      const std::filesystem::path& store);

}  // namespace tessera
