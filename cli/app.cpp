#include "cli/app.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "cli/context.h"
#include "cli/suggest.h"

namespace tessera::cli {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  tessera inspect model.onnx\n"
    "  tessera run model.onnx --fill sin --save out/\n"
    "  tessera run model.onnx --input x=x.npy --compare model.golden.json --tolerance 1e-4\n"
    "  tessera compile model.onnx -o model.tsr\n"
    "  tessera tune model.onnx --budget 60s\n"
    "  tessera bench model.onnx --fill sin --against onnxruntime\n"
    "  tessera report model.onnx -o page.html\n"
    "  tessera convert model.onnx model.tessera\n"
    "  tessera optimize model.onnx faster.onnx --explain\n"
    "  tessera prove model.onnx optimized.onnx\n"
    "  tessera rules prove\n"
    "\n"
    "Exit codes: 0 success, 1 negative result (outputs differ, a test failed), 2 wrong usage,\n"
    "3 bad input, 4 a limit was reached, 5 unknown result, 130 interrupted,\n"
    "70 internal error.";

Diagnostic out_of_memory() {
  return {.id = "memory-limit",
          .message = "there is not enough memory",
          .help = "allow more with --memory-limit"};
}

std::terminate_handler previous_handler = nullptr;  // NOLINT(*-avoid-non-const-global-variables)

/// Reports that memory ran out where nothing can be caught: the destructor of nlohmann::json
/// allocates, and LLVM is compiled without exceptions. Allocates nothing itself.
void report_termination() {
  try {
    if (const auto problem = std::current_exception()) std::rethrow_exception(problem);
  } catch (const std::bad_alloc&) {
    std::fputs(
        "error[memory-limit]: there is not enough memory\n"
        "  help: allow more with --memory-limit\n",
        stderr);
    std::_Exit(kLimit);
  } catch (...) {  // as without this handler
  }
  previous_handler();
}

int parse_and_run(int argc, char** argv) {
  CLI::App app{"tessera: an optimizing compiler for tensor programs"};
  app.set_version_flag("--version", std::string(TESSERA_VERSION));
  app.require_subcommand(1);
  app.footer(kFooter);
  Context context;
  add_inspect(app, context);
  add_run(app, context);
  add_compile(app, context);
  add_tune(app, context);
  add_bench(app, context);
  add_profile(app, context);
  add_report(app, context);
  add_costs(app, context);
  add_convert(app, context);
  add_optimize(app, context);
  add_conformance(app, context);
  add_operators(app, context);
  add_passes(app, context);
  add_prove(app, context);
  add_rules(app, context);
  add_explain(app, context);
  add_mutants(app, context);
  add_machine(app, context);
  add_kernel(app, context);
  add_verify(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return kSuccess;
    if (const std::string nearest = suggestion(app, {argv + 1, argv + argc}); !nearest.empty())
      print_error(fmt::format("  help: did you mean {}?\n", nearest));
    return kUsage;
  } catch (const std::bad_alloc&) {
    context.fail(out_of_memory());
  }
  return context.exit_code;
}

/// Reopens closed standard streams, so that no other file gets their descriptors: writes to
/// standard output then fail, those to standard error are discarded.
void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int lowest =
        ::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

/// Flushes standard output; false if a write failed.
bool flush_output() {
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

int lost_output(int error) {
  const Diagnostic diagnostic{.id = "output-unwritable",
                              .where = {.file = "standard output"},
                              .message = std::strerror(error == 0 ? EIO : error)};
  print_error(to_string(diagnostic) + "\n");
  return kBadInput;
}

}  // namespace

int run_app(int argc, char** argv) {
  reserve_standard_streams();
  previous_handler = std::set_terminate(report_termination);
  try {
    const int exit_code = parse_and_run(argc, argv);
    return flush_output() ? exit_code : lost_output(errno);
  } catch (const std::bad_alloc&) {  // before there was a context
    print_error(to_string(out_of_memory()) + "\n");
    return kLimit;
  } catch (const std::exception& problem) {
    const auto* const failed_call = dynamic_cast<const std::system_error*>(&problem);
    if (failed_call != nullptr && std::ferror(stdout) != 0)
      return lost_output(failed_call->code().value());
    print_error(fmt::format(
        "internal error: {}\nplease report this with the command and the model\n", problem.what()));
    return kInternal;
  }
}

}  // namespace tessera::cli
