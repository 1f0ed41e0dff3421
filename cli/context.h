#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "tessera/support/expected.h"

namespace CLI {
class App;
}

namespace tessera::cli {

/// Exit codes of the process, a stable interface for scripts.
enum ExitCode : int {
  kSuccess = 0,
  kNegativeResult = 1,  // negative result: outputs differ, a test failed
  kUsage = 2,           // wrong command line
  kBadInput = 3,        // a diagnostic about an input
  kLimit = 4,           // --memory-limit or --time-limit was reached
  kUnknown = 5,         // neither proved nor refuted
  kInterrupted = 130,
  kInternal = 70,  // internal error, a bug in Tessera
};

/// Scope of --memory-limit: the process, or the activations of the compiled program.
enum class Limits { Process, Program };

/// State shared by all commands: limits, output format, exit code.
struct Context {
  bool json = false;
  bool quiet = false;
  std::string memory_limit_text, time_limit_text;
  std::optional<std::int64_t> memory_limit;  // bytes, if there is one
  std::atomic<bool> stop = false;
  int exit_code = kSuccess;
  /// Prints a partial result when a command exceeds its time limit, and returns the exit code;
  /// without it, reaching the limit is an error.
  std::function<int()> at_time_limit = {};

  /// Parses the limits and enforces them. From here on, Ctrl-C sets `stop`.
  Expected<Done> start(Limits memory = Limits::Process);
  /// Ends the time limit, before a result is printed that the limit must not interrupt.
  void end_time_limit() { watchdog_.reset(); }
  /// Limit on the bytes of inputs and results of a run: --memory-limit, or three quarters of the
  /// computer's memory.
  std::int64_t run_memory() const;

  /// Limit on loop iterations, if no time limit ends them.
  std::int64_t max_iterations() const;

  /// Default cache folder of object code and measurements. Empty, after a warning, if it is not
  /// writable.
  const std::filesystem::path& default_cache() const;

  void fail(const Diagnostic& diagnostic);

 private:
  Diagnostic out_of_time(const Diagnostic::Where& where) const;
  void print(const Diagnostic& diagnostic) const;
  void listen();

  std::atomic<bool> interrupted_ = false;
  mutable std::optional<std::filesystem::path> default_cache_;  // computed on first use
  std::unique_ptr<std::jthread> watchdog_, listener_;
};

/// Writes to standard error; failures are ignored.
void print_error(const std::string& text);

/// Adds the flags that all commands share.
void add_common(CLI::App& command, Context& context);

/// Progress line on a terminal, which is overwritten in place; silent elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(const Context& context);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::size_t done, std::size_t all, std::string_view what);
  void clear();

 private:
  bool on_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

/// Progress line of work in stages: the remaining time of a stage is estimated from its own
/// progress.
class StageProgress {
 public:
  explicit StageProgress(const Context& context) : context_(context) {}
  void operator()(std::string_view stage, std::size_t done, std::size_t all);

 private:
  const Context& context_;
  std::optional<ProgressLine> line_;
  std::string stage_;
};

/// Parses `1536`, `512MB`, `2GiB`, and `90`, `90s`, `2m`, `1h`.
Expected<std::int64_t> parse_bytes(const std::string& text);
Expected<double> parse_seconds(const std::string& text);

// The commands, one file each.
void add_inspect(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_compile(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_profile(CLI::App& app, Context& context);
void add_costs(CLI::App& app, Context& context);
void add_convert(CLI::App& app, Context& context);
void add_optimize(CLI::App& app, Context& context);
void add_conformance(CLI::App& app, Context& context);
void add_operators(CLI::App& app, Context& context);
void add_passes(CLI::App& app, Context& context);
void add_prove(CLI::App& app, Context& context);
void add_rules(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_mutants(CLI::App& app, Context& context);
void add_machine(CLI::App& app, Context& context);
void add_kernel(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_verify(CLI::App& app, Context& context);
void add_tune(CLI::App& app, Context& context);

}  // namespace tessera::cli
