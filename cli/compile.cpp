#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/json.h"
#include "cli/report.h"
#include "cli/search.h"
#include "tessera/driver/event_records.h"
#include "tessera/runtime/program_file.h"
#include "tessera/support/file.h"

namespace tessera::cli {
namespace {

struct CompileOptions {
  std::string model, out, machine = "host", save_schedules;
  InputFlags inputs;
  CompileFlags compile;
  SearchFlags search;
  ReportFlags report;
};

Expected<Done> compile(const CompileOptions& options, Context& context) {
  TESSERA_TRY_DONE(context.start(Limits::Program));
  TESSERA_TRY(const InputOptions given, input_options(options.inputs, context));
  ProgressLine line(context);
  TESSERA_TRY(CompileModelOptions compile_as, compile_options(options.compile, context, line));
  const bool is_cpu = options.compile.target == "cpu";
  if (is_cpu) {
    TESSERA_TRY(compile_as.code.machine, machine::named(options.machine));
  }
  if (!is_cpu && options.machine != "host")
    return Diagnostic{.id = "cli-target",
                      .message = fmt::format("--target {} cannot be combined with --machine",
                                             options.compile.target),
                      .note = "a machine is a kind of CPU"};
  if (options.machine != "host" && compile_as.precision == Precision::Auto)
    return Diagnostic{.id = "cli-precision",
                      .message = fmt::format("--precision auto needs to run the model, which "
                                             "code for {} cannot do on this machine",
                                             options.machine),
                      .help = "use --precision f32 or bf16"};
  SearchFlags search = options.search;
  search.costs.store = options.compile.store.store;
  TESSERA_TRY(compile_as.search, search_options(search, context, line));
  if (compile_as.search) {
    compile_as.search->exact = compile_as.code.passes.exact;
    compile_as.search->trials = options.compile.passes.explain;
  }
  compile_as.keep_graph = options.report.is_asked();
  TESSERA_TRY(const Model model, load_model(options.model));
  TESSERA_TRY(const InputShapes shapes, input_shapes(model.graph, given));
  TESSERA_TRY(const CompiledModel compiled, compile_model(model, shapes, compile_as));
  line.clear();
  if (!options.out.empty()) TESSERA_TRY_DONE(runtime::save(compiled.program, options.out));
  if (!options.save_schedules.empty()) {
    const std::string text = program::to_text(schedules_of(compiled.report));
    TESSERA_TRY_DONE(write_file(options.save_schedules, [&](std::ostream& file) { file << text; }));
  }
  if (options.report.is_asked()) {
    report::EventLog log("compile");
    TESSERA_TRY_DONE(add_model_records(log, {.model = model,
                                             .file = options.model,
                                             .program = compiled.program,
                                             .threads = options.compile.threads,
                                             .compiled = &compiled,
                                             .options = &compile_as}));
    TESSERA_TRY_DONE(write_report(log, options.report));
  }
  if (context.json) {
    nlohmann::json object = report_json(compiled);
    if (compiled.search) object["search"] = search_json(*compiled.search);
    print_json(object);
  } else {
    print_report(compiled, options.compile);
    if (compiled.search) print_search(*compiled.search, options.compile.passes.explain);
    if (!options.out.empty()) fmt::print("written to      {}\n", options.out);
  }
  return Done{};
}

}  // namespace

void add_compile(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("compile", "compiles a model to a program for this machine or another");
  auto options = std::make_shared<CompileOptions>();
  command->add_option("model", options->model, "ONNX file, or graph in text form")->required();
  command->add_option("-o,--out", options->out, "output file, MODEL.tsr");
  command
      ->add_option("--machine", options->machine,
                   "target machine: host, neoverse-v1, haswell, sapphirerapids, …")
      ->capture_default_str();
  add_size_flags(*command, options->inputs);
  add_compile_flags(*command, options->compile);
  add_target_flag(*command, options->compile);
  command->add_option("--save-schedules", options->save_schedules,
                      "file for the schedules of all fusion groups, as --schedule reads them");
  add_search_flags(*command, options->search);
  add_report_flags(*command, options->report);
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera compile bert.onnx -o bert.tsr --set batch=2 --threads 2\n"
      "  tessera compile bert.onnx -o bert.tsr --machine haswell\n"
      "  tessera compile model.onnx -o model.tsr --search --budget 60s\n"
      "  tessera compile model.onnx -o model.tsr --report page.html\n"
      "\n"
      "--memory-limit limits the activations. Values that do not fit are recomputed where that is\n"
      "cheap, and otherwise kept in a temporary file.");
  command->callback([options, &context] {
    if (const auto done = compile(*options, context); !done)
      context.fail(located(done.error(), {.file = options->model}));
  });
}

}  // namespace tessera::cli
