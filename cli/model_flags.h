#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/passes.h"
#include "cli/store_flags.h"
#include "tessera/driver/compile_model.h"
#include "tessera/driver/inputs.h"
#include "tessera/driver/runnable_program.h"
#include "tessera/driver/target_selection.h"

namespace tessera::cli {

/// Flags that describe the inputs of a model.
struct InputFlags {
  std::vector<std::string> files, dims, shapes;
  std::string fill;
};
void add_size_flags(CLI::App& command, InputFlags& flags);
void add_input_flags(CLI::App& command, InputFlags& flags);
Expected<InputOptions> input_options(const InputFlags& flags, const Context& context);

/// Flags of compilation.
struct CompileFlags {
  PassFlags passes;
  std::string target = "cpu", precision = "f32", cache = "default", schedule = {};
  StoreFlags store = {};  // tuned schedules
  double max_error = 1e-2;
  int threads = 1;
  bool keep_graph = false;  // set by commands that write a report
  FindGpu find_gpu = runtime::cuda::this_gpu;
};
void add_compile_flags(CLI::App& command, CompileFlags& flags);
void add_target_flag(CLI::App& command, CompileFlags& flags);
Expected<CompileModelOptions> compile_options(const CompileFlags& flags, const Context& context,
                                              ProgressLine& line);
/// Cache folder of object code; empty if there is no cache.
std::filesystem::path cache_folder(const CompileFlags& flags, const Context& context);
/// Options to run a compiled model with.
ExecutionOptions execution_options(const CompileFlags& flags, const Context& context);
void add_threads_flag(CLI::App& command, int& threads);

/// Model, or a saved program with its signature as a model.
struct Source {
  Model model = {};
  std::optional<runtime::Program> program = {};
  double seconds = 0;  // time to read it
};
Expected<Source> open_source(const std::string& path);
/// Reads or generates the inputs of a model or program.
Expected<std::vector<Datum>> make_inputs(const Source& source, InputOptions options);

/// Compilation report in readable form and as JSON.
void print_report(const CompiledModel& compiled, const CompileFlags& flags);
/// Short form of the report.
std::string summary(const CompiledModel& compiled);
nlohmann::json report_json(const CompiledModel& compiled);

}  // namespace tessera::cli
