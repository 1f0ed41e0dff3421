#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

#include "cli/context.h"
#include "cli/json.h"
#include "tessera/cost/interleaved_timing.h"
#include "tessera/driver/model.h"
#include "tessera/driver/rules.h"
#include "tessera/passes/portable.h"
#include "tessera/rules/explain.h"
#include "tessera/rules/region_picture.h"
#include "tessera/superopt/mutate/find_mutants.h"
#include "tessera/support/file.h"

namespace tessera::cli {
namespace {

struct MutantsFindOptions {
  std::string set = "pet", out;
  int max_ops = 3, threads = 1;
  double agreement = 0.5;
  bool verbose = false;
};

struct MutantsRegionOptions {
  std::string source, mutant, out, picture;
  std::int64_t seed = 1;
};

std::string region_words(const rules::Rule& rule) {
  return rule.mutant ? rules::in_words(rule.mutant->wrong) : "nowhere: equal in all positions";
}

std::size_t count_of(const superopt::MutantResult& result, std::string_view verdict) {
  return static_cast<std::size_t>(std::ranges::count_if(
      result.mutants, [&](const auto& m) { return to_string(m.corrected.verdict) == verdict; }));
}

nlohmann::json mutant_json(const superopt::FoundMutant& mutant) {
  const rules::Rule& rule = mutant.corrected.rule;
  nlohmann::json boxes = nlohmann::json::array();
  if (rule.mutant)
    for (const rules::Box& box : rule.mutant->wrong) boxes.push_back(rules::to_text(box));
  return {{"name", rule.name},
          {"verdict", to_string(mutant.corrected.verdict)},
          {"wrong", std::move(boxes)},
          {"guard", to_text(rule.guard)},
          {"agreement", mutant.agreement},
          {"region_ms", 1e3 * mutant.region_seconds},
          {"proof_ms", 1e3 * mutant.proof_seconds}};
}

Expected<Done> find_in_set(const MutantsFindOptions& options, Context& context) {
  TESSERA_TRY_DONE(context.start());
  TESSERA_TRY(const superopt::OperatorSet set, superopt::load_set(options.set));
  superopt::MutantResult result;
  {
    StageProgress progress(context);
    superopt::MutantOptions how{.max_ops = options.max_ops,
                                .threads = options.threads,
                                .least_agreement = options.agreement,
                                .stop = &context.stop,
                                .progress = std::ref(progress)};
    if (context.memory_limit) how.memory_limit = *context.memory_limit;
    TESSERA_TRY(result, superopt::find_mutants(set, how));
  }
  std::vector<rules::Rule> proved;
  std::vector<double> regions, proofs;
  for (const superopt::FoundMutant& mutant : result.mutants) {
    regions.push_back(1e3 * mutant.region_seconds);
    proofs.push_back(1e3 * mutant.proof_seconds);
    if (std::holds_alternative<prove::Proved>(mutant.corrected.verdict))
      proved.push_back(mutant.corrected.rule);
  }
  if (!options.out.empty()) TESSERA_TRY_DONE(save_rules(proved, options.out));
  if (context.stop) context.exit_code = kInterrupted;
  if (context.json) {
    nlohmann::json mutants = nlohmann::json::array();
    for (const auto& mutant : result.mutants) mutants.push_back(mutant_json(mutant));
    print_json({{"set", set.name},
                {"max_ops", options.max_ops},
                {"programs", result.graphs},
                {"sources", result.sources},
                {"compared", result.compared},
                {"candidates", result.candidates},
                {"without_region", result.without_region},
                {"proved", count_of(result, "proved")},
                {"refuted", count_of(result, "refuted")},
                {"unknown", count_of(result, "unknown")},
                {"median_region_ms", cost::percentile(regions, 0.5)},
                {"median_proof_ms", cost::percentile(proofs, 0.5)},
                {"enumeration_seconds", result.enumeration_seconds},
                {"seconds", result.seconds},
                {"mutants", std::move(mutants)}});
    return Done{};
  }
  if (options.verbose)
    for (const superopt::FoundMutant& mutant : result.mutants)
      fmt::print("{:<8} {}: wrong {}\n", to_string(mutant.corrected.verdict),
                 mutant.corrected.rule.name, region_words(mutant.corrected.rule));
  fmt::print("{} programs, {} of them sources: {} pairs compared, {} candidates in {:.2f} s\n",
             result.graphs, result.sources, result.compared, result.candidates,
             result.enumeration_seconds);
  fmt::print("{} corrected and proved, {} refuted, {} unknown, {} without a region; {:.2f} s\n",
             count_of(result, "proved"), count_of(result, "refuted"), count_of(result, "unknown"),
             result.without_region, result.seconds);
  fmt::print("median of regions {:.1f} ms, of proofs {:.1f} ms\n", cost::percentile(regions, 0.5),
             cost::percentile(proofs, 0.5));
  return Done{};
}

Expected<Done> find_region(const MutantsRegionOptions& options, Context& context) {
  TESSERA_TRY_DONE(context.start());
  TESSERA_TRY(Model source, load_model(options.source));
  TESSERA_TRY(const Model mutant, load_model(options.mutant));
  const superopt::RegionOptions how{.seed = static_cast<std::uint64_t>(options.seed),
                                    .stop = &context.stop};
  TESSERA_TRY(const superopt::MutantRegion region,
              superopt::region_of(source.graph, mutant.graph, how));
  TESSERA_TRY(const superopt::CorrectedRule corrected, superopt::corrected_rule(region, how));
  const auto* unknown = std::get_if<prove::Unknown>(&corrected.verdict);
  const auto* refuted = std::get_if<prove::Refuted>(&corrected.verdict);
  if (!options.out.empty()) {
    source.graph = corrected.rule.target;
    if (!is_text_form(options.out)) {
      TESSERA_TRY(source.graph, passes::portable(source.graph));
    }
    TESSERA_TRY_DONE(save_model(source, options.out));
  }
  if (!options.picture.empty()) {
    TESSERA_TRY(const std::string picture, rules::region_picture(corrected.rule));
    TESSERA_TRY_DONE(write_file(options.picture, [&](std::ostream& out) { out << picture; }));
  }
  if (refuted != nullptr) context.exit_code = kNegativeResult;
  if (unknown != nullptr) context.exit_code = kUnknown;
  if (context.json) {
    nlohmann::json boxes = nlohmann::json::array();
    for (const rules::Box& box : region.wrong) boxes.push_back(rules::to_text(box));
    nlohmann::json object = verdict_json(corrected.verdict);
    object["wrong"] = std::move(boxes);
    object["guard"] = to_text(corrected.rule.guard);
    object["agreement"] = region.agreement;
    print_json(object);
    return Done{};
  }
  fmt::print("wrong {}\n", region_words(corrected.rule));
  if (!corrected.rule.guard.empty())
    fmt::print("for sizes where {}\n", rules::in_words(corrected.rule.guard));
  fmt::print("the corrected program is {}{}\n",
             std::holds_alternative<prove::Proved>(corrected.verdict) ? "proved equal" : "",
             unknown != nullptr   ? "not proved: " + unknown->why
             : refuted != nullptr ? "refuted: " + refuted->what
                                  : "");
  return Done{};
}

void add_find(CLI::App& mutants, Context& context) {
  CLI::App* command = mutants.add_subcommand(
      "find", "enumerates partially equivalent programs, derives their regions and proves them");
  auto options = std::make_shared<MutantsFindOptions>();
  command->add_option("--set", options->set, "operator set: pet, taso, modern, or a file")
      ->capture_default_str();
  command->add_option("--max-ops", options->max_ops, "largest number of operators of a program")
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
  command
      ->add_option("--agreement", options->agreement,
                   "smallest share of equal positions of a mutant")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "number of threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--out", options->out, "output file of the proved mutants, as rules");
  command->add_flag("-v,--verbose", options->verbose, "list the mutants with their regions");
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera mutants find --set pet --max-ops 3 --out found.rules -v\n"
      "\n"
      "Exit codes: 0 done, 3 bad input, 130 interrupted.");
  command->callback([options, &context] {
    if (const auto done = find_in_set(*options, context); !done) context.fail(done.error());
  });
}

void add_region(CLI::App& mutants, Context& context) {
  CLI::App* command = mutants.add_subcommand(
      "region", "finds where two models differ, corrects the second one and proves the result");
  auto options = std::make_shared<MutantsRegionOptions>();
  command->add_option("source", options->source, "ONNX file, or graph in text form")->required();
  command->add_option("mutant", options->mutant, "model that differs from it in some positions")
      ->required();
  command->add_option("-o,--output", options->out, "file for the corrected model");
  command->add_option("--picture", options->picture, "file for a drawing of the region (SVG)");
  command->add_option("--seed", options->seed, "seed of the random sizes and inputs")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera mutants region two_convs.tessera one_conv.tessera -o corrected.tessera\n"
      "\n"
      "Inputs and outputs are paired by position. Sizes may be symbolic; models whose sizes are\n"
      "numbers have to be small, because they are evaluated.\n"
      "Exit codes: 0 proved, 1 refuted, 5 unknown, 2 wrong usage, 3 bad input.");
  command->callback([options, &context] {
    if (const auto done = find_region(*options, context); !done) context.fail(done.error());
  });
}

}  // namespace

void add_mutants(CLI::App& app, Context& context) {
  CLI::App* mutants = app.add_subcommand(
      "mutants", "partially equivalent programs: finds, corrects and proves them");
  mutants->require_subcommand(1);
  add_find(*mutants, context);
  add_region(*mutants, context);
  mutants->footer(
      "Example:\n"
      "  tessera mutants find --set pet -v\n"
      "  tessera mutants region original.tessera mutant.tessera -o corrected.tessera");
}

}  // namespace tessera::cli
