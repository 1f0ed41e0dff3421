#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/rules/certified.h"
#include "tessera/support/expected.h"

namespace tessera {

/// Rules, and whether they state their guards.
struct RuleBook {
  std::vector<rules::Rule> rules;
  rules::Guards guards = rules::Guards::Stated;
};

/// The rules of a file, of the files `*.rules` in a folder, or of a file in TASO's text form; those
/// that come with Tessera where no path is given. That there are none is a diagnostic.
Expected<RuleBook> read_rules(const std::filesystem::path& path);

Expected<rules::Rule> find_rule(const RuleBook& book, const std::string& name);

struct RulesOptions {
  prove::Options proof = {};
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

/// The verdict on every rule, in their order.
Expected<std::vector<rules::RuleProof>> prove_rules(const RuleBook& book,
                                                    const RulesOptions& options);

/// Runs both sides of every rule on random inputs: refuted where they differ, else unknown.
Expected<std::vector<rules::RuleProof>> fuzz_rules(const RuleBook& book,
                                                   const RulesOptions& options);

/// Rules with the guards that make them true.
struct TrueRules {
  std::vector<rules::Rule> rules;
  std::vector<rules::RuleProof> refuted = {}, unknown = {};  // not among the rules
};

/// Guards that rules do not state are found by proving them; rules that state them are believed.
Expected<TrueRules> with_guards(const RuleBook& book, const RulesOptions& options);

/// Writes rules as text that `read_rules` reads.
Expected<Done> save_rules(const std::vector<rules::Rule>& rules, const std::filesystem::path& path);

/// Writes `NAME.certificate` for every rule that is proved, `NAME.0.certificate` and so on for one
/// with several instances; gives their number.
Expected<std::size_t> save_certificates(const std::vector<rules::RuleProof>& proofs,
                                        const std::filesystem::path& folder);

/// How many steps of each kind the proofs of a rule take.
std::map<std::string, std::size_t> steps_by_kind(const rules::RuleProof& proof);

/// Reads a certificate of a rule and replays it; gives its claim in words.
Expected<std::string> check_certificate(const std::filesystem::path& path,
                                        const rules::KnownRules& known);

/// The definitions that the operators of rules have by the catalog, each once: a line
/// `operator NAME {attributes} (arguments)`, then the definition.
Expected<std::string> definitions_of(const RuleBook& book);

}  // namespace tessera
