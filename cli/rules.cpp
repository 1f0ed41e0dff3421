#include "tessera/driver/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/json.h"
#include "cli/model_flags.h"
#include "cli/rules_command.h"
#include "tessera/driver/model_certificate.h"
#include "tessera/ir/inference_memo.h"
#include "tessera/rules/explain.h"
#include "tessera/rules/text.h"
#include "tessera/support/file.h"
#include "tessera/support/stopwatch.h"

namespace tessera::cli {
namespace {

using rules::Rule;
using rules::RuleProof;

struct RulesOptions {
  std::string name, path, certificates, source, target;
  std::vector<std::string> files;
  bool verbose = false;
  int tries = 60, threads = 1;
  std::int64_t seed = 1;
};

/// Inputs of a counterexample: their elements, numbers or text.
nlohmann::json inputs_json(const Rule& rule, const prove::Refuted& refuted) {
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < refuted.inputs.size(); ++i) {
    const Tensor& tensor = refuted.inputs[i];
    nlohmann::json values = nlohmann::json::array();
    if (tensor.strings) values = *tensor.strings;
    for (std::int64_t at = 0; !tensor.strings && at < tensor.count(); ++at)
      values.push_back(number_at(tensor, at));
    list.push_back({{"name", rule.source.name(rule.source.inputs()[i])},
                    {"shape", tensor.shape},
                    {"values", std::move(values)}});
  }
  return list;
}

/// Rule and verdict as JSON; the printed form is derived from it.
nlohmann::json described(const RuleProof& proof) {
  nlohmann::json object = verdict_json(proof.verdict);
  object["name"] = proof.name;
  const auto* proved = std::get_if<prove::Proved>(&proof.verdict);
  object["guard"] = proved == nullptr ? "" : to_text(proved->guard);
  if (proved == nullptr) object["assumptions"] = nlohmann::json::array();
  object["seconds"] = proof.seconds;
  if (const auto* refuted = std::get_if<prove::Refuted>(&proof.verdict)) {
    object["counterexample"]["sizes"] = refuted->sizes;
    object["counterexample"]["inputs"] =
        inputs_json(proof.instances[proof.verdicts.size() - 1], *refuted);
  }
  return object;
}

/// `output 0 at [0, 1]: 3 and 5, 0.4 of the root mean square apart (n = 2, k = 3)`
std::string counterexample_text(const nlohmann::json& shown) {
  std::string text;
  if (!shown["inputs"].empty()) text = fmt::format("output {}", shown["output"].get<int>());
  if (const auto position = shown["position"].get<std::vector<std::int64_t>>(); !position.empty())
    text += fmt::format(" at [{}]", fmt::join(position, ", "));
  text += (text.empty() ? "" : ": ") + shown["what"].get<std::string>();
  std::string sizes;
  for (const auto& [name, size] : shown["sizes"].items())
    sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", name, size.get<std::int64_t>());
  return sizes.empty() ? text : fmt::format("{} ({})", text, sizes);
}

std::string line_of(const nlohmann::json& rule) {
  std::string text =
      fmt::format("{:<8} {}", rule["verdict"].get<std::string>(), rule["name"].get<std::string>());
  if (rule.contains("why")) return text + ": " + rule["why"].get<std::string>();
  if (rule.contains("counterexample"))
    return text + ": " + counterexample_text(rule["counterexample"]);
  if (const std::string guard = rule["guard"]; !guard.empty()) text += " where " + guard;
  for (const nlohmann::json& assumption : rule["assumptions"])
    if (!prove::is_usual(assumption["kind"].get<std::string>()))
      text += ", assuming that " + assumption["text"].get<std::string>();
  return text;
}

using Judge = decltype(prove_rules);

struct Judged {
  std::vector<RuleProof> proofs;
  double seconds = 0;
};

Expected<Judged> judged(const RulesOptions& options, Context& context, Judge& judge) {
  const InferenceMemo memo;
  TESSERA_TRY(const RuleBook book, read_rules(options.path));
  ProgressLine line(context);
  const Stopwatch watch;
  TESSERA_TRY(std::vector<RuleProof> proofs,
              judge(book, {.proof = {.seed = static_cast<std::uint64_t>(options.seed),
                                     .tries = options.tries,
                                     .stop = &context.stop},
                           .threads = options.threads,
                           .progress = [&](std::size_t done, std::size_t all) {
                             line.show(done, all, "rules");
                           }}));
  return Judged{std::move(proofs), watch.seconds()};
}

/// Summary of all proofs with the time that they took together.
nlohmann::json proof_summary(const Judged& judged) {
  nlohmann::json list = nlohmann::json::array();
  for (const RuleProof& proof : judged.proofs) list.push_back(described(proof));
  return {{"total", judged.proofs.size()}, {"seconds", judged.seconds}, {"rules", std::move(list)}};
}

std::size_t count(const nlohmann::json& rules, std::string_view verdict) {
  return static_cast<std::size_t>(std::ranges::count_if(
      rules, [&](const nlohmann::json& rule) { return rule["verdict"] == verdict; }));
}

/// Prints a line for every rule with an unexpected verdict, or for all.
void print_lines(const nlohmann::json& rules, const RulesOptions& options,
                 std::string_view expected) {
  for (const nlohmann::json& rule : rules)
    if (options.verbose || rule["verdict"] != expected) fmt::print("{}\n", line_of(rule));
}

Expected<Done> prove_all(const RulesOptions& options, Context& context) {
  TESSERA_TRY(const Judged proved, judged(options, context, prove_rules));
  nlohmann::json object = proof_summary(proved);
  for (const char* verdict : {"proved", "refuted", "unknown"})
    object[verdict] = count(object["rules"], verdict);
  if (!options.certificates.empty()) {
    TESSERA_TRY(object["certificates"], save_certificates(proved.proofs, options.certificates));
  }
  if (object["proved"] != object["total"]) context.exit_code = kNegativeResult;
  if (context.json) {
    print_json(object);
    return Done{};
  }
  print_lines(object["rules"], options, "proved");
  fmt::print("{} rules: {} proved, {} refuted, {} unknown in {:.3f} s\n",
             object["total"].get<std::size_t>(), object["proved"].get<std::size_t>(),
             object["refuted"].get<std::size_t>(), object["unknown"].get<std::size_t>(),
             object["seconds"].get<double>());
  return Done{};
}

Expected<Done> fuzz_all(const RulesOptions& options, Context& context) {
  TESSERA_TRY(const Judged tested, judged(options, context, fuzz_rules));
  nlohmann::json object = proof_summary(tested);
  for (nlohmann::json& rule : object["rules"])
    rule["verdict"] = rule["verdict"] == "refuted" ? "differs" : "agrees";
  object["agree"] = count(object["rules"], "agrees");
  object["differ"] = count(object["rules"], "differs");
  if (object["differ"] != 0) context.exit_code = kNegativeResult;
  if (context.json) {
    print_json(object);
    return Done{};
  }
  print_lines(object["rules"], options, "agrees");
  fmt::print("{} rules: {} agree, {} differ in {:.1f} s\n", object["total"].get<std::size_t>(),
             object["agree"].get<std::size_t>(), object["differ"].get<std::size_t>(),
             object["seconds"].get<double>());
  return Done{};
}

Expected<Done> list_all(const RulesOptions& options, Context& context) {
  TESSERA_TRY(const RuleBook book, read_rules(options.path));
  const std::vector<rules::Row> rows = rules::rows(book.rules);
  nlohmann::json list = nlohmann::json::array();
  std::size_t name = 0, numerics = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    name = std::max(name, rows[i].name.size());
    numerics = std::max(numerics, rows[i].numerics.size());
    list.push_back({{"name", rows[i].name},
                    {"both_ways", book.rules[i].both_ways},
                    {"numerics", rows[i].numerics},
                    {"guard", rows[i].guard},
                    {"about", rows[i].about},
                    {"found", book.rules[i].found}});
  }
  if (context.json) {
    print_json({{"rules", std::move(list)}});
    return Done{};
  }
  for (const rules::Row& row : rows)
    fmt::print("{:<{}}  {:<2}  {:<{}}  {}\n", row.name, name, row.direction, row.numerics, numerics,
               row.about);
  return Done{};
}

Expected<Done> show_rule(const RulesOptions& options, Context& context) {
  TESSERA_TRY(const RuleBook book, read_rules(options.path));
  TESSERA_TRY(const Rule rule, find_rule(book, options.name));
  if (context.json)
    print_json({{"name", rule.name}, {"text", to_text(rule)}});
  else
    fmt::print("{}", to_text(rule));
  return Done{};
}

/// Checks a certificate file of a rule or of models; returns the claim in words.
Expected<std::string> checked_file(const std::string& file, const rules::KnownRules& known,
                                   const RulesOptions& options) {
  TESSERA_TRY(const std::string text, read_text(file));
  if (!is_model_certificate(text)) return check_certificate(file, known);
  auto checked = check_model_certificate(file, {options.source, options.target});
  if (!checked) return located(checked.error(), {.file = file});
  return checked;
}

Expected<Done> check_all(const RulesOptions& options, Context& context) {
  nlohmann::json list = nlohmann::json::array();
  TESSERA_TRY(const RuleBook book, read_rules(options.path));
  const rules::KnownRules known{
      .rules = book.rules, .guards = book.guards, .only = !options.path.empty()};
  for (const std::string& file : options.files) {
    const auto checked = checked_file(file, known, options);
    if (!checked && checked.error().id == "file-unreadable") return checked.error();
    if (!checked) {
      context.exit_code = kNegativeResult;
      print_error(to_string(checked.error()) + "\n");
    }
    list.push_back({{"file", file},
                    {"accepted", checked.has_value()},
                    {"claim", checked ? *checked : ""},
                    {"why", checked ? "" : checked.error().message}});
    if (context.json) continue;
    fmt::print("{}: {}\n{}", file, checked ? "accepted" : "rejected", checked ? *checked : "");
  }
  if (context.json) print_json({{"certificates", std::move(list)}});
  return Done{};
}

using RuleCommand = RulesCommand<RulesOptions>;

constexpr RuleCommand kProve = {
    "prove", "proves rules for all sizes and inputs", prove_all,
    "Examples:\n"
    "  tessera rules prove                        # those that come with tessera\n"
    "  tessera rules prove my.rules -v --certificates proofs/\n"
    "  tessera rules prove taso_rules.txt --json\n"
    "\n"
    "A rule in our own form has to hold wherever its guard does. TASO's rules state no guard: the\n"
    "one that makes them true is found and printed. Exit codes: 0 all are proved, 1 not all."};
constexpr RuleCommand kFuzz = {
    "fuzz", "runs both sides of rules on random shapes and inputs", fuzz_all,
    "Example:\n"
    "  tessera rules fuzz my.rules --tries 200 --seed 7\n"
    "\n"
    "Exit codes: 0 no difference was found, 1 there is one; it is printed."};
constexpr RuleCommand kList = {"list", "lists rules", list_all, "Example:\n  tessera rules list"};
constexpr RuleCommand kShow = {"show", "prints a rule as text", show_rule,
                               "Example:\n  tessera rules show batch_norm_into_conv"};
constexpr RuleCommand kCheck = {
    "check-certificate", "checks proofs step by step, without what found them", check_all,
    "Example:\n"
    "  tessera rules check-certificate proofs/*.certificate\n"
    "  tessera rules check-certificate my_rule.certificate --rules my.rules\n"
    "\n"
    "Prints what each shows. The claim, the definitions and the assumptions are those of the rule\n"
    "that a certificate names, by the catalog; none is believed. tools/check-certificate checks "
    "the\n"
    "same by a program of its own.\n"
    "Exit codes: 0 all are accepted, 1 one is rejected: wrong, changed, foreign or not whole."};

}  // namespace

void add_rules(CLI::App& app, Context& context) {
  CLI::App* rules = app.add_subcommand("rules", "proves, lists, shows and tests rewrite rules");
  rules->require_subcommand(1);
  rules->footer(
      "Example:\n  tessera rules prove\n\ndocs/rules.md describes the text form of rules.");
  auto options = std::make_shared<RulesOptions>();
  const auto of_rules = [&](const RuleCommand& command) -> CLI::App& {
    CLI::App& added = add(*rules, command, options, context);
    if (command.run == show_rule)
      added.add_option("name", options->name, "name of the rule")->required();
    added.add_option(
        "rules", options->path,
        "file of rules, folder of *.rules, or file in TASO's text format; default: the "
        "rules that come with tessera");
    return added;
  };
  CLI::App& prove = of_rules(kProve);
  prove.add_flag("-v,--verbose", options->verbose, "print a line for every rule");
  prove.add_option("--certificates", options->certificates, "folder for the proof certificates");
  add_threads_flag(prove, options->threads);
  of_rules(kList);
  of_rules(kShow);
  CLI::App& fuzz = of_rules(kFuzz);
  fuzz.add_flag("-v,--verbose", options->verbose, "print a line for every rule");
  fuzz.add_option("--tries", options->tries, "number of random shapes per rule")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  fuzz.add_option("--seed", options->seed, "seed of shapes and inputs")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_threads_flag(fuzz, options->threads);
  add_rules_generate(*rules, context);
  add_rules_prune(*rules, context);
  CLI::App& check = add(*rules, kCheck, options, context);
  check.add_option("files", options->files, "certificates")->required();
  check.add_option("--rules", options->path,
                   "rules that the certificates are about, besides those that come with tessera, "
                   "which must not differ");
  check.add_option("--source", options->source, "first model of a certificate of models");
  check.add_option("--target", options->target,
                   "second model; default: both are found beside the certificate");
}

}  // namespace tessera::cli
