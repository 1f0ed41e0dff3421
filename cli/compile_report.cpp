#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/model_flags.h"
#include "tessera/program/lowerings.h"

namespace tessera::cli {
namespace {

std::string megabytes(std::int64_t bytes) {
  return fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6);
}

void print_steps(const program::CompileReport& report) {
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    const program::CompileReport::Step& step = report.steps[i];
    fmt::print("step {:<5} {}: {}\n", i, step.what, step.strategy);
    if (step.group != nullptr && step.group->is_scheduled && step.group->made->schedule)
      fmt::print("           tuned schedule: {}\n", lower::to_text(*step.group->made->schedule));
  }
  for (const auto& [value, from, to] : report.casts) {
    fmt::print("cast       {} from {} to {} in memory\n", value, to_string(from), to_string(to));
  }
}

}  // namespace

void print_report(const CompiledModel& compiled, const CompileFlags& flags) {
  const program::CompileReport& report = compiled.report;
  if (flags.passes.explain) {
    print_log(compiled.passes);
    print_steps(report);
  }
  print_operators(compiled.before, compiled.after);
  for (const auto& [name, entry] : report.interpreted) {
    fmt::print("interpreted     {} ({}): {}\n", name, entry.count, entry.why);
  }
  for (const std::string& note : report.notes) fmt::print("note            {}\n", note);
  if (report.scheduled_groups > 0)
    fmt::print("schedules       {} of the fusion groups have a tuned or given schedule\n",
               report.scheduled_groups);
  for (const std::string& illegal : report.illegal_schedules)
    fmt::print("left out        schedule of group {}\n", illegal);
  if (compiled.error) {
    fmt::print(
        "precision       {}: error of bf16 against f32 {:.1e} of the RMS, at most {:.1e} allowed\n",
        to_string(compiled.contraction_dtype), *compiled.error, flags.max_error);
  }
  fmt::print("steps           {}, {} kernels, {} of them from the cache\n", report.steps.size(),
             report.kernels, report.kernels_from_cache);
  fmt::print("activations     {}, of which {} are needed at one time\n",
             megabytes(report.arena_bytes), megabytes(report.arena_lower_bound));
  fmt::print("weights         {}\n", megabytes(report.weight_bytes));
  fmt::print("compiled in     {:.2f} s (lowering {:.2f}, machine code {:.2f}, weights {:.2f})\n",
             compiled.seconds, report.seconds_lowering, report.seconds_code,
             report.seconds_weights);
}

std::string summary(const CompiledModel& compiled) {
  std::string text;
  for (const auto& [name, entry] : compiled.report.interpreted) {
    text += fmt::format("interpreted: {} ({}): {}\n", name, entry.count, entry.why);
  }
  for (const std::string& note : compiled.report.notes) text += note + "\n";
  return text + fmt::format("compiled in {:.2f} s: {} steps, {} kernels\n", compiled.seconds,
                            compiled.report.steps.size(), compiled.report.kernels);
}

nlohmann::json report_json(const CompiledModel& compiled) {
  const program::CompileReport& report = compiled.report;
  nlohmann::json interpreted = nlohmann::json::object();
  for (const auto& [name, entry] : report.interpreted) {
    interpreted[name] = {{"count", entry.count}, {"why", entry.why}};
  }
  nlohmann::json steps = nlohmann::json::array();
  for (const auto& step : report.steps) {
    steps.push_back({{"what", step.what}, {"strategy", step.strategy}});
  }
  nlohmann::json casts = nlohmann::json::array();
  for (const auto& [value, from, to] : report.casts) {
    casts.push_back({{"value", value}, {"from", to_string(from)}, {"to", to_string(to)}});
  }
  nlohmann::json object = {{"seconds", compiled.seconds},
                           {"seconds_lowering", report.seconds_lowering},
                           {"seconds_code", report.seconds_code},
                           {"seconds_weights", report.seconds_weights},
                           {"operators", operators_json(compiled.before, compiled.after)},
                           {"kernels", report.kernels},
                           {"kernels_from_cache", report.kernels_from_cache},
                           {"arena_bytes", report.arena_bytes},
                           {"arena_lower_bound", report.arena_lower_bound},
                           {"weight_bytes", report.weight_bytes},
                           {"products", to_string(compiled.contraction_dtype)},
                           {"interpreted", std::move(interpreted)},
                           {"passes", log_json(compiled.passes)},
                           {"steps", std::move(steps)},
                           {"casts", std::move(casts)},
                           {"notes", report.notes}};
  if (compiled.error) object["error"] = *compiled.error;
  return object;
}

}  // namespace tessera::cli
