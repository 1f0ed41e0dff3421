#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/json.h"
#include "cli/model_flags.h"
#include "cli/store_flags.h"
#include "tessera/cost/interleaved_timing.h"
#include "tessera/cost/roofline.h"
#include "tessera/cost/store.h"

namespace tessera::cli {
namespace {

struct CostsOptions {
  std::string model;
  InputFlags inputs;
  CompileFlags compile;
  int rows = 20;
};

/// Accuracy of the cost model against measurements.
struct ModelAccuracy {
  double ratio = 1;  // of modelled over measured: the median
  double off = 1;    // by which factor the middle one is wrong
  double rank = 1;
};

ModelAccuracy accuracy_of(const std::vector<double>& modelled,
                          const std::vector<double>& measured) {
  if (measured.empty()) return {};
  std::vector<double> ratios, off;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    ratios.push_back(modelled[i] / measured[i]);
    off.push_back(std::max(ratios[i], 1 / ratios[i]));
  }
  return {.ratio = cost::percentile(ratios, 0.5),
          .off = cost::percentile(off, 0.5),
          .rank = cost::rank_correlation(modelled, measured)};
}

nlohmann::json to_json(const ModelAccuracy& near) {
  return {
      {"median_ratio", near.ratio}, {"median_factor", near.off}, {"rank_correlation", near.rank}};
}

std::string accuracy_text(const ModelAccuracy& near) {
  return fmt::format("median ratio {:.2f}, half within a factor of {:.2f}, rank correlation {:.3f}",
                     near.ratio, near.off, near.rank);
}

// --- content of a store -----------------------------------------------------------------------

struct TargetMeasurements {
  cost::Target target;
  std::vector<cost::Measurement> measurements;  // the longest first
  std::map<std::string, std::size_t> kinds;
  ModelAccuracy near;
};

Expected<TargetMeasurements> measurements_of(const cost::Store& store, const cost::Target& target) {
  TargetMeasurements held{.target = target, .measurements = {}, .kinds = {}, .near = {}};
  TESSERA_TRY(held.measurements, store.measurements(target.name));
  const cost::Roofline roofline(target, held.measurements);
  std::vector<double> modelled, measured;
  for (const cost::Measurement& one : held.measurements) {
    const std::string kind = cost::kind_of(one.strategy);
    ++held.kinds[kind];
    measured.push_back(one.seconds);
    modelled.push_back(roofline.seconds({.kind = kind,
                                         .operations = one.operations,
                                         .bytes = one.bytes,
                                         .launches = one.launches}));
  }
  held.near = accuracy_of(modelled, measured);
  std::ranges::stable_sort(held.measurements, std::greater{}, &cost::Measurement::seconds);
  return held;
}

void print_measurements(const TargetMeasurements& held, int rows) {
  fmt::print("target {}: {} kernels, {} thread{}, {}\n", held.target.name, held.measurements.size(),
             held.target.threads, held.target.threads == 1 ? "" : "s", held.target.version);
  std::string kinds;
  for (const auto& [kind, count] : held.kinds)
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, kind);
  if (!kinds.empty()) fmt::print("  kinds     {}\n", kinds);
  if (!held.measurements.empty()) fmt::print("  roofline  {}\n", accuracy_text(held.near));
  for (std::size_t i = 0; i < held.measurements.size() && static_cast<int>(i) < rows; ++i) {
    const cost::Measurement& one = held.measurements[i];
    fmt::print("{:>12.4f} ms  {} [{}]\n", one.seconds * 1e3, one.what, one.strategy);
  }
}

nlohmann::json to_json(const TargetMeasurements& held, int rows) {
  nlohmann::json largest = nlohmann::json::array();
  for (std::size_t i = 0; i < held.measurements.size() && static_cast<int>(i) < rows; ++i) {
    const cost::Measurement& one = held.measurements[i];
    largest.push_back({{"key", one.key},
                       {"what", one.what},
                       {"strategy", one.strategy},
                       {"seconds", one.seconds},
                       {"best_seconds", one.best},
                       {"samples", one.samples},
                       {"when", one.when}});
  }
  return {{"name", held.target.name},
          {"version", held.target.version},
          {"cpu", held.target.machine.cpu},
          {"threads", held.target.threads},
          {"kernels", held.measurements.size()},
          {"kinds", held.kinds},
          {"roofline", to_json(held.near)},
          {"largest", std::move(largest)}};
}

Expected<Done> list(const CostsOptions& options, const Context& context) {
  const std::filesystem::path file = store_file(options.compile.store, context);
  TESSERA_TRY(const cost::Store store, cost::Store::open_existing(file));
  TESSERA_TRY(const std::vector<cost::Target> targets, store.targets());
  nlohmann::json all = nlohmann::json::array();
  for (const cost::Target& target : targets) {
    if (!options.compile.store.target.empty() && options.compile.store.target != target.name)
      continue;
    TESSERA_TRY(const TargetMeasurements held, measurements_of(store, target));
    if (context.json)
      all.push_back(to_json(held, options.rows));
    else
      print_measurements(held, options.rows);
  }
  if (context.json)
    print_json({{"store", file.string()}, {"targets", std::move(all)}});
  else if (targets.empty())
    fmt::print("no measurements yet\n");
  return Done{};
}

// --- cost of a model --------------------------------------------------------------------------

Expected<Done> show_costs(const CostsOptions& options, Context& context) {
  TESSERA_TRY(const InputOptions given, input_options(options.inputs, context));
  TESSERA_TRY(const Model model, load_model(options.model));
  TESSERA_TRY(const InputShapes shapes, input_shapes(model.graph, given));
  ProgressLine line(context);
  TESSERA_TRY(const CompileModelOptions compile, compile_options(options.compile, context, line));
  TESSERA_TRY(const Graph graph, specialized(model.graph, shapes));
  TESSERA_TRY(const passes::Optimized optimized, passes::optimize(graph, compile.code.passes));
  const cost::ModelOptions cost_as = cost_options(options.compile.store, compile.code, context);
  TESSERA_TRY(const auto costs, cost::open_model(cost_as));
  TESSERA_TRY(const cost::Estimate before, costs->estimate(optimized.graph));
  TESSERA_TRY(const cost::Estimate after, costs->measure(optimized.graph));
  double run = 0;
  if (costs->can_measure()) {
    const cost::CompareOptions how{
        .code = compile.code, .blocks = 10, .block_seconds = 0.05, .stop = &context.stop};
    TESSERA_TRY(run, cost::time_program(optimized.graph, how));
  }
  line.clear();

  double modelled_sum = 0;
  std::vector<double> modelled, measured;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < after.kernels.size(); ++i) {
    order.push_back(i);
    modelled_sum += before.kernels[i].modelled;
    if (!after.kernels[i].measured) continue;
    modelled.push_back(before.kernels[i].modelled);
    measured.push_back(after.kernels[i].seconds);
  }
  const ModelAccuracy near = accuracy_of(modelled, measured);
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::size_t i) { return after.kernels[i].seconds; });
  if (context.json) {
    nlohmann::json kernels = nlohmann::json::array();
    for (const std::size_t i : order) {
      const cost::Kernel& kernel = after.kernels[i];
      kernels.push_back({{"key", kernel.key},
                         {"what", kernel.what},
                         {"strategy", kernel.strategy},
                         {"rounds", kernel.trip_count},
                         {"seconds", kernel.seconds},
                         {"modelled_seconds", before.kernels[i].modelled},
                         {"measured", kernel.measured},
                         {"known_before", before.kernels[i].measured}});
    }
    nlohmann::json object{{"kernels", std::move(kernels)},
                          {"seconds", after.seconds},
                          {"modelled_seconds", modelled_sum},
                          {"measured", after.measured},
                          {"roofline", to_json(near)}};
    if (run > 0) object["run_seconds"] = run;
    print_json(object);
    return Done{};
  }
  fmt::print("{:>10} {:>10}  {}\n", "ms", "modelled", "what");
  for (std::size_t row = 0; row < order.size() && static_cast<int>(row) < options.rows; ++row) {
    const cost::Kernel& kernel = after.kernels[order[row]];
    fmt::print("{:>10.4f} {:>10.4f}  {} [{}]{}\n", kernel.seconds * 1e3,
               before.kernels[order[row]].modelled * 1e3, kernel.what, kernel.strategy,
               kernel.measured ? "" : ", not measured");
  }
  if (static_cast<int>(order.size()) > options.rows)
    fmt::print("  … and {} more (--rows)\n", order.size() - static_cast<std::size_t>(options.rows));
  fmt::print("{:>10.4f} {:>10.4f}  all {}\n", after.seconds * 1e3, modelled_sum * 1e3,
             order.size());
  if (run > 0)
    fmt::print("{:>10.4f}             the whole program; the sum is {:+.1f} % of it away\n",
               run * 1e3, 100 * (after.seconds / run - 1));
  fmt::print("roofline  {}\n", accuracy_text(near));
  return Done{};
}

}  // namespace

void add_costs(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("costs", "shows the cost of kernels: measured ones, or those of a model");
  auto options = std::make_shared<CostsOptions>();
  command->add_option("model", options->model,
                      "model whose kernels are measured (if not in the store yet) and shown");
  add_measured_on_flag(*command, options->compile.store);
  add_size_flags(*command, options->inputs);
  command->add_option("--rows", options->rows, "number of kernels to show")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_compile_flags(*command, options->compile);
  add_common(*command, context);
  command->footer(
      "Examples:\n"
      "  tessera costs\n"
      "  tessera costs resnet50.onnx --threads 1 --store costs.sqlite --json\n"
      "\n"
      "The time of a kernel is the least median over several blocks of runs, with inputs in the\n"
      "cache and weights in memory; the roofline model estimates kernels that were not measured.");
  command->callback([options, &context] {
    if (const auto started = context.start(); !started) return context.fail(started.error());
    const auto done =
        options->model.empty() ? list(*options, context) : show_costs(*options, context);
    if (!done) context.fail(located(done.error(), {.file = options->model}));
  });
}

}  // namespace tessera::cli
