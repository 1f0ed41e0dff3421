#include "tessera/driver/step_profile.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/cost/interleaved_timing.h"

namespace tessera {
namespace {

std::string how_of(const runtime::Program& program, std::size_t step,
                   const CompiledModel* compiled) {
  if (compiled != nullptr && !compiled->report.steps[step].strategy.empty()) {
    return compiled->report.steps[step].strategy;
  }
  const auto* launch = std::get_if<runtime::step::Launch>(&program.steps[step]);
  return launch == nullptr ? "" : program.kernels[launch->kernel].name;
}

}  // namespace

std::vector<StepTime> step_times(const runtime::Program& program,
                                 const std::vector<StepSpan>& spans, const CompiledModel* compiled,
                                 double peak) {
  struct Run {
    int number = 0;
    double calls = 0, ms = 0;
  };
  std::vector<std::vector<Run>> runs(program.steps.size());
  for (const StepSpan& span : spans) {
    std::vector<Run>& of_step = runs[span.step];
    if (of_step.empty() || of_step.back().number != span.run)
      of_step.push_back({.number = span.run});
    of_step.back().calls += 1;
    of_step.back().ms += static_cast<double>(span.end_ns - span.start_ns) / 1e6;
  }
  const auto median = [](const std::vector<Run>& of_step, double Run::*what) {
    std::vector<double> values;
    for (const Run& run : of_step) values.push_back(run.*what);
    return cost::percentile(values, 0.5);
  };
  std::vector<StepTime> rows;
  double total = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].empty()) continue;
    const runtime::Program::Note& note = program.notes[i];
    StepTime row{.step = i,
                 .what = note.what,
                 .how = how_of(program, i, compiled),
                 .calls = static_cast<std::size_t>(median(runs[i], &Run::calls)),
                 .ms = median(runs[i], &Run::ms)};
    const double seconds = std::max(row.ms, 1e-6) / 1e3 / static_cast<double>(row.calls);
    row.gflops = note.flops / seconds / 1e9;
    row.gbytes = note.bytes / seconds / 1e9;
    row.of_peak = peak > 0 ? note.flops / seconds / peak : 0;
    total += row.ms;
    rows.push_back(std::move(row));
  }
  for (StepTime& row : rows) row.share = row.ms / std::max(total, 1e-9);
  std::ranges::stable_sort(rows, std::greater{}, &StepTime::ms);
  return rows;
}

std::string trace_json(const runtime::Program& program, std::span<const StepSpan> spans,
                       const CompiledModel* compiled) {
  nlohmann::json events = nlohmann::json::array();
  const std::int64_t origin = spans.empty() ? 0 : spans.front().start_ns;
  for (const StepSpan& span : spans) {
    const runtime::Program::Note& note = program.notes[span.step];
    const double ns = static_cast<double>(std::max<std::int64_t>(span.end_ns - span.start_ns, 1));
    events.push_back({{"name", note.what},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", static_cast<double>(span.start_ns - origin) / 1e3},
                      {"dur", ns / 1e3},
                      {"args",
                       {{"step", span.step},
                        {"how", how_of(program, span.step, compiled)},
                        {"flops", note.flops},
                        {"bytes", note.bytes},
                        {"gflops", note.flops / ns}}}});
  }
  const nlohmann::json trace = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return trace.dump();
}

}  // namespace tessera
