/// Measures schedules of contractions with shapes that are drawn by a seed, as data for learned
/// cost models (tools/train-cost-model).
///
///   tessera_schedule_measurements measure TABLE --seed 1 --shapes 100 [--candidates 32] [--passes
///   1]
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
/// Shapes that the table has are not measured again.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <set>
#include <sstream>

#include "tessera/expr/text.h"
#include "tessera/lower/cost_model.h"
#include "tessera/lower/schedule_features.h"
#include "tessera/support/rng.h"
#include "tessera/tune/process_meter.h"

namespace tessera {
namespace {

/// Contraction as it occurs in models: a convolution of NHWC images with packed weights, or a
/// matmul.
struct ContractionShape {
  std::string kind = "conv";  // conv, matmul, batched
  std::int64_t n = 1, h = 1, w = 1, c = 1, f = 1, window = 1, stride = 1;
  std::string epilogue = "none";  // none, relu, residual, gelu

  std::string text() const {
    return fmt::format("{} {} {} {} {} {} {} {} {}", kind, n, h, w, c, f, window, stride, epilogue);
  }
  static ContractionShape parse(const std::string& text) {
    std::istringstream in(text);
    ContractionShape s;
    in >> s.kind >> s.n >> s.h >> s.w >> s.c >> s.f >> s.window >> s.stride >> s.epilogue;
    return s;
  }
  double work() const {
    return static_cast<double>(n * h * w) * static_cast<double>(c * f * window * window);
  }
};

std::int64_t log_uniform(Rng& rng, double low, double high, std::int64_t unit) {
  const double x = std::exp(std::log(low) + rng.uniform() * std::log(high / low));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(x / static_cast<double>(unit) + 0.5)) *
         unit;
}

template <class T>
T one_of(Rng& rng, std::initializer_list<T> values) {
  return values.begin()[rng.below(values.size())];
}

/// Shapes from 1 to 400 million multiply-adds.
ContractionShape draw(Rng& rng) {
  while (true) {
    ContractionShape s;
    s.epilogue = one_of<std::string>(rng, {"none", "relu", "relu", "residual", "gelu"});
    const std::uint64_t kind = rng.below(10);
    if (kind < 7) {
      s.window = one_of<std::int64_t>(rng, {1, 1, 1, 3, 3, 3, 5, 7});
      s.stride = rng.below(4) == 0 ? 2 : 1;
      s.n = rng.below(6) == 0 ? one_of<std::int64_t>(rng, {2, 4}) : 1;
      s.h = s.w = log_uniform(rng, 5, 120, 1);
      if (rng.below(5) == 0) s.w = log_uniform(rng, 5, 120, 1);
      s.c = rng.below(8) == 0 ? one_of<std::int64_t>(rng, {3, 4, 8})
                              : log_uniform(rng, 16, 1024, rng.below(2) == 0 ? 16 : 8);
      s.f = log_uniform(rng, 16, 1024, rng.below(2) == 0 ? 16 : 8);
    } else {
      s.kind = kind < 9 ? "matmul" : "batched";
      s.n = s.kind == "batched" ? log_uniform(rng, 2, 24, 1) : 1;
      s.h = 1;
      s.w = log_uniform(rng, 1, 1024, 1);
      s.c = log_uniform(rng, 16, 3072, 8);
      s.f = log_uniform(rng, 16, 3072, 8);
    }
    if (s.work() >= 1e6 && s.work() <= 4e8) return s;
  }
}

Expected<lower::Group> group_of(const ContractionShape& s) {
  const std::string sum =
      s.kind == "conv"
          ? fmt::format(
                "(sum(c: {}, r: {}, s: {}) {{ (a[n, {} * y + r - {}, {} * x + s - {}, c] else 0.0) "
                "* b[f, c, r, s] }})",
                s.c, s.window, s.window, s.stride, s.window / 2, s.stride, s.window / 2)
      : s.kind == "matmul" ? fmt::format("(sum(c: {}) {{ a[n, y, x, c] * b[c, f] }})", s.c)
                           : fmt::format("(sum(c: {}) {{ a[n, y, x, c] * b[n, c, f] }})", s.c);
  const std::int64_t in_h = s.kind == "conv" ? (s.h - 1) * s.stride + 1 : s.h,
                     in_w = s.kind == "conv" ? (s.w - 1) * s.stride + 1 : s.w;
  std::vector<Operand> inputs = {{"a", DType::F32, {s.n, in_h, in_w, s.c}}};
  if (s.kind == "conv") inputs.push_back({"b", DType::F32, {s.f, s.c, s.window, s.window}});
  if (s.kind == "matmul") inputs.push_back({"b", DType::F32, {s.c, s.f}});
  if (s.kind == "batched") inputs.push_back({"b", DType::F32, {s.n, s.c, s.f}});
  std::string value = sum;
  if (s.epilogue != "none") {
    inputs.push_back({"bias", DType::F32, {s.f}});
    value = sum + " + bias[f]";
  }
  if (s.epilogue == "residual") {
    inputs.push_back({"more", DType::F32, {s.n, s.h, s.w, s.f}});
    value = "max(" + value + " + more[n, y, x, f], 0.0)";
  }
  if (s.epilogue == "relu") value = "max(" + value + ", 0.0)";
  if (s.epilogue == "gelu") value = "(" + value + ") * tanh(" + value + ")";
  std::string operands;
  for (const Operand& input : inputs) {
    std::vector<std::string> dims;
    for (const Dim& dim : input.shape) dims.push_back(dim.to_string());
    operands += fmt::format("{}{}: f32[{}]", operands.empty() ? "" : ", ", input.name,
                            fmt::join(dims, ", "));
  }
  TESSERA_TRY(
      const Definition definition,
      parse_definition(fmt::format("define({}) {{ out: f32[n: {}, y: {}, x: {}, f: {}] = {} }}",
                                   operands, s.n, s.h, s.w, s.f, value)));
  lower::Group group{.results = {"out"}};
  TESSERA_TRY(group.stages, tile::then({}, definition, inputs));
  if (s.kind != "batched") group.weights = {"b", "bias"};
  return group;
}

machine::Machine one_core() {
  machine::Machine machine = machine::host();
  machine.cores = 1;
  return machine;
}

Expected<tune::GroupTask> task_of(const ContractionShape& shape,
                                  const std::vector<lower::GroupSchedule>& others = {}) {
  tune::GroupTask task;
  task.key = task.what = shape.text();
  TESSERA_TRY(task.group, group_of(shape));
  TESSERA_TRY(const lower::GroupCode code, lower::lower_group(task.group, one_core()));
  if (!code.schedule)
    return Diagnostic{.id = "no-schedule", .message = "the group has no schedule"};
  auto space = lower::schedule_space(task.group, one_core(), {});
  std::erase_if(space, [](const lower::ScheduleCandidate& one) {
    return !std::holds_alternative<lower::ContractionSchedule>(one.schedule) &&
           !std::holds_alternative<lower::WinogradSchedule>(one.schedule);
  });
  for (const lower::GroupSchedule& other : others)
    if (std::ranges::find(space, other, &lower::ScheduleCandidate::schedule) == space.end())
      space.push_back({other, 0});
  task.set_space(space, *code.schedule);
  return task;
}

/// Candidates to measure: those that the learned model predicts to be the fastest, where there is
/// one, the lowest estimates of each strategy, and random ones, most of them from the better half.
std::vector<std::size_t> sample(const tune::GroupTask& task, std::size_t count, Rng& rng) {
  std::vector<std::vector<std::size_t>> strategies(2);
  std::vector<lower::ScheduleCandidate> space;
  for (std::size_t i = 0; i < task.schedules.size(); ++i) {
    strategies[task.schedules[i].index() == 0 ? 0 : 1].push_back(i);
    space.push_back({task.schedules[i], task.space[i].cycles});
  }
  std::vector<std::size_t> chosen;
  const auto add = [&](std::size_t candidate) {
    if (candidate != task.usual && std::ranges::find(chosen, candidate) == chosen.end())
      chosen.push_back(candidate);
  };
  if (const auto analytic = lower::analytic_schedule(task.group, one_core(), {}))
    if (const auto position = tune::position_of(task, lower::to_text(*analytic))) add(*position);
  const auto times = lower::predicted_times(task.group, one_core(), {}, space);
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

struct Options {
  std::uint64_t seed = 1;
  std::string from = {};
  std::size_t shapes = 100, candidates = 32, passes = 1;
};

/// Least times of the default and of candidates over all batches and passes.
struct ShapeTimes {
  double usual = std::numeric_limits<double>::infinity();
  std::vector<double> seconds = {};  // infinite: it could not be measured
};
ShapeTimes measured(const tune::GroupTask& task, const std::vector<std::size_t>& candidates,
                    std::size_t passes) {
  constexpr std::size_t kBatch = 8;
  const auto meter =
      tune::process_meter(std::span(&task, 1), {.code = {.machine = one_core(), .threads = 1},
                                                .seconds_per_candidate = 0.015,
                                                .weight_bytes = 8 << 20});
  ShapeTimes times;
  times.seconds.assign(candidates.size(), std::numeric_limits<double>::infinity());
  for (std::size_t pass = 0; pass < passes; ++pass)
    for (std::size_t first = 0; first < candidates.size(); first += kBatch) {
      const std::span batch =
          std::span(candidates).subspan(first, std::min(kBatch, candidates.size() - first));
      const auto timings = meter->measure(0, batch, tune::Meter::Effort::Quick);
      for (std::size_t k = 0; k < batch.size(); ++k) {
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

/// Appends the times of the candidates of a shape, and its default schedule.
void print_times(std::ofstream& out, const tune::GroupTask& task,
                 const std::vector<std::size_t>& candidates, const ShapeTimes& times) {
  for (std::size_t k = 0; k < candidates.size(); ++k)
    if (std::isfinite(times.seconds[k]))
      out << fmt::format("{} | {} | {:.4f} | {:.2f}\n", task.key,
                         task.space[candidates[k]].schedule, times.seconds[k] / times.usual,
                         1e6 * times.usual);
  out << fmt::format("{} | {} | 1 | 0\n", task.key, task.space[task.usual].schedule);
  out.flush();
}

std::set<std::string> shapes_of(const std::string& table) {
  std::set<std::string> shapes;
  for (const auto& [shape, schedules] : candidates_of(table)) shapes.insert(shape);
  return shapes;
}

int repeat(const std::string& table, const Options& options) {
  const std::set<std::string> known = shapes_of(table);
  std::ofstream out(table, std::ios::app);
  for (const auto& [shape, schedules] : candidates_of(options.from)) {
    const auto task = task_of(ContractionShape::parse(shape), schedules);
    if (!task || known.contains(shape)) continue;
    std::vector<std::size_t> candidates;
    for (const lower::GroupSchedule& schedule : schedules)
      if (const auto position = tune::position_of(*task, lower::to_text(schedule)))
        if (*position != task->usual) candidates.push_back(*position);
    print_times(out, *task, candidates, measured(*task, candidates, options.passes));
    fmt::print(stderr, "{}\n", shape);
  }
  return 0;
}

int measure(const std::string& table, const Options& options) {
  const std::set<std::string> known = shapes_of(table);
  std::ofstream out(table, std::ios::app);
  Rng rng(options.seed);
  for (std::size_t i = 0; i < options.shapes; ++i) {
    const ContractionShape shape = draw(rng);
    Rng own(rng.next());
    if (known.contains(shape.text())) continue;
    const auto task = task_of(shape);
    if (!task || task->space.size() < 4) continue;
    const std::vector<std::size_t> candidates = sample(*task, options.candidates, own);
    print_times(out, *task, candidates, measured(*task, candidates, options.passes));
    fmt::print(stderr, "{} of {}: {}\n", i + 1, options.shapes, shape.text());
  }
  return 0;
}

int features(const std::string& table) {
  std::ifstream in(table);
  std::string shape;
  std::optional<lower::ScheduleFeatures> of;
  std::optional<lower::GroupSchedule> usual, analytic;
  fmt::print("{}\n", fmt::join(lower::ScheduleFeatures::names(), " "));
  for (std::string line; std::getline(in, line);) {
    const std::size_t a = line.find(" | "), b = line.find(" | ", a + 3),
                      c = line.find(" | ", b + 3);
    if (c == std::string::npos) continue;
    if (line.substr(0, a) != shape || !of) {
      shape = line.substr(0, a);
      auto made = group_of(ContractionShape::parse(shape));
      if (!made) continue;
      of = lower::ScheduleFeatures::of(*made, one_core(), {});
      analytic = lower::analytic_schedule(*made, one_core(), {});
      usual = lower::learned_schedule(*made, one_core(), {});
      if (!usual) usual = analytic;
    }
    const auto schedule = lower::parse_group_schedule(line.substr(a + 3, b - a - 3));
    if (!schedule || !of) continue;
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
                 "[--shapes N] [--candidates N] [--passes N] [--from TABLE]\n";
    return 2;
  }
  tessera::Options options;
  for (std::size_t i = 2; i + 1 < args.size(); i += 2) {
    if (args[i] == "--from") options.from = args[i + 1];
    if (args[i] == "--from") continue;
    const std::size_t number = std::stoull(args[i + 1]);
    if (args[i] == "--seed") options.seed = number;
    if (args[i] == "--shapes") options.shapes = number;
    if (args[i] == "--candidates") options.candidates = number;
    if (args[i] == "--passes") options.passes = number;
  }
  if (args[0] == "repeat") return tessera::repeat(args[1], options);
  return args[0] == "measure" ? tessera::measure(args[1], options) : tessera::features(args[1]);
}
