#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/report.h"
#include "cli/store_flags.h"
#include "tessera/tune/tune.h"

namespace tessera::cli {

/// Flags of tuning a kernel.
struct TuneKernelFlags {
  std::string kernel = {}, budget = "60s", grid = {};
  std::vector<std::string> arguments = {};
  std::string target = "cpu";
  std::uint64_t seed = 1;
  int threads = 1, rows = 20;
  ReportFlags report = {};
};

/// Tunes the constants of a kernel and prints what was chosen.
Expected<Done> tune_kernel_command(const TuneKernelFlags& flags, const StoreFlags& store,
                                   Context& context);

/// Progress of tuning as a line.
std::function<void(const tune::Progress&)> show_progress(ProgressLine& line);

}  // namespace tessera::cli
