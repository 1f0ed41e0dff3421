#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/rules/certified.h"
#include "tessera/support/expected.h"

namespace tessera {

/// Set of rewrite rules, and whether they state their guards.
struct RuleBook {
  std::vector<rules::Rule> rules;
  rules::Guards guards = rules::Guards::Stated;
};

/// Reads the rules of a file, of the files `*.rules` in a folder, or of a file in TASO's text
/// format; the shipped rules if no path is given. An empty set is a diagnostic.
Expected<RuleBook> read_rules(const std::filesystem::path& path);

Expected<rules::Rule> find_rule(const RuleBook& book, const std::string& name);

/// Options of proving and fuzzing rules.
struct RulesOptions {
  prove::Options proof = {};
  int threads = 1;  // verdicts and certificates do not depend on it
  std::function<void(std::size_t done, std::size_t all)> progress = {};  // never concurrently
};

/// Proves every rule; verdicts in the order of the rules.
Expected<std::vector<rules::RuleProof>> prove_rules(const RuleBook& book,
                                                    const RulesOptions& options);

/// Tests every rule on random inputs: refuted where the sides differ, otherwise unknown.
Expected<std::vector<rules::RuleProof>> fuzz_rules(const RuleBook& book,
                                                   const RulesOptions& options);

/// Rules with the guards that make them true.
struct GuardedRules {
  std::vector<rules::Rule> rules;
  std::vector<rules::RuleProof> refuted = {}, unknown = {};  // rules that were left out
};

/// Infers guards that rules do not state by proving them; rules that state their guards are
/// trusted.
Expected<GuardedRules> with_guards(const RuleBook& book, const RulesOptions& options);

/// Writes rules in the text form that `read_rules` reads.
Expected<Done> save_rules(const std::vector<rules::Rule>& rules, const std::filesystem::path& path);

/// Writes `NAME.certificate` for every proved rule, `NAME.0.certificate` and so on for one with
/// several instances; returns their number.
Expected<std::size_t> save_certificates(const std::vector<rules::RuleProof>& proofs,
                                        const std::filesystem::path& folder);

/// Number of proof steps of a rule by kind.
std::map<std::string, std::size_t> steps_by_kind(const rules::RuleProof& proof);

/// Checks a certificate of a rule by replaying it; returns its claim in words.
Expected<std::string> check_certificate(const std::filesystem::path& path,
                                        const rules::KnownRules& known);

/// Definitions of the operators of rules by the catalog.
prove::CallMeanings meanings_of(const RuleBook& book);

/// Text of definitions, each once: a line `operator NAME {attributes} (arguments)`, then the
/// definition; `composite …`, then the body; `results …`, then types. Before them the defaults of
/// attributes, and `random NAME` for operators whose results differ from run to run.
std::string to_text(const prove::CallMeanings& meanings);

}  // namespace tessera
