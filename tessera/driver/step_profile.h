#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/driver/compile_model.h"

namespace tessera {

/// Start and end of one execution of a step; a step in a loop has one per iteration.
struct StepSpan {
  int run = 0;
  std::size_t step = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

/// Time of one step of a program, as a median over runs of its total time in a run.
struct StepTime {
  std::size_t step = 0;
  std::string what, how;  // operators; strategy or kernel
  std::size_t calls = 0;  // in one run
  double ms = 0, share = 0, gflops = 0, gbytes = 0;
  double of_peak = 0;                      // share of the peak; 0 where no peak is known
  std::optional<double> expected_ms = {};  // by the cost model, of the group that ends here
  bool measured = false;                   // whether expected_ms is a measurement
};

/// Times of the steps that ran, the longest first. `compiled` is null for a saved program; `peak`
/// is in FLOP/s, 0 if it is not known.
std::vector<StepTime> step_times(const runtime::Program& program,
                                 const std::vector<StepSpan>& spans, const CompiledModel* compiled,
                                 double peak);

/// Spans of one run in the trace event format of Perfetto and chrome://tracing, as JSON.
std::string trace_json(const runtime::Program& program, std::span<const StepSpan> spans,
                       const CompiledModel* compiled);

}  // namespace tessera
