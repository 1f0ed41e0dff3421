#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/model_flags.h"
#include "cli/search.h"

namespace tessera::cli {
namespace {

double percent(double before, double after) {
  return before > 0 ? 100 * (before - after) / before : 0;
}

std::string why_right(const SearchReport& report, const std::string& rule) {
  const auto it = report.rules.find(rule);
  if (it == report.rules.end()) return "proved";
  const RuleNote& note = it->second;
  const std::string held = note.numerics == "exact"   ? "bit for bit"
                           : note.numerics == "reals" ? "over the reals"
                                                      : note.numerics;
  return fmt::format("proved {} for all sizes{}", held,
                     note.guard.empty() ? "" : " where " + note.guard);
}

void print_choice(const SearchReport& report, const search::Choice& choice, bool explain) {
  fmt::print("  {:>7.3f} ms -> {:.3f} ms {}, in {} {}: {} rules\n", 1e3 * choice.before,
             1e3 * choice.after, choice.measured ? "measured" : "expected", choice.places,
             choice.places == 1 ? "place" : "places", choice.rules.size());
  for (const search::RuleApplication& step : choice.rules) {
    fmt::print("    {}{} at {} ({:+.1f} % expected): {}\n", step.rule,
               step.times > 1 ? fmt::format(" {} times, first", step.times) : "", step.where,
               -percent(step.before, step.after), why_right(report, step.rule));
    const auto note = report.rules.find(step.rule);
    if (note != report.rules.end() && !note->second.region.empty())
      fmt::print("      corrected: {}\n", note->second.region);
    if (!explain) continue;
    if (note != report.rules.end()) fmt::print("      {}\n", note->second.about);
    for (const std::string& rule : step.also)
      fmt::print("      then {}: {}\n", rule, why_right(report, rule));
  }
}

/// Mutants on their own: what each would bring where it does best, and what its correction takes.
void print_trials(const std::vector<search::MutantTrial>& trials) {
  fmt::print("mutants         each on its own, where it does best; {} apply\n", trials.size());
  if (!trials.empty())
    fmt::print("  {:>9} {:>9} {:>9} {:>8} {:>10} {:>6}  mutant\n", "before ms", "mutant ms",
               "after ms", "ratio", "correction", "places");
  for (const search::MutantTrial& trial : trials)
    fmt::print("  {}{:>8.3f} {:>9.3f} {:>9.3f} {:>8.3f} {:>9.1f}% {:>6}  {} at {}: {}\n",
               trial.measured ? " " : "~", 1e3 * trial.before, 1e3 * trial.mutant,
               1e3 * trial.after, trial.after / std::max(trial.before, 1e-12),
               100 * trial.correction_share(), trial.places, trial.rule, trial.where,
               trial.after < trial.before    ? "faster"
               : trial.mutant < trial.before ? "the correction takes more than the mutant gains"
               : trial.region.empty()        ? "not faster"
                                             : "not faster, even without its correction");
}

nlohmann::json trials_json(const std::vector<search::MutantTrial>& trials) {
  nlohmann::json list = nlohmann::json::array();
  for (const search::MutantTrial& trial : trials)
    list.push_back({{"rule", trial.rule},
                    {"where", trial.where},
                    {"places", trial.places},
                    {"before_ms", 1e3 * trial.before},
                    {"mutant_ms", 1e3 * trial.mutant},
                    {"after_ms", 1e3 * trial.after},
                    {"correction_share", trial.correction_share()},
                    {"corrected", trial.region},
                    {"measured", trial.measured}});
  return list;
}

nlohmann::json rule_json(const SearchReport& report, const std::string& rule) {
  nlohmann::json object = {{"rule", rule}, {"proved", true}};
  if (const auto it = report.rules.find(rule); it != report.rules.end()) {
    object["about"] = it->second.about;
    object["guard"] = it->second.guard;
    object["numerics"] = it->second.numerics;
    if (!it->second.region.empty()) object["corrected"] = it->second.region;
  }
  return object;
}

}  // namespace

void add_search_flags(CLI::App& command, SearchFlags& flags) {
  CLI::Option* search = command.add_flag(
      "--search", flags.search, "search for a faster graph with proved rules and measured costs");
  CLI::Option* budget =
      command.add_option("--budget", flags.budget, "time budget of the search, for example 60s")
          ->capture_default_str();
  command
      .add_flag("--mutants", flags.mutants,
                "also search with partially equivalent rewrites, which are corrected where they "
                "are wrong")
      ->needs(search);
  command
      .add_option("--steps", flags.steps,
                  "step budget of the search in place of time; nothing is measured, and the same "
                  "store gives the same result")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->excludes(budget)
      ->needs(search);
  command
      .add_option("--alpha", flags.alpha,
                  "search only from graphs that cost less than this times the best")
      ->check(CLI::Range(1.0, 10.0))
      ->capture_default_str();
  if (command.get_option_no_throw("--store") == nullptr) add_store_flag(command, flags.costs);
  command.add_option("--cost-target", flags.costs.target,
                     "target of the store whose measurements the search uses in place of this "
                     "computer's");
  budget->needs(search);
}

Expected<std::optional<SearchOptions>> search_options(const SearchFlags& flags, Context& context,
                                                      ProgressLine& line) {
  if (!flags.search) return std::optional<SearchOptions>();
  SearchOptions options{.steps = flags.steps,
                        .alpha = flags.alpha,
                        .mutants = flags.mutants,
                        .target = flags.costs.target,
                        .stop = &context.stop};
  TESSERA_TRY(options.seconds, parse_seconds(flags.budget));
  options.store = store_file(flags.costs, context);
  options.progress = [&line](const search::Progress& progress) {
    line.show(progress.region, progress.regions,
              fmt::format("regions searched, {:.1f} % faster so far", 100 * (1 - progress.best)));
  };
  return std::optional(std::move(options));
}

void print_search(const SearchReport& report, bool explain) {
  const search::SearchResult& found = report.found;
  if (!report.kept && !report.comparison) {
    fmt::print("search          no better graph found\n");
  } else {
    fmt::print("search          {}{:.3f} ms -> {:.3f} ms expected ({:+.1f} %)\n",
               report.kept ? "" : "no better graph found: ", 1e3 * found.before, 1e3 * found.after,
               -percent(found.before, found.after));
  }
  if (report.comparison) {
    const cost::Comparison& c = *report.comparison;
    fmt::print(
        "  measured      {:.3f} ms -> {:.3f} ms, speedup {:.3f}x (95% CI {:.3f} to {:.3f})\n",
        1e3 * c.a_seconds, 1e3 * c.b_seconds, 1 / c.ratio, 1 / c.high, 1 / c.low);
  }
  fmt::print("  visited       {} graphs of {} regions, {} of them distinct, in {:.1f} s: {}\n",
             found.steps, found.regions, found.distinct, report.seconds,
             search::to_string(found.why));
  if (explain && !found.normalization.empty()) {
    std::map<std::string, int> counts;
    for (const std::string& rule : found.normalization) ++counts[rule];
    for (const auto& [rule, count] : counts)
      fmt::print("  {:>5} x {}: {}\n", count, rule, why_right(report, rule));
  }
  if (report.kept || explain)
    for (const search::Choice& choice : found.choices) print_choice(report, choice, explain);
  if (!report.trials.empty()) print_trials(report.trials);
}

nlohmann::json search_json(const SearchReport& report) {
  const search::SearchResult& found = report.found;
  nlohmann::json choices = nlohmann::json::array();
  for (const search::Choice& choice : found.choices) {
    nlohmann::json steps = nlohmann::json::array();
    for (const search::RuleApplication& step : choice.rules) {
      nlohmann::json object = rule_json(report, step.rule);
      object["where"] = step.where;
      object["times"] = step.times;
      object["expected_ms"] = {{"before", 1e3 * step.before}, {"after", 1e3 * step.after}};
      object["then"] = step.also;
      steps.push_back(std::move(object));
    }
    choices.push_back({{"places", choice.places},
                       {"nodes", choice.nodes},
                       {"before_ms", 1e3 * choice.before},
                       {"after_ms", 1e3 * choice.after},
                       {"measured", choice.measured},
                       {"rules", std::move(steps)}});
  }
  nlohmann::json object = {
      {"better", report.kept},
      {"expected_ms", {{"before", 1e3 * found.before}, {"after", 1e3 * found.after}}},
      {"graphs", found.steps},
      {"regions", found.regions},
      {"distinct_regions", found.distinct},
      {"stopped", search::to_string(found.why)},
      {"seconds", report.seconds},
      {"settled", found.normalization},
      {"choices", std::move(choices)}};
  if (!report.trials.empty()) object["mutants"] = trials_json(report.trials);
  if (report.comparison) {
    const cost::Comparison& c = *report.comparison;
    object["measured_ms"] = {{"before", 1e3 * c.a_seconds}, {"after", 1e3 * c.b_seconds}};
    object["ratio"] = {{"median", c.ratio}, {"low", c.low}, {"high", c.high}};
  }
  return object;
}

}  // namespace tessera::cli
