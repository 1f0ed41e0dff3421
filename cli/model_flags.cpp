#include "cli/model_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tessera/driver/program_signature.h"
#include "tessera/driver/runnable_program.h"
#include "tessera/driver/target_selection.h"
#include "tessera/driver/tune_model.h"
#include "tessera/runtime/program_file.h"
#include "tessera/support/stopwatch.h"

namespace tessera::cli {
namespace {

/// Splits `NAME=VALUE` at the last `=`: names may contain one, values do not.
Expected<std::pair<std::string, std::string>> assignment(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return Diagnostic{.id = "cli-assignment",
                      .message = fmt::format("'{}' is not NAME=VALUE", text)};
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

Expected<std::int64_t> size_of(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0)
    return Diagnostic{.id = "cli-size", .message = fmt::format("'{}' is not a size", text)};
  return value;
}

}  // namespace

std::filesystem::path cache_folder(const CompileFlags& flags, const Context& context) {
  return flags.cache == "default" ? context.default_cache()
         : flags.cache == "none"  ? std::filesystem::path()
                                  : std::filesystem::path(flags.cache);
}

ExecutionOptions execution_options(const CompileFlags& flags, const Context& context) {
  return {.threads = flags.threads,
          .memory_limit = context.run_memory(),
          .cache = cache_folder(flags, context),
          .max_iterations = context.max_iterations(),
          .stop = &context.stop};
}

Expected<InputOptions> input_options(const InputFlags& flags, const Context& context) {
  InputOptions result{.memory_limit = context.run_memory()};
  for (const std::string& text : flags.files) {
    // Splits at the first '=': a path may contain one, the name of an input hardly does.
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Diagnostic{.id = "cli-assignment",
                        .message = fmt::format("'{}' is not NAME=FILE.npy", text)};
    result.files[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const std::string& text : flags.dims) {
    TESSERA_TRY(const auto pair, assignment(text));
    TESSERA_TRY(result.dims[pair.first], size_of(pair.second));
  }
  for (const std::string& text : flags.shapes) {
    TESSERA_TRY(const auto pair, assignment(text));
    std::vector<std::int64_t>& shape = result.shapes[pair.first];
    if (pair.second == "scalar") continue;
    for (std::size_t begin = 0; begin <= pair.second.size();) {
      const std::size_t end = std::min(pair.second.find('x', begin), pair.second.size());
      TESSERA_TRY(const std::int64_t extent, size_of(pair.second.substr(begin, end - begin)));
      shape.push_back(extent);
      begin = end + 1;
    }
  }
  if (flags.fill == "sin") {
    result.fill = InputOptions::Fill::Sin;
  } else if (flags.fill.starts_with("random:")) {
    result.fill = InputOptions::Fill::Random;
    TESSERA_TRY(const std::int64_t seed, size_of(flags.fill.substr(7)));
    result.seed = static_cast<std::uint64_t>(seed);
  } else if (!flags.fill.empty()) {
    return Diagnostic{.id = "cli-fill",
                      .message = fmt::format("'{}' is not a known fill", flags.fill),
                      .note = "known fills are sin and random:SEED"};
  }
  return result;
}

void add_size_flags(CLI::App& command, InputFlags& flags) {
  command.add_option("--set", flags.dims, "size of a symbolic dimension, DIM=N");
  command.add_option("--reshape", flags.shapes, "shape of an input, NAME=8x3x224x224");
}

void add_input_flags(CLI::App& command, InputFlags& flags) {
  command.add_option("--input", flags.files, "file of an input, NAME=FILE.npy; may be repeated");
  command.add_option("--fill", flags.fill, "content of the other inputs: sin, or random:SEED");
  add_size_flags(command, flags);
}

void add_threads_flag(CLI::App& command, int& threads) {
  threads = std::max(1, machine::host().cores);
  command.add_option("--threads", threads, "number of threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
}

void add_compile_flags(CLI::App& command, CompileFlags& flags) {
  add_threads_flag(command, flags.threads);
  command
      .add_option(
          "--precision", flags.precision,
          "of matmul and conv operands: f32, bf16, or auto: bf16 (on a GPU f16, then bf16) where "
          "outputs stay within --max-error of f32; on a GPU also tf32, and f16, where, as with "
          "bf16, intermediate tensors have that type too")
      ->check(CLI::IsMember({"f32", "tf32", "f16", "bf16", "auto"}))
      ->capture_default_str();
  command
      .add_option("--max-error", flags.max_error,
                  "largest error of --precision auto against f32, relative to the RMS of an output")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      .add_option("--most-error", flags.max_error)  // former name
      ->check(CLI::NonNegativeNumber)
      ->group("");
  command.add_option("--cache", flags.cache, "folder of the object code cache, or none")
      ->capture_default_str();
  command.add_option("--schedule", flags.schedule,
                     "file of schedules of fusion groups, in place of the default ones");
  add_store_flag(command, flags.store);
  add_pass_flags(command, flags.passes);
}

void add_target_flag(CLI::App& command, CompileFlags& flags) {
  command
      .add_option("--target", flags.target,
                  "target: cpu, or an NVIDIA GPU: cuda for the one of this computer, cuda:sm_80 or "
                  "cuda:sm_90a for an architecture")
      ->check(CLI::IsMember({"cpu", "cuda", "cuda:sm_80", "cuda:sm_90a"}))
      ->capture_default_str();
}

Expected<CompileModelOptions> compile_options(const CompileFlags& flags, const Context& context,
                                              ProgressLine& line) {
  CompileModelOptions options;
  options.code.passes = pass_options(flags.passes);
  options.code.threads = flags.threads;
  TESSERA_TRY_DONE(select_target(flags.target, flags.precision, options, flags.find_gpu));
  options.code.cache = cache_folder(flags, context);
  options.code.memory_limit = context.memory_limit.value_or(0);
  options.code.stop = &context.stop;
  options.code.progress = [&line](std::size_t done, std::size_t count) {
    line.show(done, count, "kernels compiled");
  };
  if (!flags.schedule.empty()) {
    TESSERA_TRY(program::ScheduleBook book, program::read_schedule_book(flags.schedule));
    options.code.schedules = std::make_shared<const program::ScheduleBook>(std::move(book));
    options.requires_schedules = true;
  } else {
    auto tuned = stored_schedules(store_file(flags.store, context), options.code);
    // A damaged default store does not keep models from being compiled.
    if (!tuned && flags.store.store != "default") return std::move(tuned).error();
    if (tuned) options.code.schedules = *std::move(tuned);
  }
  options.max_error = flags.max_error;
  options.keep_graph = flags.keep_graph;
  options.store = existing_store(flags.store, context);
  return options;
}

Expected<Source> open_source(const std::string& path) {
  const Stopwatch watch;
  Source source;
  if (!is_saved_program(path)) {
    TESSERA_TRY(source.model, load_model(path));
    return source;
  }
  TESSERA_TRY(source.program, runtime::load(path));
  source.model = signature_model(*source.program);
  source.seconds = watch.seconds();
  return source;
}

Expected<std::vector<Datum>> make_inputs(const Source& source, InputOptions options) {
  if (source.program) return make_program_inputs(*source.program, std::move(options));
  return tessera::make_inputs(source.model.graph, std::move(options));
}

}  // namespace tessera::cli
