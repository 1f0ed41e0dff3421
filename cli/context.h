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

/// What scripts can trust.
enum ExitCode : int {
  kSuccess = 0,
  kNo = 1,        // the answer is no: outputs differ, a test failed
  kUsage = 2,     // the command line is wrong
  kBadInput = 3,  // a diagnostic about an input
  kLimit = 4,     // --memory-limit or --time-limit was reached
  kUnknown = 5,   // neither yes nor no was found
  kInterrupted = 130,
  kInternal = 70,  // tessera is wrong; please report it
};

/// What --memory-limit is a limit of: the process, or the program that is compiled.
enum class Limits { Process, Program };

/// What all commands share: limits, the form of the output, the exit code.
struct Context {
  bool json = false;
  bool quiet = false;
  std::string memory_limit_text, time_limit_text;
  std::optional<std::int64_t> memory_limit;  // bytes, where one was asked for
  std::atomic<bool> stop = false;
  int exit_code = kSuccess;
  /// Prints the result of a command that does not end soon after its time limit, and gives the exit
  /// code; without it, reaching the limit is an error.
  std::function<int()> at_time_limit = {};

  /// Reads the limits and puts them in force. From here on, Ctrl-C sets `stop`.
  Expected<Done> start(Limits memory = Limits::Process);
  /// Bytes that inputs and results of a run may take: what was asked for, or three quarters of the
  /// memory of this computer.
  std::int64_t run_memory() const;

  /// Rounds that loops may take where no time limit ends them.
  std::int64_t most_rounds() const;

  /// The folder of object code and measurements if the command line names none. Empty, after a
  /// warning, if it cannot be written.
  const std::filesystem::path& default_cache() const;

  void fail(const Diagnostic& diagnostic);

 private:
  Diagnostic out_of_time(const Diagnostic::Where& where) const;
  void print(const Diagnostic& diagnostic) const;
  void listen();

  std::atomic<bool> interrupted_ = false;
  mutable std::optional<std::filesystem::path> default_cache_;  // once it was asked for
  std::unique_ptr<std::jthread> watchdog_, listener_;
};

/// Writes to standard error, where that can be written to.
void print_error(const std::string& text);

/// The flags of every command.
void add_common(CLI::App& command, Context& context);

/// A line that is written over again on a terminal, and nothing elsewhere.
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

/// `1536`, `512MB`, `2GiB`; `90`, `90s`, `2m`, `1h`.
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
void add_machine(CLI::App& app, Context& context);
void add_kernel(CLI::App& app, Context& context);
void add_verify(CLI::App& app, Context& context);

}  // namespace tessera::cli
