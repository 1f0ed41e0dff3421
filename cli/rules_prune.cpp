#include <fmt/format.h>

#include "cli/json.h"
#include "cli/rules_command.h"
#include "tessera/driver/rules.h"
#include "tessera/superopt/prune/prune.h"
#include "tessera/support/stopwatch.h"

namespace tessera::cli {
namespace {

using superopt::Coverage;

struct RulesPruneOptions {
  std::size_t nodes;
  int iterations;
  std::string path = {}, out = {}, basis = {};
  bool verbose = false;
};

/// Reads the rules of a file, each with the guard that makes it true.
Expected<GuardedRules> guarded_rules(const std::string& path, Context& context,
                                     ProgressLine& line) {
  TESSERA_TRY(const RuleBook book, read_rules(path));
  return with_guards(
      book, {.proof = {.stop = &context.stop}, .progress = [&](std::size_t done, std::size_t all) {
               line.show(done, all, "proofs");
             }});
}

superopt::PruneOptions prune_options(const RulesPruneOptions& options, Context& context,
                                     ProgressLine& line) {
  superopt::PruneOptions made;
  made.theory.limits.nodes = options.nodes;
  made.theory.limits.iterations = options.iterations;
  made.theory.limits.stop = &context.stop;
  made.progress = [&line](std::size_t done, std::size_t all) { line.show(done, all, "rules"); };
  return made;
}

nlohmann::json names_of(const std::vector<rules::RuleProof>& proofs) {
  nlohmann::json names = nlohmann::json::array();
  for (const rules::RuleProof& proof : proofs) names.push_back(proof.name);
  return names;
}

void print_names(const nlohmann::json& names, std::string_view what) {
  for (const std::string name : names) fmt::print("{:<9} {}\n", what, name);
}

void print_pruned(const nlohmann::json& object) {
  const auto count = [&](const char* what) { return object[what].get<std::size_t>(); };
  print_names(object["refuted"], "refuted");
  print_names(object["unknown"], "unknown");
  fmt::print("{} rules: {} kept; dropped: {} by renaming, {} by a common subgraph, {} derivable",
             count("rules"), count("basis"), count("renamed"), count("common_subgraph"),
             count("derivable"));
  for (const auto& [number, what] : {std::pair(count("unusable"), "unusable either way"),
                                     {object["refuted"].size(), "refuted"},
                                     {object["unknown"].size(), "not proved"}})
    if (number != 0) fmt::print(", {} {}", number, what);
  fmt::print("; {:.3f} s\n", object["seconds"].get<double>());
}

Expected<Done> prune_all(const RulesPruneOptions& options, Context& context) {
  const Stopwatch watch;
  ProgressLine line(context);
  TESSERA_TRY(const GuardedRules in, guarded_rules(options.path, context, line));
  TESSERA_TRY(const superopt::Basis basis,
              superopt::prune(in.rules, prune_options(options, context, line)));
  line.clear();
  TESSERA_TRY_DONE(save_rules(basis.rules, options.out));
  const nlohmann::json object = {
      {"rules", in.rules.size() + in.refuted.size() + in.unknown.size()},
      {"basis", basis.rules.size()},
      {"renamed", basis.renamed},
      {"common_subgraph", basis.common},
      {"derivable", basis.derived},
      {"unusable", basis.unusable},
      {"refuted", names_of(in.refuted)},
      {"unknown", names_of(in.unknown)},
      {"stopped", basis.stopped},
      {"seconds", watch.seconds()},
  };
  if (context.json)
    print_json(object);
  else
    print_pruned(object);
  if (basis.stopped)
    return Diagnostic{.id = "stopped",
                      .where = {.file = options.path},
                      .message = "rules that were not examined are kept"};
  return Done{};
}

Expected<Done> cover_all(const RulesPruneOptions& options, Context& context) {
  const Stopwatch watch;
  ProgressLine line(context);
  TESSERA_TRY(const GuardedRules in, guarded_rules(options.path, context, line));
  TESSERA_TRY(const GuardedRules basis, guarded_rules(options.basis, context, line));
  TESSERA_TRY(const std::vector<Coverage> covers,
              superopt::covers(in.rules, basis.rules, prune_options(options, context, line)));
  line.clear();
  std::map<Coverage::Kind, std::size_t> count;
  nlohmann::json list = nlohmann::json::array(), missing = nlohmann::json::array();
  for (const Coverage& cover : covers) {
    ++count[cover.kind];
    list.push_back({{"name", cover.name}, {"cover", to_string(cover.kind)}, {"by", cover.by}});
    if (cover.kind == Coverage::Kind::Missing) missing.push_back(cover.name);
  }
  // A rule that could not be proved may still be one that the basis lacks.
  for (const rules::RuleProof& proof : in.unknown) missing.push_back(proof.name);
  const nlohmann::json object = {
      {"total", in.rules.size() + in.refuted.size() + in.unknown.size()},
      {"direct", count[Coverage::Kind::Direct]},
      {"derivable", count[Coverage::Kind::Derivable]},
      {"missing", missing.size()},
      {"missing_names", missing},
      {"refuted", names_of(in.refuted)},
      {"rules", std::move(list)},
      {"seconds", watch.seconds()},
  };
  if (!missing.empty()) context.exit_code = kNegativeResult;
  if (context.json) {
    print_json(object);
    return Done{};
  }
  for (const Coverage& cover : covers)
    if (options.verbose && cover.kind != Coverage::Kind::Missing)
      fmt::print("{:<9} {}{}{}\n", to_string(cover.kind), cover.name, cover.by.empty() ? "" : ": ",
                 fmt::join(cover.by, ", "));
  print_names(object["refuted"], "refuted");
  print_names(missing, "missing");
  fmt::print("{} rules: {} direct, {} derivable, {} missing", object["total"].get<std::size_t>(),
             count[Coverage::Kind::Direct], count[Coverage::Kind::Derivable], missing.size());
  if (!in.refuted.empty()) fmt::print(", {} refuted", in.refuted.size());
  fmt::print(" in {:.3f} s\n", watch.seconds());
  return Done{};
}

using PruneCommand = RulesCommand<RulesPruneOptions>;

constexpr PruneCommand kPrune = {
    "prune", "removes redundant rules", prune_all,
    "Example:\n"
    "  tessera rules prune all.rules --out basis.rules\n"
    "\n"
    "Removes rules that differ from another one in names or in a common context of both sides,\n"
    "and rules that follow from smaller ones wherever their own guard holds. The rules have to\n"
    "be true (tessera rules prove); TASO's, which state no guard, are proved first. After\n"
    "Ctrl-C, rules that were not examined are kept."};
constexpr PruneCommand kCovers = {
    "covers", "checks whether rules are in a basis or follow from it", cover_all,
    "Examples:\n"
    "  tessera rules covers taso_rules.txt --rules basis.rules\n"
    "  tessera rules covers my.rules -v            # by the rules that come with tessera\n"
    "\n"
    "Exit codes: 0 all true rules are covered, 1 some are missing."};

/// Adds a subcommand that derives rules from others.
CLI::App& add_deriving(CLI::App& rules, const PruneCommand& command,
                       const std::shared_ptr<RulesPruneOptions>& options, Context& context) {
  CLI::App& added = add(rules, command, options, context);
  added.add_option("file", options->path, "file or folder of rules, or file in TASO's text format")
      ->required();
  added.add_option("--nodes", options->nodes, "limit on the nodes of the e-graph of a derivation")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  added
      .add_option("--iterations", options->iterations,
                  "limit on the saturation iterations of a derivation")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  added
      .add_option("--rounds", options->iterations)  // former name
      ->check(CLI::Range(1, 1'000))
      ->group("");
  return added;
}

}  // namespace

void add_rules_prune(CLI::App& rules, Context& context) {
  // Derivations are found long before the limits are reached; rules that do not follow always reach
  // them, so the limits are small where most rules do not follow.
  constexpr egraph::Limits kNarrow = superopt::TheoryOptions{}.limits;
  auto pruning = std::make_shared<RulesPruneOptions>(
      RulesPruneOptions{.nodes = kNarrow.nodes, .iterations = kNarrow.iterations});
  add_deriving(rules, kPrune, pruning, context)
      .add_option("--out", pruning->out, "output file of the remaining rules")
      ->required();
  auto options = std::make_shared<RulesPruneOptions>(
      RulesPruneOptions{.nodes = 8 * kNarrow.nodes, .iterations = 2 * kNarrow.iterations});
  CLI::App& covers = add_deriving(rules, kCovers, options, context);
  covers.add_option("--rules", options->basis, "basis; default: the rules that come with tessera");
  covers.add_flag("-v,--verbose", options->verbose,
                  "print a line for every rule, with the rules that it follows from");
}

}  // namespace tessera::cli
