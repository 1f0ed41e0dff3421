#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/json.h"
#include "tessera/driver/model_certificate.h"
#include "tessera/driver/reference.h"
#include "tessera/driver/rules.h"
#include "tessera/ops/catalog.h"

namespace tessera::cli {
namespace {

struct OperatorsOptions {
  bool definitions = false;
  std::string rules, certificate, source, target;
};

Expected<prove::CallMeanings> meanings_of(const OperatorsOptions& options) {
  if (!options.certificate.empty())
    return meanings_of_models(options.certificate, {options.source, options.target});
  TESSERA_TRY(const RuleBook book, read_rules(options.rules));
  return meanings_of(book);
}

Expected<Done> print_definitions(const OperatorsOptions& options, const Context& context) {
  TESSERA_TRY(const prove::CallMeanings meanings, meanings_of(options));
  const std::string text = to_text(meanings);
  if (context.json)
    print_json({{"definitions", text}});
  else
    fmt::print("{}", text);
  return Done{};
}

}  // namespace

void add_operators(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("operators", "lists all operators, as in docs/operators.md");
  add_common(*command, context);
  command->footer(
      "Examples:\n"
      "  tessera operators > docs/operators.md\n"
      "  tessera operators --definitions > catalog.txt\n"
      "  tessera operators --definitions --rules my.rules\n"
      "  tessera operators --definitions --certificate ab.certificate\n"
      "\n"
      "A definition is that of an operator with attributes and arguments: those of rules are "
      "printed,\n"
      "or those of two models and of the lemmas of their certificate.");
  auto options = std::make_shared<OperatorsOptions>();
  command->add_flag(
      "--definitions", options->definitions,
      "print the definitions of the operators that rules use, as certificates name them");
  command->add_option("--rules", options->rules,
                      "rules for --definitions; default: the rules that come with tessera");
  command->add_option("--certificate", options->certificate,
                      "a certificate of models, with --definitions");
  command->add_option("--source", options->source,
                      "the first model, if it is not beside the certificate");
  command->add_option("--target", options->target, "the second model");
  command->callback([&context, options] {
    if (const auto started = context.start(); !started) return context.fail(started.error());
    if (options->definitions) {
      if (const auto done = print_definitions(*options, context); !done) context.fail(done.error());
      return;
    }
    if (!context.json) {
      fmt::print("{}", operator_reference());
      return;
    }
    nlohmann::json list = nlohmann::json::array();
    for (const OpDef& op : catalog())
      list.push_back({{"name", op.name},
                      {"kind", kind_name(op.kind())},
                      {"summary", op.summary},
                      {"inputs", op.inputs},
                      {"outputs", op.outputs}});
    print_json({{"operators", std::move(list)}});
  });
}

}  // namespace tessera::cli
