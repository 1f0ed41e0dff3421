#pragma once

#include <string>
#include <vector>

#include "tessera/prove/prove.h"
#include "tessera/rules/rule.h"

namespace tessera::rules {

/// Where the guards of rules come from.
enum class Guards : std::uint8_t {
  Stated,  // the rule says all that has to hold; a proof that needs more does not count
  Found,   // the rule says nothing of it; the proof tells
};

/// Whether the two sides of a rule without `*s` are equal, wherever its guard holds and the source
/// (of a rule that holds both ways: either side) fits its inputs.
prove::Verdict verdict_of(const Rule& instance, Guards guards, const prove::Options& options);

/// What a proof of a rule without `*s` may show: that both sides are equal, in terms of
/// definitions, under conditions that follow from its guard and from what its source accepts.
Expected<std::vector<prove::GraphClaim>> claims_of(const Rule& instance);

/// A rule for sizes that decide how two of them meet by broadcasting.
struct BroadcastingCase {
  Rule rule;
  Guard sizes;  // equations, which are put into the rule
};
/// The cases of a rule without `*s` and without a guard: sizes that meet by broadcasting are equal,
/// or one of them is 1. Nothing where no symbolic sizes meet, or many.
std::vector<BroadcastingCase> broadcasting_cases(const Rule& instance);

/// The verdicts on all instances of a rule.
struct RuleProof {
  std::string name;
  std::vector<Rule> instances = {};
  std::vector<prove::Verdict> verdicts = {};  // by instance; nothing comes after a refutation
  prove::Verdict verdict = prove::Unknown{};  // refuted or unknown if one of them is
  double seconds = 0;
};

/// What is proved of a rule holds of all its instances: their guards and assumptions together, each
/// once, with the certificate of the first.
RuleProof prove_rule(const Rule& rule, Guards guards, const prove::Options& options);

/// Looks for a difference at `options.tries` choices of sizes that satisfy the guard, over all
/// instances. Guards that are to be found are proved first.
RuleProof fuzz_rule(const Rule& rule, Guards guards, const prove::Options& options);

}  // namespace tessera::rules
