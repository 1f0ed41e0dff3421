#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/json.h"
#include "tessera/driver/model.h"

namespace tessera::cli {

void add_convert(CLI::App& app, Context& context) {
  struct Options {
    std::string from, to;
  };
  CLI::App* command = app.add_subcommand("convert", "converts a model between ONNX and text form");
  auto options = std::make_shared<Options>();
  command->add_option("in", options->from, "ONNX file, or graph in text form")->required();
  command
      ->add_option("out", options->to,
                   "output file: text form with extension .tessera or .txt, else ONNX")
      ->required();
  add_common(*command, context);
  command->footer("Example:\n  tessera convert model.onnx model.tessera");
  command->callback([options, &context] {
    if (const auto started = context.start(); !started) return context.fail(started.error());
    const auto model = load_model(options->from);
    if (!model) return context.fail(located(model.error(), {.file = options->from}));
    if (const auto saved = save_model(*model, options->to); !saved)
      return context.fail(located(saved.error(), {.file = options->to}));
    if (context.json)
      print_json({{"written", options->to}});
    else
      fmt::print("{}: {} nodes\n", options->to, model->graph.nodes().size());
  });
}

}  // namespace tessera::cli
