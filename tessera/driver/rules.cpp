#include "tessera/driver/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>

#include "tessera/expr/text.h"
#include "tessera/ir/inference_memo.h"
#include "tessera/ir/literal.h"
#include "tessera/ops/catalog.h"
#include "tessera/rules/certified.h"
#include "tessera/rules/shipped.h"
#include "tessera/rules/taso.h"
#include "tessera/rules/text.h"
#include "tessera/support/file.h"
#include "tessera/support/parallel.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using rules::Guards;
using rules::RuleProof;

/// Whether the first significant line has TASO's form `rule 7: …`.
bool is_taso(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty() || line.starts_with('#')) continue;
    if (!line.starts_with("rule ")) return false;
    line.remove_prefix(5);
    const std::size_t digits = line.find_first_not_of("0123456789");
    return digits > 0 && digits != std::string_view::npos && line[digits] == ':';
  }
  return false;
}

Expected<RuleBook> read_book(const fs::path& path) {
  RuleBook book;
  if (path.empty()) {
    TESSERA_TRY(book.rules, rules::shipped());
    return book;
  }
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    TESSERA_TRY(const std::string text, read_text(path));
    if (path.extension() == ".txt" || is_taso(text)) {
      book.guards = Guards::Found;
      TESSERA_TRY(book.rules, rules::parse_taso(text, path.string()));
      return book;
    }
  }
  TESSERA_TRY(book.rules, rules::load_rules(path));
  return book;
}

using Decide = RuleProof (*)(const rules::Rule&, Guards, const prove::Options&);

Expected<std::vector<RuleProof>> for_each_rule(const RuleBook& book, const RulesOptions& options,
                                               Decide decide) {
  const std::size_t all = book.rules.size();
  std::vector<std::optional<RuleProof>> proofs(all);
  std::atomic<std::size_t> next = 0;
  std::size_t done = 0;
  std::mutex mutex;
  const auto is_stopped = [&] {
    return options.proof.stop != nullptr && options.proof.stop->load(std::memory_order_relaxed);
  };
  if (options.progress) options.progress(0, all);
  const auto work = [&] {
    const InferenceMemo memo;
    prove::Arithmetic arithmetic;
    prove::Options proof = options.proof;
    proof.arithmetic = &arithmetic;
    for (std::size_t i; !is_stopped() && (i = next++) < all;) {
      RuleProof decided = decide(book.rules[i], book.guards, proof);
      if (is_stopped()) return;  // it may have been given up
      const std::lock_guard lock(mutex);
      proofs[i] = std::move(decided);
      if (options.progress) options.progress(++done, all);
    }
  };
  on_threads(std::min(static_cast<std::size_t>(std::max(options.threads, 1)), all), work);
  std::vector<RuleProof> decided;
  decided.reserve(all);
  for (std::size_t i = 0; i < all; ++i) {
    if (!proofs[i])
      return Diagnostic{.id = "stopped",
                        .where = {.item = book.rules[i].name},
                        .message = "the proof was stopped"};
    decided.push_back(*std::move(proofs[i]));
  }
  return decided;
}

void count(const certify::Proof& proof, std::map<std::string, std::size_t>& steps) {
  for (const certify::Step& step : proof) {
    ++steps[std::string(certify::to_string(step.kind))];
    for (const certify::Proof& part : step.parts) count(part, steps);
  }
}

}  // namespace

Expected<RuleBook> read_rules(const fs::path& path) {
  const InferenceMemo memo;
  TESSERA_TRY(RuleBook book, read_book(path));
  if (book.rules.empty())
    return Diagnostic{.id = "rules-none",
                      .where = {.file = path.string()},
                      .message = "there are no rules",
                      .note = "the files *.rules of a folder are read"};
  return book;
}

Expected<rules::Rule> find_rule(const RuleBook& book, const std::string& name) {
  const auto found = std::ranges::find(book.rules, name, &rules::Rule::name);
  if (found != book.rules.end()) return *found;
  std::string near;
  for (const rules::Rule& rule : book.rules)
    if (rule.name.find(name) != std::string::npos) near += (near.empty() ? "" : ", ") + rule.name;
  return Diagnostic{.id = "rule-unknown",
                    .message = fmt::format("there is no rule '{}'", name),
                    .note = near.empty() ? "" : "there is " + near,
                    .help = "tessera rules list"};
}

Expected<std::vector<RuleProof>> prove_rules(const RuleBook& book, const RulesOptions& options) {
  return for_each_rule(book, options, rules::prove_rule);
}

Expected<std::vector<RuleProof>> fuzz_rules(const RuleBook& book, const RulesOptions& options) {
  return for_each_rule(book, options, rules::fuzz_rule);
}

Expected<GuardedRules> with_guards(const RuleBook& book, const RulesOptions& options) {
  if (book.guards == Guards::Stated) return GuardedRules{.rules = book.rules};
  TESSERA_TRY(std::vector<RuleProof> proofs, prove_rules(book, options));
  GuardedRules made;
  for (std::size_t i = 0; i < proofs.size(); ++i) {
    if (const auto* proved = std::get_if<prove::Proved>(&proofs[i].verdict)) {
      made.rules.push_back(book.rules[i]);
      made.rules.back().guard = proved->guard;
    } else {
      const bool refuted = std::holds_alternative<prove::Refuted>(proofs[i].verdict);
      (refuted ? made.refuted : made.unknown).push_back(std::move(proofs[i]));
    }
  }
  return made;
}

Expected<Done> save_rules(const std::vector<rules::Rule>& rules, const fs::path& path) {
  return write_file(path, [&](std::ostream& out) {
    for (const rules::Rule& rule : rules)
      out << (&rule == &rules.front() ? "" : "\n") << rules::to_text(rule);
  });
}

Expected<std::size_t> save_certificates(const std::vector<RuleProof>& proofs,
                                        const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::set<std::string> names;
  for (const RuleProof& proof : proofs)
    for (std::size_t i = 0; i < proof.verdicts.size(); ++i) {
      const auto* proved = std::get_if<prove::Proved>(&proof.verdicts[i]);
      if (proved == nullptr) continue;
      std::string name = file_name(proof.name);
      if (proof.instances.size() > 1) name += fmt::format(".{}", i);
      while (!names.insert(name).second) name += '_';
      TESSERA_TRY(const certify::Certificate certificate,
                  rules::certified(proof.instances[i], *proved));
      TESSERA_TRY_DONE(write_file(folder / (name + ".certificate"), [&](std::ostream& out) {
        out << certify::to_text(certificate);
      }));
    }
  return names.size();
}

std::map<std::string, std::size_t> steps_by_kind(const RuleProof& proof) {
  std::map<std::string, std::size_t> steps;
  for (const prove::Verdict& verdict : proof.verdicts)
    if (const auto* proved = std::get_if<prove::Proved>(&verdict))
      for (const certify::Proof& part : proved->certificate.proofs) count(part, steps);
  return steps;
}

Expected<std::string> check_certificate(const fs::path& path, const rules::KnownRules& known) {
  TESSERA_TRY(const std::string text, read_text(path));
  const auto checked = [&]() -> Expected<std::string> {
    TESSERA_TRY(const certify::Certificate certificate, certify::parse_certificate(text));
    TESSERA_TRY(const rules::CertifiedRule shown, rules::check_certificate(certificate, known));
    return shown.words();
  }();
  if (!checked) return located(checked.error(), {.file = path.string()});
  return checked;
}

prove::CallMeanings meanings_of(const RuleBook& book) {
  prove::CallMeanings meanings;
  for (const rules::Rule& rule : book.rules) {
    std::vector<rules::Rule> all = rules::instances(rule);
    for (std::size_t i = all.size(); i-- > 0;)
      for (rules::BroadcastingCase& one : rules::broadcasting_cases(all[i]))
        all.push_back(std::move(one.rule));
    for (const rules::Rule& instance : all) {
      auto claims = rules::claims_of(instance);
      if (!claims) continue;  // its sizes contradict each other
      // The source's conditions on sizes are derived from its definitions before simplification.
      if (auto source = prove::bound_claim_of(instance.source, instance.source, {}))
        claims->push_back(*std::move(source));
      for (const prove::GraphClaim& claim : *claims) meanings.merge(claim.meanings);
    }
  }
  return meanings;
}

std::string to_text(const prove::CallMeanings& meanings) {
  std::string text;
  for (const OpDef* op : rules::associative_operators())
    text += fmt::format("associative {}\n", op->name);
  for (const OpDef& op : catalog()) {
    std::string defaults;
    for (const AttrSpec& attr : op.attrs)
      if (attr.need == AttrSpec::Need::Default)
        defaults +=
            fmt::format("{}{}={}", defaults.empty() ? "" : ", ", attr.name, to_text(attr.value));
    if (!defaults.empty()) text += fmt::format("defaults {} {{{}}}\n", op.name, defaults);
    if (!op.pure) text += fmt::format("random {}\n", op.name);
  }
  for (const auto& [call, body] : meanings.bodies)
    text += fmt::format("composite {}\n{}\n", call, body);
  for (const auto& [call, definition] : meanings.definitions)
    text += fmt::format("operator {}\n{}\n", call, definition);
  for (const auto& [call, types] : meanings.results)
    text += fmt::format("results {}\n{}\n\n", call, types);
  return text;
}

}  // namespace tessera
