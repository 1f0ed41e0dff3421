#include <fmt/format.h>
#include <sys/resource.h>

#include <functional>

#include "cli/json.h"
#include "cli/rules_command.h"
#include "tessera/driver/rules.h"
#include "tessera/superopt/generate/generate.h"

namespace tessera::cli {
namespace {

struct RulesGenerateOptions {
  std::string set = "taso", out;
  int max_ops = 3, threads = 1;
  bool resume = false;
};

std::int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

Expected<Done> generate_rules(const RulesGenerateOptions& options, Context& context) {
  TESSERA_TRY(const superopt::OperatorSet set, superopt::load_set(options.set));
  const std::filesystem::path checkpoint = options.out + ".progress";
  superopt::GenerateResult made;
  {
    StageProgress progress(context);
    superopt::GenerateOptions how{.max_ops = options.max_ops,
                                  .threads = options.threads,
                                  .stop = &context.stop,
                                  .checkpoint = checkpoint,
                                  .resume = options.resume,
                                  .progress = std::ref(progress)};
    if (context.memory_limit) how.memory_limit = *context.memory_limit;
    TESSERA_TRY(made, superopt::generate(set, how));
  }
  TESSERA_TRY_DONE(save_rules(made.rules, options.out));
  if (made.stopped) {
    context.exit_code = kInterrupted;
  } else {
    std::error_code ignored;
    std::filesystem::remove(checkpoint, ignored);
  }
  const superopt::CandidateCounts& counts = made.counts;
  if (context.json) {
    print_json({{"set", set.name},
                {"max_ops", options.max_ops},
                {"graphs", made.graphs},
                {"classes", counts.classes},
                {"pairs", counts.pairs},
                {"dropped",
                 {{"congruent", counts.congruent},
                  {"coincident", counts.coincident},
                  {"common_subgraph", counts.common},
                  {"renamed", counts.renamed},
                  {"derivable", made.derivable},
                  {"trivial", made.trivial}}},
                {"candidates", made.candidates},
                {"proved", made.proved},
                {"refuted", made.refuted},
                {"unknown", made.unknown},
                {"rules", made.rules.size()},
                {"complete", !made.stopped},
                {"enumeration_seconds", made.enumeration_seconds},
                {"proof_seconds", made.proof_seconds},
                {"seconds", made.enumeration_seconds + made.proof_seconds},
                {"peak_memory", peak_memory()}});
    return Done{};
  }
  fmt::print("{} graphs in {} classes: {} pairs, {} candidates for rules in {:.2f} s\n",
             made.graphs, counts.classes, counts.pairs, made.candidates, made.enumeration_seconds);
  fmt::print("{} proved, {} refuted, {} unknown in {:.2f} s: {} rules in {}; {} MB at most\n",
             made.proved, made.refuted, made.unknown, made.proof_seconds, made.rules.size(),
             options.out, peak_memory() >> 20);
  if (made.stopped) fmt::print("stopped before the end; continue with --resume\n");
  return Done{};
}

constexpr RulesCommand<RulesGenerateOptions> kGenerate = {
    "generate", "finds rules by enumerating programs, and proves them", generate_rules,
    "Example:\n"
    "  tessera rules generate --set taso --max-ops 3 --out found.rules\n"
    "\n"
    "Enumerates all programs over an operator set up to a number of operators, evaluates them\n"
    "in a finite field, and proves those that agree equal for all sizes. Ctrl-C keeps the rules\n"
    "found so far; `--resume` continues an interrupted run. docs/rules.md describes operator\n"
    "sets. Exit codes: 0 done, 130 interrupted."};

}  // namespace

void add_rules_generate(CLI::App& rules, Context& context) {
  auto options = std::make_shared<RulesGenerateOptions>();
  CLI::App& command = add(rules, kGenerate, options, context);
  command.add_option("--set", options->set, "operator set: taso, modern, or a file")
      ->capture_default_str();
  command.add_option("--max-ops", options->max_ops, "largest number of operators of a program")
      ->check(CLI::Range(1, 6))
      ->capture_default_str();
  command.add_option("--threads", options->threads, "number of threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--out", options->out, "output file of the rules")->required();
  command.add_flag("--resume", options->resume, "continue an interrupted run");
}

}  // namespace tessera::cli
