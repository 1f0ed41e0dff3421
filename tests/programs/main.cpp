#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "tessera/passes/pipeline.h"
#include "tests/programs/catalog_coverage.h"
#include "tests/programs/differential.h"
#include "tests/programs/operand_form.h"
#include "tests/programs/program_export.h"
#include "tests/support/flags.h"

namespace tessera::testing {
namespace {

constexpr std::string_view kUsage =
    R"(Compiles random programs over the whole catalog and compares what they compute with the interpreter.

usage: tessera_random_programs [--seed N] [--count N] [--seconds N] [--jobs N] [--nodes N] [--all] [--coverage] [--show]
       tessera_random_programs --export FOLDER [--seed N] [--count N] [--seconds N] [--jobs N] [--nodes N]

  --seed N      the first program; the same number is the same program (1)
  --count N     so many programs (2000)
  --seconds N   as many as fit into this time instead
  --jobs N      processes (2)
  --nodes N     the most nodes of a program (6)
  --export FOLDER  writes the programs as tests of ONNX, with the interpreter's outputs, and runs nothing
                else: `tools/compare-onnxruntime FOLDER` has ONNX Runtime run them
  --bits        compares, bit for bit under --numerics exact, with what is computed without passes
  --machine CPU --emulator COMMAND  compiles for another CPU, by LLVM's name, and runs the saved programs by a
                command that ends in the path of `run_saved` for it (tools/emulated-tests)
  --all         every configuration of threads, numerics, precision and target, not one that is drawn
  --coverage    fails also where operators or attributes of the catalog were not reached
  --show        prints the programs

A program that fails is made smaller and printed. Exit code 1: one failed.

example: tessera_random_programs --seed 4711 --count 1 --all
)";

struct Options {
  std::uint64_t seed = 1, count = 2000;
  double seconds = 0;
  int jobs = 2, nodes = 6;
  std::string export_folder = {}, machine = {}, emulator = {};
  bool all = false, bits = false, coverage = false, show = false;
};

constexpr unsigned kSecondsPerProgram = 120;  // of processor time

/// Ends this process by a signal where a program takes longer; one that waits, after ten times as
/// long.
void limit_time_of_program() {
  const itimerval limit{.it_interval = {},
                        .it_value = {.tv_sec = kSecondsPerProgram, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
  alarm(10 * kSecondsPerProgram);
}

std::vector<RunConfig> configs_of(std::uint64_t seed, const Options& options) {
  if (options.bits) return {{.threads = 1 + static_cast<int>(seed % 2), .exact = true}};
  std::vector<RunConfig> every;
  const bool is_emulated = !options.machine.empty();
  for (const int threads : {1, 2})
    for (const bool exact : {true, false})
      for (const bool bf16 : {false, true})
        for (const bool gpu : {false, true})
          if (!(exact && bf16) && !(gpu && (threads > 1 || is_emulated)))
            every.push_back({.threads = threads,
                             .exact = exact,
                             .bf16 = bf16,
                             .gpu = gpu,
                             .machine = options.machine,
                             .emulator = options.emulator});
  if (options.all) return every;
  RunConfig drawn = every[seed % every.size()];
  // A fifth of the programs goes without one of the passes.
  const std::vector<std::string> passes = passes::pass_names();
  if (seed % 5 == 0) drawn.disabled_pass = passes[seed / 5 % passes.size()];
  return {drawn};
}

bool check(std::uint64_t seed, const Options& options, CatalogCoverage& coverage) {
  bool good = true;
  for (const RunConfig& config : configs_of(seed, options)) {
    // What is not a number is defined where every rounding is kept.
    const RandomProgram program = random_program(
        seed, {.max_nodes = options.nodes, .special_values = config.exact && seed % 3 == 0});
    coverage.add(program.graph);
    if (options.show) fmt::print("program {}\n{}", seed, to_text(program));
    const auto why_of = [&](const RandomProgram& one) -> std::string {
      try {
        return options.bits ? bit_difference(one, config) : difference(one, config);
      } catch (const std::exception& error) {
        return fmt::format("internal error: {}", error.what());
      }
    };
    const std::string why = why_of(program);
    if (why.empty()) continue;
    good = false;
    const RandomProgram small =
        shrunk(program, [&](const RandomProgram& one) { return !why_of(one).empty(); });
    fmt::print("FAILED: program {}, {}: {}\n{}\n", seed, to_string(config), why_of(small),
               to_text(small));
    std::fflush(stdout);
  }
  return good;
}

bool write_test(std::uint64_t seed, const Options& options, CatalogCoverage& coverage) {
  const RandomProgram program =
      random_program(seed, {.max_nodes = options.nodes, .special_values = seed % 3 == 0});
  coverage.add(program.graph);
  if (options.show) fmt::print("program {}\n{}", seed, to_text(program));
  const auto written = export_program(
      program, std::filesystem::path(options.export_folder) / fmt::format("program_{}", seed));
  if (!written) fmt::print("FAILED: program {}: {}\n", seed, tessera::to_string(written.error()));
  return written.has_value();
}

/// A process that checks programs [first, last) and reports by a pipe, one line before each program
/// (`SEED`) and one after it (`SEED FAILED NAME…`, with the names of the coverage).
struct Worker {
  pid_t pid;
  int from;
  std::uint64_t last;
  std::string report = {};
};

class Workers {
 public:
  explicit Workers(const Options& options)
      : options_(options),
        next_(options.seed),
        end_(options.seconds > 0 ? ~std::uint64_t{0} : options.seed + options.count) {}

  /// Exit code.
  int run() {
    // Blocks of programs, each in a process: a crash costs one program.
    constexpr std::uint64_t kBlock = 64;
    while (is_more() || !workers_.empty()) {
      while (is_more() && workers_.size() < static_cast<std::size_t>(options_.jobs)) {
        const std::uint64_t last = std::min(end_, next_ + kBlock);
        launch(next_, last);
        next_ = last;
      }
      wait_for_report();
      if (isatty(STDERR_FILENO) != 0)
        fmt::print(stderr, "\r{} programs, {} failed", tried_, failed_);
    }
    fmt::print("{} programs from {}, {} failed; {}\n", tried_, options_.seed, failed_,
               coverage_.summary());
    return failed_ > 0 || (options_.coverage && !coverage_.missing().empty()) ? 1 : 0;
  }

 private:
  bool is_out_of_time() const {
    return options_.seconds > 0 &&
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() >
               options_.seconds;
  }
  bool is_more() const { return next_ < end_ && !is_out_of_time(); }

  void launch(std::uint64_t first, std::uint64_t last) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
      close(ends[0]);
      check_all(first, last, ends[1]);
      std::fflush(stdout);
      std::_Exit(0);
    }
    close(ends[1]);
    workers_.push_back({pid, ends[0], last});
  }
  void check_all(std::uint64_t first, std::uint64_t last, int to) const {
    const auto report = [&](const std::string& line) {
      if (write(to, line.data(), line.size()) < 0) std::_Exit(3);
    };
    for (std::uint64_t seed = first; seed < last && !is_out_of_time(); ++seed) {
      report(fmt::format("{}\n", seed));
      limit_time_of_program();
      CatalogCoverage coverage;
      const bool good = options_.export_folder.empty() ? check(seed, options_, coverage)
                                                       : write_test(seed, options_, coverage);
      report(fmt::format("{} {} {}\n", seed, good ? 0 : 1, fmt::join(coverage.names(), " ")));
    }
  }

  /// Reads what some workers have to say; the ones that are done are taken from the list.
  void wait_for_report() {
    std::vector<pollfd> files;
    for (const Worker& worker : workers_) files.push_back({worker.from, POLLIN, 0});
    if (poll(files.data(), files.size(), -1) < 0) return;
    for (std::size_t i = files.size(); i-- > 0;) {
      if (files[i].revents == 0) continue;
      char text[4096];
      const ssize_t count = read(files[i].fd, text, sizeof text);
      if (count > 0) {
        workers_[i].report.append(text, static_cast<std::size_t>(count));
      } else {
        const Worker done = std::move(workers_[i]);
        workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
        finish(done);
      }
    }
  }
  void finish(const Worker& worker) {
    close(worker.from);
    int status = 0;
    waitpid(worker.pid, &status, 0);
    std::uint64_t at = 0;
    for (const std::string& line : split(worker.report, '\n')) {
      const auto words = split(line, ' ');
      at = std::strtoull(words[0].c_str(), nullptr, 10);
      if (words.size() == 1) continue;
      ++tried_;
      failed_ += words[1] == "1" ? 1 : 0;
      for (std::size_t i = 2; i < words.size(); ++i) coverage_.add(words[i]);
    }
    if (!WIFSIGNALED(status)) return;
    ++tried_, ++failed_;
    fmt::print("FAILED: program {} ended by signal {} ({})\n", at, WTERMSIG(status),
               strsignal(WTERMSIG(status)));
    if (at + 1 < worker.last) launch(at + 1, worker.last);
  }

  const Options& options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::uint64_t next_, end_, tried_ = 0, failed_ = 0;
  std::vector<Worker> workers_;
  CatalogCoverage coverage_;
};

}  // namespace
}  // namespace tessera::testing

int main(int argc, char** argv) {
  tessera::testing::Options options;
  if (const auto code = tessera::testing::read_flags(argc, argv,
                                                     {{"--all", &options.all},
                                                      {"--bits", &options.bits},
                                                      {"--coverage", &options.coverage},
                                                      {"--show", &options.show},
                                                      {"--seed", &options.seed},
                                                      {"--count", &options.count},
                                                      {"--seconds", &options.seconds},
                                                      {"--nodes", &options.nodes},
                                                      {"--export", &options.export_folder},
                                                      {"--machine", &options.machine},
                                                      {"--emulator", &options.emulator},
                                                      {"--jobs", &options.jobs}},
                                                     tessera::testing::kUsage))
    return *code;
  if (options.machine.empty() != options.emulator.empty() ||
      (!options.machine.empty() && !tessera::machine::named(options.machine))) {
    fmt::print(stderr, "--machine names a CPU that LLVM knows, and needs --emulator\n");
    return 2;
  }
  return tessera::testing::Workers(options).run();
}
