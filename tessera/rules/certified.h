#pragma once

#include "tessera/rules/proof.h"

namespace tessera::rules {

/// The certificate of a rule without `*s`: it names the rule, the operators that the definitions
/// are of, what is assumed, and sizes for which it says something.
Expected<certify::Certificate> certified(const Rule& instance, const prove::Proved& proved);

/// What is claimed of a rule: how it was found, what it is good for and how it rounds is not.
Rule statement_of(Rule rule);

/// Rules that certificates may name.
struct KnownRules {
  std::vector<Rule> rules = {};
  Guards guards = Guards::Stated;  // that are found are part of the claim, not of the rules
  bool only = false;               // a certificate has to be of one of these
};

/// What a certificate shows.
struct CertifiedRule {
  Rule rule;           // one instance, or a case of one
  Guard of_case = {};  // the sizes of the case, where the rule is proved by cases of broadcasting
  std::size_t cases = 0;  // of which there are that many
  std::vector<prove::Assumption> assumptions = {};

  /// The claim in words.
  std::string words() const;
};

/// Replays a certificate. Nothing in it is believed: the claim has to be that of its rule by the
/// catalog, the assumptions those that it needs, and the witness one. A rule that has the name of
/// one that is known has to be that one.
Expected<CertifiedRule> check_certificate(const certify::Certificate& certificate,
                                          const KnownRules& known);

}  // namespace tessera::rules
