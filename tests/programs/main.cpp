#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/programs/differential.h"

namespace tessera::testing {
namespace {

constexpr std::string_view kUsage =
    R"(Compiles random programs over the whole catalog and compares what they compute with the interpreter.

usage: tessera_random_programs [--seed N] [--count N] [--seconds N] [--jobs N] [--all] [--coverage] [--show]

  --seed N      the first program; the same number is the same program (1)
  --count N     so many programs (2000)
  --seconds N   as many as fit into this time instead
  --jobs N      processes (2)
  --all         every configuration of threads, numerics, precision and target, not one that is drawn
  --coverage    fails also where operators or attributes of the catalog were not reached
  --show        prints the programs

A program that fails is made smaller and printed. Exit code 1: one failed.

example: tessera_random_programs --seed 4711 --count 1 --all
)";

struct Options {
  std::uint64_t seed = 1;
  std::int64_t count = 2000;
  double seconds = 0;
  int jobs = 2;
  bool all = false, coverage = false, show = false;
};

constexpr unsigned kSecondsPerProgram = 120;

std::vector<RunConfig> configs_of(std::uint64_t seed, bool all) {
  std::vector<RunConfig> every;
  for (const int threads : {1, 2})
    for (const bool exact : {true, false})
      for (const bool bf16 : {false, true})
        for (const bool gpu : {false, true})
          if (!(exact && bf16) && !(gpu && threads > 1))
            every.push_back({.threads = threads, .exact = exact, .bf16 = bf16, .gpu = gpu});
  if (all) return every;
  return {every[seed % every.size()]};
}

/// What is not a number is defined where every rounding is kept.
RandomProgram program_of(std::uint64_t seed, bool special) {
  return random_program(seed, {.special_values = special});
}

bool check(std::uint64_t seed, const Options& options, CatalogCoverage& coverage) {
  bool good = true;
  for (const RunConfig& config : configs_of(seed, options.all)) {
    const RandomProgram program = program_of(seed, config.exact && seed % 3 == 0);
    coverage.add(program.graph);
    if (options.show) fmt::print("program {}\n{}", seed, to_text(program));
    const auto why_of = [&](const RandomProgram& one) -> std::string {
      try {
        return difference(one, config);
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

/// Programs first, first + step, … in a process of its own; says by a pipe which one it is at.
struct Tally {
  std::uint64_t at = 0, done = 0, failed = 0;
};

int run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto out_of_time = [&] {
    return options.seconds > 0 &&
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >
               options.seconds;
  };
  // Blocks of programs, each in a process: a crash costs one program.
  constexpr std::uint64_t kBlock = 64;
  std::uint64_t next = options.seed, tried = 0, failed = 0;
  const std::uint64_t end = options.seconds > 0
                                ? ~std::uint64_t{0}
                                : options.seed + static_cast<std::uint64_t>(options.count);
  struct Worker {
    pid_t pid;
    int from;
    std::uint64_t first, last;
  };
  std::vector<Worker> workers;
  const auto launch = [&](std::uint64_t first, std::uint64_t last) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
      close(ends[0]);
      CatalogCoverage coverage;
      for (std::uint64_t seed = first; seed < last && !out_of_time(); ++seed) {
        Tally tally{.at = seed};
        if (write(ends[1], &tally, sizeof tally) < 0) std::_Exit(3);
        alarm(kSecondsPerProgram);
        tally.failed = check(seed, options, coverage) ? 0 : 1;
        tally.done = 1;
        if (write(ends[1], &tally, sizeof tally) < 0) std::_Exit(3);
      }
      std::fflush(stdout);
      std::_Exit(0);
    }
    close(ends[1]);
    workers.push_back({pid, ends[0], first, last});
  };
  while ((next < end && !out_of_time()) || !workers.empty()) {
    while (next < end && !out_of_time() &&
           workers.size() < static_cast<std::size_t>(options.jobs)) {
      const std::uint64_t last = std::min(end, next + kBlock);
      launch(next, last);
      next = last;
    }
    int status = 0;
    const pid_t pid = wait(&status);
    const auto worker = std::ranges::find(workers, pid, &Worker::pid);
    if (worker == workers.end()) continue;
    Tally tally, last{};
    while (read(worker->from, &tally, sizeof tally) == sizeof tally) {
      tried += tally.done;
      failed += tally.failed;
      last = tally;
    }
    close(worker->from);
    const std::uint64_t stop = worker->last;
    workers.erase(worker);
    if (WIFSIGNALED(status)) {
      ++tried, ++failed;
      fmt::print("FAILED: program {} ended by signal {} ({})\n", last.at, WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
      if (last.at + 1 < stop) launch(last.at + 1, stop);
    }
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r{} programs, {} failed", tried, failed);
  }
  CatalogCoverage coverage;
  for (std::uint64_t seed = options.seed; seed < next && seed < options.seed + 20'000; ++seed)
    coverage.add(program_of(seed, false).graph);
  fmt::print("{} programs from {}, {} failed; {}\n", tried, options.seed, failed,
             coverage.summary());
  return failed > 0 || (options.coverage && !coverage.missing().empty()) ? 1 : 0;
}

}  // namespace
}  // namespace tessera::testing

int main(int argc, char** argv) {
  tessera::testing::Options options;
  const auto usage = [] { fmt::print("{}", tessera::testing::kUsage); };
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (flag == "--help" || flag == "-h") return usage(), 0;
    if (flag == "--all")
      options.all = true;
    else if (flag == "--coverage")
      options.coverage = true;
    else if (flag == "--show")
      options.show = true;
    else if (value == nullptr)
      return usage(), 2;
    else if (++i; flag == "--seed")
      options.seed = std::strtoull(value, nullptr, 10);
    else if (flag == "--count")
      options.count = std::atoll(value);
    else if (flag == "--seconds")
      options.seconds = std::atof(value);
    else if (flag == "--jobs")
      options.jobs = std::max(1, std::atoi(value));
    else
      return usage(), 2;
  }
  return tessera::testing::run(options);
}
