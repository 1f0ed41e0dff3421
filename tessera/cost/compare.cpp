#include <algorithm>
#include <cmath>

#include "tessera/cost/interleaved_timing.h"
#include "tessera/cost/model.h"
#include "tessera/engine/engine.h"
#include "tessera/support/rng.h"
#include "tessera/support/stopwatch.h"

namespace tessera::cost {
namespace {

/// Generated input whose numbers are neither large nor all alike.
Datum filled(const runtime::Value& value, Rng& rng) {
  Buffer buffer(static_cast<std::size_t>(value.bytes));
  const std::int64_t count = element_count(value.shape).value_or(0);
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_float(value.dtype))
      store_number(value.dtype, buffer.data(), i, 2 * rng.uniform() - 1);
    else
      store_integer(value.dtype, buffer.data(), i, static_cast<std::int64_t>(rng.below(2)));
  }
  return Tensor{value.dtype, value.shape, std::move(buffer).freeze()};
}

/// Compiled graph that is run repeatedly on the same inputs.
class Competitor {
 public:
  static Expected<Competitor> make(const Graph& graph, const program::CompileOptions& options) {
    Competitor made;
    TESSERA_TRY(program::Compiled compiled, program::compile(graph, options));
    TESSERA_TRY(const auto loaded, runtime::LoadedProgram::load(std::move(compiled.program)));
    Rng rng(1);
    for (const runtime::ValueIndex input : loaded->program().inputs) {
      const runtime::Value& value = loaded->program().values[input];
      if (value.home == runtime::Value::Home::Boxed || value.dtype == DType::String)
        return Diagnostic{
            .id = "compare-input",
            .where = {.item = value.name},
            .message = "programs whose inputs are not plain tensors cannot be compared"};
      made.inputs_.push_back(filled(value, rng));
    }
    TESSERA_TRY(made.session_, engine::make_session(loaded, {.threads = options.threads}));
    made.is_gpu_ = loaded->program().is_for_gpu();
    return made;
  }

  Expected<std::vector<double>> time(int runs) {
    std::vector<double> milliseconds;
    for (int i = 0; i < (is_gpu_ ? 1 : runs); ++i) {
      const Stopwatch watch;
      TESSERA_TRY(const std::vector<Datum> ignored, session_->run(inputs_));
      milliseconds.push_back(1e3 * watch.seconds());
    }
    if (!is_gpu_) return milliseconds;
    // Copies of inputs and outputs are no part of a program on a GPU.
    TESSERA_TRY(const std::optional<double> steps, session_->time_steps(std::max(runs, kGpuRuns)));
    if (steps) milliseconds = {*steps};
    return milliseconds;
  }

 private:
  static constexpr int kGpuRuns = 20;  // of a block, back to back

  std::unique_ptr<runtime::Session> session_;
  std::vector<Datum> inputs_;
  bool is_gpu_ = false;
};

}  // namespace

Expected<Comparison> compare(const Graph& a, const Graph& b, const CompareOptions& options) {
  TESSERA_TRY(Competitor first, Competitor::make(a, options.code));
  program::CompileOptions b_code = options.code;
  if (options.b_schedules != nullptr) b_code.schedules = options.b_schedules;
  TESSERA_TRY(Competitor second, Competitor::make(b, b_code));
  TESSERA_TRY(const InterleavedTiming made,
              time_interleaved([&](int runs) { return second.time(runs); },
                               [&](int runs) { return first.time(runs); },
                               {.blocks = options.blocks,
                                .block_ms = options.block_seconds * 1e3,
                                .stop = options.stop}));
  return Comparison{.a_seconds = percentile(made.their_blocks, 0.5) / 1e3,
                    .b_seconds = percentile(made.our_blocks, 0.5) / 1e3,
                    .ratio = made.ratio,
                    .low = made.low,
                    .high = made.high};
}

Expected<double> time_program(const Graph& graph, const CompareOptions& options) {
  TESSERA_TRY(Competitor one, Competitor::make(graph, options.code));
  TESSERA_TRY(const std::vector<double> first, one.time(2));
  const double once = std::max(1e-4, std::ranges::min(first));
  const int runs = static_cast<int>(std::clamp(options.block_seconds * 1e3 / once, 1.0, 1e5));
  double least = INFINITY;
  for (int block = 0; block < options.blocks; ++block) {
    if (options.stop != nullptr && *options.stop)
      return Diagnostic{.id = "stopped", .message = "the measurement was stopped"};
    TESSERA_TRY(const std::vector<double> times, one.time(runs));
    least = std::min(least, percentile(times, 0.5));
  }
  return least / 1e3;
}

}  // namespace tessera::cost
