#include "cli/app.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <new>

#include "cli/context.h"

namespace tessera::cli {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  tessera inspect model.onnx\n"
    "  tessera run model.onnx --fill sin --save out/\n"
    "  tessera run model.onnx --input x=x.npy --compare model.golden.json --tolerance 1e-4\n"
    "  tessera compile model.onnx -o model.tsr\n"
    "  tessera bench model.onnx --fill sin --against onnxruntime\n"
    "  tessera convert model.onnx model.tessera\n"
    "  tessera optimize model.onnx faster.onnx --explain\n"
    "  tessera prove model.onnx optimized.onnx\n"
    "  tessera rules prove\n"
    "\n"
    "Exit codes: 0 success, 1 the answer is no (outputs differ, a test failed), 2 wrong usage,\n"
    "3 bad input, 4 a limit was reached, 5 the answer is not known, 130 interrupted,\n"
    "70 an error in tessera itself.";

int parse_and_run(int argc, char** argv) {
  CLI::App app{"tessera: an optimizing compiler for tensor programs"};
  app.set_version_flag("--version", std::string(TESSERA_VERSION));
  app.require_subcommand(1);
  app.footer(kFooter);
  Context context;
  add_inspect(app, context);
  add_run(app, context);
  add_compile(app, context);
  add_bench(app, context);
  add_profile(app, context);
  add_costs(app, context);
  add_convert(app, context);
  add_optimize(app, context);
  add_conformance(app, context);
  add_operators(app, context);
  add_prove(app, context);
  add_rules(app, context);
  add_explain(app, context);
  add_machine(app, context);
  add_kernel(app, context);
  add_verify(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kSuccess : kUsage;
  } catch (const std::bad_alloc&) {
    context.fail({.id = "memory-limit",
                  .message = "there is not enough memory",
                  .help = "allow more with --memory-limit"});
  }
  return context.exit_code;
}

}  // namespace

int run_app(int argc, char** argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "internal error: {}\nplease report this with the command and the model\n",
               problem.what());
    return kInternal;
  }
}

}  // namespace tessera::cli
