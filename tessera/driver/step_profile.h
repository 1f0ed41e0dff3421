#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/driver/compile_model.h"
#include "tessera/driver/runnable_program.h"

namespace tessera {

/// Start and end of one execution of a step; a step in a loop has one per iteration.
struct StepSpan {
  int run = 0;
  std::size_t step = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

/// Time of one step of a program in a run, over all its executions.
struct StepTime {
  std::size_t step = 0;
  std::string what, how;  // operators; strategy or kernel
  std::size_t calls = 0;  // in one run
  double ms = 0, share = 0, gflops = 0, gbytes = 0;
  double of_peak = 0;                      // share of the peak; 0 where no peak is known
  std::optional<double> expected_ms = {};  // by the cost model, of the group that ends here
  bool measured = false;                   // whether expected_ms is a measurement
};

/// Times of a program and of its steps. They are means over the same runs, the middle half by
/// total time, so that they add up: `ms` is the sum of the steps and `between_ms`.
struct StepProfile {
  std::vector<StepTime> steps = {};  // that ran, the longest first
  int runs = 0;
  double peak = 0;                      // FLOP/s of the cores in use; 0 if it is not known
  double ms = 0, between_ms = 0;        // a whole run; the part of it that is in no step
  double least_ms = 0, median_ms = 0;   // of all runs
  std::vector<StepSpan> last_run = {};  // executions of the last run
};

/// Measurements of consecutive runs.
struct ProfiledRuns {
  std::vector<StepSpan> spans = {};
  std::vector<double> ms = {};  // total time, by run
};

/// Runs a program with a timer around every step, after two runs to warm up. Ends early where
/// `ExecutionOptions::stop` is set.
Expected<ProfiledRuns> profile_runs(const RunnableProgram& runnable, std::span<const Datum> inputs,
                                    ExecutionOptions options, int runs);

/// Profile of a program; `peak` is in FLOP/s, 0 if it is not known.
StepProfile step_profile(const runtime::Program& program, const ProfiledRuns& runs, double peak);

/// Spans of one run in the trace event format of Perfetto and chrome://tracing, as JSON.
std::string trace_json(const runtime::Program& program, std::span<const StepSpan> spans);

}  // namespace tessera
