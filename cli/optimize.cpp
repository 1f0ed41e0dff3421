#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/json.h"
#include "cli/model_flags.h"
#include "cli/passes.h"
#include "cli/report.h"
#include "cli/search.h"
#include "tessera/driver/event_records.h"
#include "tessera/driver/model.h"
#include "tessera/passes/portable.h"

namespace tessera::cli {
namespace {

struct OptimizeOptions {
  std::string from, to;
  InputFlags sizes;
  PassFlags passes;
  SearchFlags search;
  ReportFlags report;
  int threads = 1;
};

/// Specializes the graph to the sizes of the command line, if any.
Expected<Graph> sized(const Graph& graph, const InputFlags& flags, const Context& context) {
  if (flags.dims.empty() && flags.shapes.empty()) return graph;
  TESSERA_TRY(const InputOptions given, input_options(flags, context));
  TESSERA_TRY(const InputShapes shapes, input_shapes(graph, given));
  return specialized(graph, shapes);
}

Expected<Done> optimize_file(const OptimizeOptions& options, Context& context) {
  TESSERA_TRY_DONE(context.start(options.search.search ? Limits::Program : Limits::Process));
  ProgressLine line(context);
  TESSERA_TRY(std::optional<SearchOptions> search, search_options(options.search, context, line));
  auto model = load_model(options.from);
  if (!model) return located(std::move(model).error(), {.file = options.from});
  TESSERA_TRY(model->graph, sized(model->graph, options.sizes, context));
  const Inventory before = inspect(model->graph);
  const Model original = options.report.is_asked() ? *model : Model();
  auto made = passes::optimize(model->graph, pass_options(options.passes));
  if (!made) return located(std::move(made).error(), {.file = options.from});
  model->graph = std::move(made->graph);
  std::optional<SearchReport> found;
  if (search) {
    search->exact = options.passes.numerics == "exact";
    search->trials = options.passes.explain;
    auto better = search_graph(model->graph,
                               {.threads = options.threads,
                                .passes = {.exact = search->exact},
                                .cache = context.default_cache()},
                               *search);
    if (!better) return located(std::move(better).error(), {.file = options.from});
    model->graph = std::move(better->graph);
    found = std::move(better->report);
    line.clear();
  }
  const Inventory after = inspect(model->graph);
  if (!is_text_form(options.to)) {
    TESSERA_TRY(model->graph, passes::portable(model->graph));
  }
  if (auto saved = save_model(*model, options.to); !saved)
    return located(std::move(saved).error(), {.file = options.to});
  if (options.report.is_asked()) {
    report::EventLog log("optimize");
    log.add(report::Target{.numerics = options.passes.numerics});
    add_model(log, original, options.from);
    TESSERA_TRY(const std::vector<RewriteGain> gains,
                rewrite_gains(original.graph, made->log,
                              {.code = {.threads = options.threads,
                                        .passes = pass_options(options.passes),
                                        .cache = context.default_cache()},
                               .store = existing_store(options.search.costs, context)}));
    TESSERA_TRY_DONE(add_pass_records(log, made->log, gains));
    if (found) TESSERA_TRY_DONE(add_search(log, *found));
    add_rewritten_graph(
        log, {.which = "optimized", .original = original.graph, .rewritten = model->graph});
    TESSERA_TRY_DONE(write_report(log, options.report));
  }
  if (context.json) {
    nlohmann::json object = {
        {"written", options.to},
        {"operators", operators_json(before, after)},
        {"nodes", {{"original", before.nodes}, {"optimized", after.nodes}}},
        {"parameter_bytes",
         {{"original", before.parameter_bytes}, {"optimized", after.parameter_bytes}}},
        {"passes", log_json(made->log)}};
    if (found) object["search"] = search_json(*found);
    print_json(object);
    return Done{};
  }
  if (options.passes.explain) print_log(made->log);
  if (!context.quiet) print_operators(before, after);
  if (found && (!context.quiet || options.passes.explain))
    print_search(*found, options.passes.explain);
  return Done{};
}

}  // namespace

void add_optimize(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("optimize", "optimizes a model and writes an equivalent one");
  auto options = std::make_shared<OptimizeOptions>();
  command->add_option("in", options->from, "ONNX file, or graph in text form")->required();
  command
      ->add_option("out", options->to,
                   "output file: text form with extension .tessera or .txt, else ONNX")
      ->required();
  add_pass_flags(*command, options->passes);
  add_size_flags(*command, options->sizes);
  add_search_flags(*command, options->search);
  add_report_flags(*command, options->report);
  add_threads_flag(*command, options->threads);
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera optimize model.onnx faster.onnx --explain\n"
      "  tessera optimize model.onnx faster.onnx --search --budget 60s\n"
      "\n"
      "Only machine-independent optimizations are applied, so that any runtime can use the "
      "result.\n"
      "--search also applies rewrites that are faster on this machine with tessera's code:\n"
      "docs/search.md.");
  command->callback([options, &context] {
    if (auto done = optimize_file(*options, context); !done) context.fail(done.error());
  });
}

}  // namespace tessera::cli
