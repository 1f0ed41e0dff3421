/// Measures schedules of contractions with shapes that are drawn by a seed, as data for learned
/// cost models (tools/train-cost-model).
///
///   tessera_schedule_measurements measure TABLE [--target cuda] --seed 1 --shapes 100
///   [--candidates 32] [--passes 1] [--seconds 0] [--gpu-lock FILE]
///       appends a line for each candidate: SHAPE | SCHEDULE | ratio to the default | default in
///       us; times are minima over the passes
///   tessera_schedule_measurements repeat TABLE --from TABLE [--passes 1]
///       measures the candidates of another table again, on this computer, with the compiler as it
///       is now
///   tessera_schedule_measurements features TABLE
///       prints the table with features: SHAPE | SCHEDULE | ratio | us | choice | features, where
///       choice is `default` for the schedule that this build chooses, `analytic` for that of the
///       analytic estimates, `both` or `none`
///
/// Shapes that the table has are not measured again. Exit code 1: a candidate has other results
/// than the default schedule, which is printed.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <set>
#include <sstream>

#include "bench/schedules/shapes.h"
#include "tessera/lower/cost_model.h"
#include "tessera/lower/schedule_features.h"
#include "tessera/program/plan.h"
#include "tessera/support/stopwatch.h"
#include "tessera/tune/process_meter.h"

namespace tessera {
namespace {

struct Options {
  ShapeFamily family = cpu_shapes();
  std::uint64_t seed = 1;
  std::string from = {}, gpu_lock = {};
  std::size_t shapes = 100, candidates = 32, passes = 1;
  double seconds = 0;  // after which no other shape is begun; 0: no limit

  const program::CompileOptions& code() const { return family.code; }
  const machine::Machine& machine() const { return family.code.machine; }
  lower::GroupOptions lowering() const { return program::lowerings_for(family.code).options(); }
};

bool is_contraction(const lower::GroupSchedule& schedule) {
  return std::holds_alternative<lower::ContractionSchedule>(schedule) ||
         std::holds_alternative<lower::WinogradSchedule>(schedule) ||
         std::holds_alternative<lower::BlockContractionSchedule>(schedule);
}

Expected<tune::GroupTask> task_of(const ContractionShape& shape, const Options& options,
                                  const std::vector<lower::GroupSchedule>& others = {}) {
  tune::GroupTask task;
  task.key = task.what = shape.text();
  TESSERA_TRY(task.group, options.family.group(shape, options.code()));
  TESSERA_TRY(const lower::GroupCode code,
              lower::lower_group(task.group, options.machine(), options.lowering()));
  if (!code.schedule)
    return Diagnostic{.id = "no-schedule", .message = "the group has no schedule"};
  auto space = lower::schedule_space(task.group, options.machine(), options.lowering());
  std::erase_if(space,
                [](const lower::ScheduleCandidate& one) { return !is_contraction(one.schedule); });
  for (const lower::GroupSchedule& other : others)
    if (std::ranges::find(space, other, &lower::ScheduleCandidate::schedule) == space.end())
      space.push_back({other, 0});
  task.set_space(space, *code.schedule);
  return task;
}

/// Candidates to measure: those that the learned model predicts to be the fastest, where there is
/// one, the lowest estimates of each strategy, and random ones, most of them from the better half.
std::vector<std::size_t> sample(const tune::GroupTask& task, const Options& options, Rng& rng) {
  const std::size_t count = options.candidates;
  std::vector<std::vector<std::size_t>> strategies(2);
  std::vector<lower::ScheduleCandidate> space;
  for (std::size_t i = 0; i < task.schedules.size(); ++i) {
    const bool is_winograd = std::holds_alternative<lower::WinogradSchedule>(task.schedules[i]);
    strategies[is_winograd ? 1 : 0].push_back(i);
    space.push_back({task.schedules[i], task.space[i].cycles});
  }
  std::vector<std::size_t> chosen;
  const auto add = [&](std::size_t candidate) {
    if (candidate != task.usual && std::ranges::find(chosen, candidate) == chosen.end())
      chosen.push_back(candidate);
  };
  if (const auto analytic =
          lower::analytic_schedule(task.group, options.machine(), options.lowering()))
    if (const auto position = tune::position_of(task, lower::to_text(*analytic))) add(*position);
  const auto times =
      lower::predicted_times(task.group, options.machine(), options.lowering(), space);
  std::vector<std::pair<double, std::size_t>> ranked;
  for (std::size_t i = 0; i < times.size(); ++i)
    if (times[i]) ranked.emplace_back(*times[i], i);
  std::ranges::sort(ranked);
  for (std::size_t i = 0; i < ranked.size() && i < count / 4; ++i) add(ranked[i].second);
  for (const auto& of : strategies) {
    if (of.empty()) continue;
    const std::size_t all = of.size(), share = strategies[1].empty() ? count : (count + 1) / 2;
    const std::size_t goal = chosen.size() + std::min(share, all);
    for (std::size_t i = 0; i < std::min(share / 4, all); ++i) add(of[i]);
    for (int tries = 0; tries < 1000 && chosen.size() < goal; ++tries) {
      const double u = rng.uniform();
      add(of[static_cast<std::size_t>(u * u * u * static_cast<double>(all))]);
    }
  }
  return chosen;
}

std::unique_ptr<tune::Meter> meter_of(std::span<const tune::GroupTask> tasks,
                                      const Options& options) {
  const bool is_gpu = options.machine().is_gpu();
  tune::ProcessMeterOptions how{.code = options.code(),
                                .seconds_per_candidate = is_gpu ? 0.008 : 0.015,
                                .timeout_seconds = 60,
                                .weight_bytes = is_gpu ? 32 << 20 : 8 << 20,
                                .gpu_lock = options.gpu_lock};
  how.code.threads = 1;
  return tune::process_meter(tasks, std::move(how));
}

/// Least times of the default and of candidates over all batches and passes.
struct ShapeTimes {
  double usual = std::numeric_limits<double>::infinity();
  std::vector<double> seconds = {};  // infinite: it could not be measured
  std::vector<tune::CandidateTiming::Status> status = {};
};
ShapeTimes measured(tune::Meter& meter, std::size_t task,
                    const std::vector<std::size_t>& candidates, const Options& options) {
  const std::size_t batch_size = options.machine().is_gpu() ? 16 : 8;
  ShapeTimes times;
  times.seconds.assign(candidates.size(), std::numeric_limits<double>::infinity());
  times.status.resize(candidates.size());
  for (std::size_t pass = 0; pass < options.passes; ++pass)
    for (std::size_t first = 0; first < candidates.size(); first += batch_size) {
      const std::span batch =
          std::span(candidates).subspan(first, std::min(batch_size, candidates.size() - first));
      const auto timings = meter.measure(task, batch, tune::Meter::Effort::Quick);
      for (std::size_t k = 0; k < batch.size(); ++k) {
        times.status[first + k] = timings[k].status;
        if (timings[k].status != tune::CandidateTiming::Status::Measured) continue;
        const cost::ScheduleTiming& t = timings[k].timing;
        times.seconds[first + k] = std::min(times.seconds[first + k], t.seconds);
        times.usual = std::min(times.usual, t.seconds / t.ratio);
      }
    }
  return times;
}

/// Shapes of a table, with the schedules that it has for each.
using Candidates = std::vector<std::pair<std::string, std::vector<lower::GroupSchedule>>>;
Candidates candidates_of(const std::string& table) {
  Candidates all;
  std::ifstream in(table);
  for (std::string line; std::getline(in, line);) {
    const std::size_t a = line.find(" | "), b = line.find(" | ", a + 3);
    if (b == std::string::npos) continue;
    if (all.empty() || all.back().first != line.substr(0, a))
      all.push_back({line.substr(0, a), {}});
    if (auto schedule = lower::parse_group_schedule(line.substr(a + 3, b - a - 3)))
      all.back().second.push_back(*std::move(schedule));
  }
  return all;
}

/// Appends the times of the candidates of a shape, and its default schedule. Says which candidates
/// were not measured, and why; gives whether one has other results than the default.
bool print_times(std::ofstream& out, const tune::GroupTask& task,
                 const std::vector<std::size_t>& candidates, const ShapeTimes& times) {
  constexpr std::array<std::string_view, 6> kWhy = {"measured", "illegal",   "OTHER RESULTS",
                                                    "crashed",  "timed out", "stopped"};
  bool differs = false;
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    const std::string& schedule = task.space[candidates[k]].schedule;
    if (std::isfinite(times.seconds[k]))
      out << fmt::format("{} | {} | {:.4f} | {:.2f}\n", task.key, schedule,
                         times.seconds[k] / times.usual, 1e6 * times.usual);
    else
      fmt::print(stderr, "{}: {} | {}\n", kWhy[static_cast<std::size_t>(times.status[k])], task.key,
                 schedule);
    differs = differs || times.status[k] == tune::CandidateTiming::Status::Differs;
  }
  out << fmt::format("{} | {} | 1 | 0\n", task.key, task.space[task.usual].schedule);
  out.flush();
  return differs;
}

std::set<std::string> shapes_of(const std::string& table) {
  std::set<std::string> shapes;
  for (const auto& [shape, schedules] : candidates_of(table)) shapes.insert(shape);
  return shapes;
}

int repeat(const std::string& table, const Options& options) {
  const std::set<std::string> known = shapes_of(table);
  std::ofstream out(table, std::ios::app);
  bool differs = false;
  for (const auto& [shape, schedules] : candidates_of(options.from)) {
    const auto task = task_of(ContractionShape::parse(shape), options, schedules);
    if (!task || known.contains(shape)) continue;
    std::vector<std::size_t> candidates;
    for (const lower::GroupSchedule& schedule : schedules)
      if (const auto position = tune::position_of(*task, lower::to_text(schedule)))
        if (*position != task->usual) candidates.push_back(*position);
    const auto meter = meter_of(std::span(&*task, 1), options);
    differs |= print_times(out, *task, candidates, measured(*meter, 0, candidates, options));
    fmt::print(stderr, "{}\n", shape);
  }
  return differs ? 1 : 0;
}

int measure(const std::string& table, const Options& options) {
  const std::set<std::string> known = shapes_of(table);
  std::ofstream out(table, std::ios::app);
  Rng rng(options.seed);
  bool differs = false;
  const Stopwatch watch;
  const auto is_over = [&] { return options.seconds > 0 && watch.seconds() > options.seconds; };
  for (std::size_t i = 0; i < options.shapes && !is_over();) {
    // One meter for some shapes: its worker takes long to find a GPU.
    constexpr std::size_t kShapesOfAMeter = 8;
    std::vector<tune::GroupTask> tasks;
    std::vector<std::vector<std::size_t>> candidates;
    for (; tasks.size() < kShapesOfAMeter && i < options.shapes; ++i) {
      const ContractionShape shape = options.family.draw(rng);
      Rng own(rng.next());
      if (known.contains(shape.text())) continue;
      auto task = task_of(shape, options);
      if (!task || task->space.size() < 4) continue;
      candidates.push_back(sample(*task, options, own));
      tasks.push_back(*std::move(task));
    }
    const auto meter = meter_of(tasks, options);
    for (std::size_t k = 0; k < tasks.size() && !is_over(); ++k) {
      differs |=
          print_times(out, tasks[k], candidates[k], measured(*meter, k, candidates[k], options));
      fmt::print(stderr, "{} of {}: {}\n", i - tasks.size() + k + 1, options.shapes, tasks[k].key);
    }
  }
  return differs ? 1 : 0;
}

int features(const std::string& table, const Options& options) {
  std::ifstream in(table);
  std::string shape;
  std::unique_ptr<const lower::ScheduleFeatures> of;
  std::optional<lower::GroupSchedule> usual, analytic;
  fmt::print("{}\n", fmt::join(lower::schedule_feature_names(options.machine()), " "));
  for (std::string line; std::getline(in, line);) {
    const std::size_t a = line.find(" | "), b = line.find(" | ", a + 3),
                      c = line.find(" | ", b + 3);
    if (c == std::string::npos) continue;
    if (line.substr(0, a) != shape || !of) {
      shape = line.substr(0, a);
      of.reset();
      auto made = options.family.group(ContractionShape::parse(shape), options.code());
      if (!made) continue;
      of = lower::schedule_features(*made, options.machine(), options.lowering());
      analytic = lower::analytic_schedule(*made, options.machine(), options.lowering());
      usual = lower::learned_schedule(*made, options.machine(), options.lowering());
      if (!usual) usual = analytic;
    }
    const auto schedule = lower::parse_group_schedule(line.substr(a + 3, b - a - 3));
    if (!schedule || of == nullptr) continue;
    const bool is_usual = usual == *schedule, is_analytic = analytic == *schedule;
    if (const auto numbers = (*of)(*schedule))
      fmt::print("{} | {} | {}\n", line,
                 is_usual      ? (is_analytic ? "both" : "default")
                 : is_analytic ? "analytic"
                               : "none",
                 fmt::join(*numbers, " "));
  }
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() < 2 || (args[0] != "measure" && args[0] != "repeat" && args[0] != "features")) {
    std::cerr << "usage: tessera_schedule_measurements measure|repeat|features TABLE [--seed N] "
                 "[--shapes N] [--candidates N] [--passes N] [--from TABLE] [--target cuda] "
                 "[--seconds N] [--gpu-lock FILE]\n";
    return 2;
  }
  tessera::Options options;
  for (std::size_t i = 2; i + 1 < args.size(); i += 2) {
    const std::string &name = args[i], &value = args[i + 1];
    if (name == "--from") options.from = value;
    if (name == "--gpu-lock") options.gpu_lock = value;
    if (name == "--target" && value == "cuda") options.family = tessera::gpu_shapes();
    if (name == "--from" || name == "--gpu-lock" || name == "--target") continue;
    const std::size_t number = std::stoull(value);
    if (name == "--seed") options.seed = number;
    if (name == "--shapes") options.shapes = number;
    if (name == "--candidates") options.candidates = number;
    if (name == "--passes") options.passes = number;
    if (name == "--seconds") options.seconds = static_cast<double>(number);
  }
  if (args[0] == "repeat") return tessera::repeat(args[1], options);
  return args[0] == "measure" ? tessera::measure(args[1], options)
                              : tessera::features(args[1], options);
}
