#include "tessera/driver/step_profile.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tessera/cost/interleaved_timing.h"
#include "tessera/support/stopwatch.h"

namespace tessera {
namespace {

std::string how_of(const runtime::Program& program, std::size_t step) {
  if (!program.notes[step].strategy.empty()) return program.notes[step].strategy;
  const auto* launch = std::get_if<runtime::step::Launch>(&program.steps[step]);
  return launch == nullptr ? "" : program.kernels[launch->kernel].name;
}

/// Runs of the middle half by total time; all of few runs.
std::vector<int> middle_runs(const std::vector<double>& ms) {
  std::vector<int> order(ms.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int run) { return ms[static_cast<std::size_t>(run)]; });
  const auto cut = static_cast<std::ptrdiff_t>(order.size() / 4);
  return {order.begin() + cut, order.end() - cut};
}

}  // namespace

Expected<ProfiledRuns> profile_runs(const RunnableProgram& runnable, std::span<const Datum> inputs,
                                    ExecutionOptions options, int runs) {
  constexpr int kWarmUp = 2;
  ProfiledRuns result;
  int number = 0;
  options.observe = [&](std::size_t step, std::int64_t start, std::int64_t end) {
    if (number >= kWarmUp) result.spans.push_back({number - kWarmUp, step, start, end});
  };
  TESSERA_TRY(const auto session,
              runtime::Session::create(runnable.loaded(), session_options(options)));
  // In place, where arguments have static sizes: allocation of outputs is no part of a run.
  const runtime::Program& program = runnable.program();
  std::vector<Buffer> memory;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  if (runnable.has_static_arguments()) {
    for (const Datum& input : inputs) {
      const std::span<const std::byte> bytes = input.tensor().bytes.view();
      std::ranges::copy(bytes, memory.emplace_back(bytes.size()).data());
      from.push_back(memory.back().data());
    }
    for (const runtime::ValueIndex output : program.outputs)
      to.push_back(
          memory.emplace_back(static_cast<std::size_t>(program.values[output].bytes)).data());
  }
  for (; number < kWarmUp + runs && (options.stop == nullptr || !*options.stop); ++number) {
    const Stopwatch watch;
    if (runnable.has_static_arguments()) {
      TESSERA_TRY_DONE(session->run(from, to));
    } else {
      TESSERA_TRY(const std::vector<Datum> ignored, session->run(inputs));
    }
    if (number >= kWarmUp) result.ms.push_back(1e3 * watch.seconds());
  }
  if (result.ms.empty()) return Diagnostic{.id = "stopped", .message = "the run was stopped"};
  return result;
}

StepProfile step_profile(const runtime::Program& program, const ProfiledRuns& runs, double peak) {
  StepProfile profile{.runs = static_cast<int>(runs.ms.size()), .peak = peak};
  if (runs.ms.empty()) return profile;
  const std::vector<int> chosen = middle_runs(runs.ms);
  const auto count = static_cast<double>(chosen.size());
  std::vector<bool> counts(runs.ms.size());
  for (const int run : chosen) {
    counts[static_cast<std::size_t>(run)] = true;
    profile.ms += runs.ms[static_cast<std::size_t>(run)] / count;
  }
  struct Total {
    double calls = 0, ms = 0;
  };
  std::vector<Total> totals(program.steps.size());
  double in_steps = 0;
  for (const StepSpan& span : runs.spans) {
    if (span.run + 1 == profile.runs) profile.last_run.push_back(span);
    if (!counts[static_cast<std::size_t>(span.run)]) continue;
    const double ms = static_cast<double>(span.end_ns - span.start_ns) / 1e6 / count;
    totals[span.step].calls += 1 / count;
    totals[span.step].ms += ms;
    in_steps += ms;
  }
  profile.between_ms = profile.ms - in_steps;
  profile.least_ms = cost::percentile(runs.ms, 0);
  profile.median_ms = cost::percentile(runs.ms, 0.5);
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (totals[i].calls == 0) continue;
    const runtime::Program::Note& note = program.notes[i];
    StepTime row{.step = i,
                 .what = note.what,
                 .how = how_of(program, i),
                 .calls = static_cast<std::size_t>(std::lround(totals[i].calls)),
                 .ms = totals[i].ms,
                 .share = totals[i].ms / std::max(in_steps, 1e-9)};
    const double seconds = std::max(row.ms, 1e-6) / 1e3 / std::max(totals[i].calls, 1e-9);
    row.gflops = note.flops / seconds / 1e9;
    row.gbytes = note.bytes / seconds / 1e9;
    row.of_peak = peak > 0 ? note.flops / seconds / peak : 0;
    profile.steps.push_back(std::move(row));
  }
  std::ranges::stable_sort(profile.steps, std::greater{}, &StepTime::ms);
  return profile;
}

std::string trace_json(const runtime::Program& program, std::span<const StepSpan> spans) {
  nlohmann::json events = nlohmann::json::array();
  const std::int64_t origin = spans.empty() ? 0 : spans.front().start_ns;
  for (const StepSpan& span : spans) {
    const runtime::Program::Note& note = program.notes[span.step];
    const double ns = static_cast<double>(std::max<std::int64_t>(span.end_ns - span.start_ns, 1));
    events.push_back({{"name", note.names.empty() ? note.what : note.names[0]},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", static_cast<double>(span.start_ns - origin) / 1e3},
                      {"dur", ns / 1e3},
                      {"args",
                       {{"step", span.step},
                        {"what", note.what},
                        {"how", how_of(program, span.step)},
                        {"flops", note.flops},
                        {"bytes", note.bytes},
                        {"gflops", note.flops / ns}}}});
  }
  const nlohmann::json trace = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return trace.dump();
}

}  // namespace tessera
