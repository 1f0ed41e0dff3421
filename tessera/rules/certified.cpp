#include "tessera/rules/certified.h"

#include <algorithm>

#include "tessera/certify/check.h"
#include "tessera/certify/witness.h"
#include "tessera/rules/text.h"

namespace tessera::rules {
namespace {

using certify::Certificate;
using prove::GraphClaim;

Diagnostic foreign(std::string message, std::string note = {}) {
  return {.id = "certificate-foreign", .message = std::move(message), .note = std::move(note)};
}

std::vector<std::pair<std::string, std::string>> named(
    const std::vector<prove::Assumption>& assumptions) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const prove::Assumption& assumption : assumptions)
    result.emplace_back(to_string(assumption.kind), assumption.text);
  return result;
}

/// Without what binds it to operators and constants, as `prove` makes it.
std::string plain_text(certify::Claim claim) {
  for (certify::Value& value : claim.values) value.call.clear();
  for (certify::Input& input : claim.inputs) input.content.clear();
  return to_text(claim);
}

/// What a proof of a rule may claim: its constants as given tensors, or as values that are computed
/// from their positions.
Expected<std::vector<GraphClaim>> provable_claims(const Rule& rule) {
  TESSERA_TRY(std::vector<GraphClaim> claims, claims_of(rule));
  for (std::size_t i = 0, count = claims.size(); i < count; ++i)
    if (auto written = prove::with_contents(claims[i])) claims.push_back(*std::move(written));
  return claims;
}

/// The first line of a text that another does not have at its place.
std::string first_difference(std::string_view text, std::string_view other) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    if (text.substr(0, end) != other.substr(0, std::min(end, other.size()))) {
      text = text.substr(0, end - 1);
      text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
      return std::string(text);
    }
    text.remove_prefix(end);
    other.remove_prefix(end);
  }
  return "it ends early";
}

/// The rule of a certificate, which is written as `certified` writes it.
Expected<Rule> rule_of(const Certificate& certificate) {
  const std::string& text = certificate.subject.rule;
  if (text.empty())
    return foreign("the certificate does not say what it is about", "it names no rule");
  TESSERA_TRY(std::vector<Rule> rules, parse_rules(text));
  if (rules.size() != 1 || to_text(rules::statement_of(rules[0])) != text)
    return foreign("the rule is not written as certificates write it");
  if (instances(rules[0]).size() != 1 || to_text(instances(rules[0])[0]) != to_text(rules[0]))
    return foreign("the rule is for any number of axes", "a certificate is of one number of axes");
  return std::move(rules[0]);
}

/// A rule of the book that has this name is this one, or this is one of its cases.
Expected<CertifiedRule> known_rule(Rule rule, const KnownRules& known) {
  const auto here = std::ranges::find(known.rules, rule.name, &Rule::name);
  if (here == known.rules.end() && known.only)
    return foreign(fmt::format("there is no rule {}", rule.name));
  if (here == known.rules.end()) return CertifiedRule{std::move(rule)};
  const auto text = [&](Rule of) {
    if (known.guards == Guards::Found) of.guard.clear();
    return to_text(statement_of(std::move(of)));
  };
  const std::vector<Rule> all = instances(*here);
  for (const Rule& instance : all)
    if (text(instance) == text(rule)) return CertifiedRule{std::move(rule)};
  for (const Rule& instance : all) {
    const std::vector<BroadcastingCase> cases = broadcasting_cases(instance);
    for (const BroadcastingCase& one : cases)
      if (text(one.rule) == text(rule))
        return CertifiedRule{std::move(rule), one.sizes, cases.size()};
  }
  return {Diagnostic{.id = "certificate-foreign",
                     .message = fmt::format("the rule {} is another one", rule.name),
                     .note = "a rule of this name is known, and is not what the certificate says",
                     .help = "name the rules that it is of with --rules"}};
}

}  // namespace

Rule statement_of(Rule rule) {
  return {.name = std::move(rule.name),
          .about = {},
          .source = std::move(rule.source),
          .target = std::move(rule.target),
          .guard = std::move(rule.guard),
          .shapes = std::move(rule.shapes),
          .both_ways = rule.both_ways,
          .numerics = {},
          .found = {},
          .constants = {}};
}

Expected<Certificate> certified(const Rule& instance, const prove::Proved& proved) {
  Rule rule = statement_of(instance);
  rule.guard = proved.guard;
  TESSERA_TRY(std::vector<GraphClaim> claims, provable_claims(rule));
  const certify::Claim& shown = proved.certificate.claim;
  for (GraphClaim& claim : claims) {
    claim.claim.named_reals = shown.named_reals;
    if (plain_text(claim.claim) != plain_text(shown)) continue;
    Certificate result{claim.claim, proved.certificate.proofs, {.rule = to_text(rule)}};
    result.subject.assumptions = named(assumptions_of(claim));
    const auto witness = certify::witness_of(claim.claim);
    if (!witness)
      return Diagnostic{.id = "certificate-wrong",
                        .where = {.item = rule.name},
                        .message = "no sizes were found that satisfy the conditions of the proof"};
    result.subject.witness = *witness;
    return certify::recorded(std::move(result));
  }
  return Diagnostic{.id = "certificate-wrong",
                    .where = {.item = rule.name},
                    .message = "the proof is of another claim than that of the rule"};
}

Expected<CertifiedRule> check_certificate(const Certificate& certificate, const KnownRules& known) {
  TESSERA_TRY(Rule rule, rule_of(certificate));
  TESSERA_TRY(CertifiedRule result, known_rule(std::move(rule), known));
  TESSERA_TRY(std::vector<GraphClaim> claims, provable_claims(result.rule));
  const std::string text = to_text(certificate.claim);
  for (GraphClaim& claim : claims) claim.claim.named_reals = certificate.claim.named_reals;
  const auto here =
      std::ranges::find(claims, text, [](const GraphClaim& claim) { return to_text(claim.claim); });
  if (here == claims.end())
    return foreign("the claim is not that of the rule by the catalog",
                   claims.empty() ? "the guard does not make both sides fit"
                                  : "it says " + first_difference(text, to_text(claims[0].claim)));
  result.assumptions = assumptions_of(*here);
  const bool has_named_real = std::ranges::any_of(
      result.assumptions,
      [](const prove::Assumption& each) { return each.kind == prove::Assumption::Kind::Constant; });
  if (certificate.subject.assumptions != named(result.assumptions) ||
      certificate.claim.named_reals != has_named_real)
    return foreign("the assumptions are not those of the claim");
  TESSERA_TRY_DONE(certify::check_witness(certificate.claim, certificate.subject.witness));
  if (!certify::is_recorded(certificate)) return foreign("a step does not say what it makes");
  TESSERA_TRY_DONE(certify::check(certificate));
  return result;
}

std::string CertifiedRule::words() const {
  std::string text = fmt::format("rule {}", rule.name);
  if (cases != 0)
    text +=
        fmt::format(", one of its {} cases of broadcasting: {}", cases, tessera::to_text(of_case));
  text += fmt::format("\n  for all inputs {}\n", inputs_text(rule));
  text += "  of all sizes of at least 1 that the source accepts";
  text += rule.guard.empty() ? "\n" : fmt::format(", where {}\n", tessera::to_text(rule.guard));
  text += fmt::format("  source {}\n  and target {}\n", body_text(rule.source, 2),
                      body_text(rule.target, 2));
  text += "  have the same outputs over the reals";
  if (rule.both_ways) text += ", and each is defined where the other is";
  for (const prove::Assumption& assumption : assumptions)
    text += fmt::format("\n  assuming ({}) that {}", to_string(assumption.kind), assumption.text);
  return text + "\n";
}

}  // namespace tessera::rules
