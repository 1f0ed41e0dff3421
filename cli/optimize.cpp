#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/context.h"
#include "cli/json.h"
#include "cli/passes.h"
#include "tessera/driver/model.h"
#include "tessera/passes/portable.h"

namespace tessera::cli {
namespace {

struct Options {
  std::string from, to;
  PassFlags passes;
};

Expected<Done> optimize_file(const Options& options, Context& context) {
  TESSERA_TRY_DONE(context.start());
  auto model = load_model(options.from);
  if (!model) return located(std::move(model).error(), {.file = options.from});
  const Inventory before = inspect(model->graph);
  auto made = passes::optimize(model->graph, pass_options(options.passes));
  if (!made) return located(std::move(made).error(), {.file = options.from});
  model->graph = std::move(made->graph);
  const Inventory after = inspect(model->graph);
  if (!is_text_form(options.to)) {
    TESSERA_TRY(model->graph, passes::portable(model->graph));
  }
  if (auto saved = save_model(*model, options.to); !saved)
    return located(std::move(saved).error(), {.file = options.to});
  if (context.json) {
    print_json({{"written", options.to},
                {"operators", operators_json(before, after)},
                {"nodes", {{"original", before.nodes}, {"optimized", after.nodes}}},
                {"parameter_bytes",
                 {{"original", before.parameter_bytes}, {"optimized", after.parameter_bytes}}},
                {"passes", log_json(made->log)}});
    return Done{};
  }
  if (options.passes.explain) print_log(made->log);
  if (!context.quiet) print_operators(before, after);
  return Done{};
}

}  // namespace

void add_optimize(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("optimize", "writes a model that computes the same with less work");
  auto options = std::make_shared<Options>();
  command->add_option("in", options->from, "an ONNX file, or a graph in text form")->required();
  command->add_option("out", options->to, "text form if it ends in .tessera or .txt, else ONNX")
      ->required();
  add_pass_flags(*command, options->passes);
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera optimize model.onnx faster.onnx --explain\n"
      "\n"
      "Only what helps on every machine is done; any runtime can use the result.");
  command->callback([options, &context] {
    if (auto done = optimize_file(*options, context); !done) context.fail(done.error());
  });
}

}  // namespace tessera::cli
