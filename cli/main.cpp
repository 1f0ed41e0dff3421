#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <new>

#include "cli/context.h"

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

int run(int argc, char** argv) {
  CLI::App app{"tessera: an optimizing compiler for tensor programs"};
  app.set_version_flag("--version", std::string(TESSERA_VERSION));
  app.require_subcommand(1);
  app.footer(kFooter);
  tessera::cli::Context context;
  tessera::cli::add_inspect(app, context);
  tessera::cli::add_run(app, context);
  tessera::cli::add_compile(app, context);
  tessera::cli::add_bench(app, context);
  tessera::cli::add_profile(app, context);
  tessera::cli::add_costs(app, context);
  tessera::cli::add_convert(app, context);
  tessera::cli::add_optimize(app, context);
  tessera::cli::add_conformance(app, context);
  tessera::cli::add_operators(app, context);
  tessera::cli::add_prove(app, context);
  tessera::cli::add_rules(app, context);
  tessera::cli::add_explain(app, context);
  tessera::cli::add_machine(app, context);
  tessera::cli::add_kernel(app, context);
  tessera::cli::add_verify(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? tessera::cli::kSuccess : tessera::cli::kUsage;
  } catch (const std::bad_alloc&) {
    context.fail({.id = "memory-limit",
                  .message = "there is not enough memory",
                  .help = "allow more with --memory-limit"});
  }
  return context.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "internal error: {}\nplease report this with the command and the model\n",
               problem.what());
    return tessera::cli::kInternal;
  }
}
