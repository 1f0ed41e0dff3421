#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cli/context.h"
#include "cli/json.h"
#include "tessera/driver/rules.h"
#include "tessera/report/graphviz.h"
#include "tessera/rules/explain.h"
#include "tessera/rules/region_picture.h"
#include "tessera/support/file.h"

namespace tessera::cli {
namespace {

struct ExplainOptions {
  std::string rule, path, picture;
  bool dot = false;
};

/// Draws the two sides of a rule or, of a mutant as SVG, the output with its region.
Expected<Done> draw(const rules::Rule& rule, const std::filesystem::path& path) {
  std::string picture = to_dot(rule);
  if (path.extension() == ".svg" && rule.mutant) {
    TESSERA_TRY(picture, rules::region_picture(rule));
  } else if (path.extension() == ".svg") {
    TESSERA_TRY(picture, report::run_dot(picture, {.format = "svg"}));
  } else if (path.extension() != ".dot") {
    return Diagnostic{
        .id = "cli-picture",
        .message = fmt::format("'{}' is not a supported picture format", path.string()),
        .note = "supported extensions are .dot and .svg"};
  }
  return write_file(path, [&](std::ostream& out) { out << picture; });
}

/// Verdict, assumptions and length of the proof as text.
std::string proof_text(const rules::RuleProof& proof,
                       const std::map<std::string, std::size_t>& steps) {
  if (const auto* unknown = std::get_if<prove::Unknown>(&proof.verdict))
    return fmt::format("unknown: {}\n", unknown->why);
  if (const auto* refuted = std::get_if<prove::Refuted>(&proof.verdict))
    return fmt::format("refuted: {}\n", refuted->what);
  const auto& proved = std::get<prove::Proved>(proof.verdict);
  std::size_t total = 0;
  std::string kinds;
  for (const auto& [kind, count] : steps) {
    total += count;
    kinds += fmt::format("{}{} {}", kinds.empty() ? ": " : ", ", count, kind);
  }
  std::string text =
      fmt::format("proved for all sizes{}{}\n", proved.guard.empty() ? "" : " where ",
                  rules::in_words(proved.guard));
  for (const prove::Assumption& assumption : proved.assumptions)
    text += fmt::format("assuming that {}\n", assumption.text);
  const std::string ranks = proof.instances.size() == 1
                                ? ""
                                : fmt::format(" for {} numbers of axes", proof.instances.size());
  return text + fmt::format("{} steps{}{}\n", total, ranks, kinds);
}

Expected<Done> explain_rule(const ExplainOptions& options, Context& context) {
  TESSERA_TRY_DONE(context.start());
  TESSERA_TRY(const RuleBook book, read_rules(options.path));
  TESSERA_TRY(const rules::Rule rule, find_rule(book, options.rule));
  const std::string dot = to_dot(rule);
  if (!options.picture.empty()) TESSERA_TRY_DONE(draw(rule, options.picture));
  if (options.dot) {
    fmt::print("{}", dot);
    return Done{};
  }
  RulesOptions proof_options;
  proof_options.proof.stop = &context.stop;
  TESSERA_TRY(const auto proofs, prove_rules({{rule}, book.guards}, proof_options));
  const auto steps = steps_by_kind(proofs[0]);
  if (!context.json) {
    fmt::print("{}\n{}", explain(rule), proof_text(proofs[0], steps));
    return Done{};
  }
  const auto* proved = std::get_if<prove::Proved>(&proofs[0].verdict);
  print_json({{"name", rule.name},
              {"about", rule.about},
              {"equation", equation(rule)},
              {"verdict", prove::to_string(proofs[0].verdict)},
              {"guard", to_text(proved ? proved->guard : rule.guard)},
              {"steps", steps},
              {"dot", dot}});
  return Done{};
}

}  // namespace

void add_explain(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "explain", "shows a rewrite rule as an equation and a drawing, with its proof");
  auto options = std::make_shared<ExplainOptions>();
  command->add_option("rule", options->rule, "name of the rule")->required();
  command->add_option(
      "rules", options->path,
      "file of rules, folder of *.rules, or file in TASO's text format; default: the "
      "rules that come with tessera");
  command->add_flag("--dot", options->dot, "print only the drawing, for Graphviz");
  command->add_option(
      "-o,--output", options->picture,
      "write the drawing to a .dot or .svg file; of a mutant, .svg shows the output with "
      "the corrected region coloured");
  add_common(*command, context);
  command->footer("Example:\n  tessera explain batch_norm_into_conv -o picture.svg");
  command->callback([options, &context] {
    if (const auto done = explain_rule(*options, context); !done) context.fail(done.error());
  });
}

}  // namespace tessera::cli
