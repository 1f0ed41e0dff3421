#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/passes.h"
#include "tessera/driver/compile_model.h"
#include "tessera/driver/inputs.h"
#include "tessera/driver/ready.h"

namespace tessera::cli {

/// What the inputs of a model are.
struct InputFlags {
  std::vector<std::string> files, dims, shapes;
  std::string fill;
};
void add_size_flags(CLI::App& command, InputFlags& flags);
void add_input_flags(CLI::App& command, InputFlags& flags);
Expected<InputOptions> input_options(const InputFlags& flags, const Context& context);

/// How a model is compiled.
struct CompileFlags {
  PassFlags passes;
  std::string target = "cpu", precision = "f32", cache = "default";
  double max_error = 1e-2;
  int threads = 1;
};
void add_compile_flags(CLI::App& command, CompileFlags& flags);
void add_target_flag(CLI::App& command, CompileFlags& flags);
Expected<CompileModelOptions> compile_options(const CompileFlags& flags, const Context& context,
                                              ProgressLine& line);
/// The folder of object code; empty if none is kept.
std::filesystem::path cache_folder(const CompileFlags& flags, const Context& context);
/// Options to run a compiled model with.
ReadyOptions ready_options(const CompileFlags& flags, const Context& context);
void add_threads_flag(CLI::App& command, int& threads);

/// A model, or the signature of a saved program with the program itself.
struct Source {
  Model model = {};
  std::optional<runtime::Program> program = {};
  double seconds = 0;  // to read it
};
Expected<Source> open_source(const std::string& path);
/// The inputs of a model or program.
Expected<std::vector<Datum>> make_inputs(const Source& source, InputOptions options);

/// How a model was compiled, for people and for scripts.
void print_report(const CompiledModel& compiled, const CompileFlags& flags);
/// The same in a line or a few.
std::string summary(const CompiledModel& compiled);
nlohmann::json report_json(const CompiledModel& compiled);

}  // namespace tessera::cli
